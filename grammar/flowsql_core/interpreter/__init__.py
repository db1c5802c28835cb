"""What the engine asks of the Python process that it runs in."""
