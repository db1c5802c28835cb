"""The ``filesystem`` connector: files as tables."""
