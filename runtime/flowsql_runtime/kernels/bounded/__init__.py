"""Machine code of batch mode."""
