"""Definitions: CREATE, ALTER and DROP, and ANALYZE, checked against the catalogs."""
