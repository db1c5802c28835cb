"""Expression IR to vectorised callables."""
