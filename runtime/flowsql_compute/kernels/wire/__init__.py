"""Kernels of binary formats of records: their bytes to columns and back."""
