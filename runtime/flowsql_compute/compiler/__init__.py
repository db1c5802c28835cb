"""Kernels: declared in Python, compiled once, kept as objects on disk, called without Numba."""
