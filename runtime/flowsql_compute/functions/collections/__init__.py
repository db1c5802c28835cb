"""Functions over arrays, maps, rows and structured types."""
