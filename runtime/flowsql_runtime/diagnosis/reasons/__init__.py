"""Why an operator gives no rows, a small class each; ``silence.py`` has the list."""
