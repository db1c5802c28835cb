"""What became of rows that did not arrive, and why a job that runs gives none: read from its metrics and its graph."""
