"""``delta``: tables of Delta Lake, over deltalake."""
