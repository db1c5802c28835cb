"""What a linter finds in statements: one rule a function, all of them listed in ``registry``."""
