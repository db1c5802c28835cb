"""Functions that read and write JSON."""
