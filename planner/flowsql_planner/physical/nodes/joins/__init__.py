"""Physical nodes of joins."""
