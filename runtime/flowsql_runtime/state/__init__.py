"""Keyed state: slot-addressed columns behind a hash index, and the backends that make, save and restore them."""
