"""The streaming runtime: operators, state, time, tasks, exchange. Reads a ``JobGraph``; never imports the planner."""
