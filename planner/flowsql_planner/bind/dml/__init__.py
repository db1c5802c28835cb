"""INSERT, and the refusal of what would change rows in place."""
