"""Kernels of OVER windows."""
