"""Between tables and streams."""
