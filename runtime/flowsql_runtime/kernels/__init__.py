"""Numba kernels of state and operators: pure functions over NumPy arrays, nothing else."""
