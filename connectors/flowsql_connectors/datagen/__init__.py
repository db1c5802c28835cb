"""``datagen``: rows out of nothing."""
