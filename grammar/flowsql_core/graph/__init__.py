"""The plan as data: what the planner writes and the runtime reads."""
