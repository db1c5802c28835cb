"""Catalogs: the in-memory one, and the manager that resolves names over all of them."""
