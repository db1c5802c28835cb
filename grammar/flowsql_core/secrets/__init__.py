"""Values of options that stand elsewhere: placeholders, and what was filled in for them, hidden from what is shown."""
