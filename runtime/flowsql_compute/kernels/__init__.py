"""Numba kernels of scalars: pure functions over NumPy arrays, nothing else."""
