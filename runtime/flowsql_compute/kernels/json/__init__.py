"""Kernels that read and write JSON."""
