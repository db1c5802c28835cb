"""Windows whose bounds follow from the rows, and windows that answer more than once."""
