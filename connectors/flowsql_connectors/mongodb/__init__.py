"""Tables whose rows are documents of MongoDB."""
