"""Window arithmetic: pure functions on time columns; no state, no clock."""
