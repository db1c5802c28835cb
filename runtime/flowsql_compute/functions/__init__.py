"""SQL functions: what they are called, what they take, what they compute."""
