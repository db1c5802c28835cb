"""A user's Python functions over batches: the one place of the runtime where rows become Python values."""
