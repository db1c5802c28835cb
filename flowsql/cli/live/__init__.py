"""Running jobs as they stand: their rates and shares of time, live rows of their operators, the end of tables."""
