"""The connector interfaces: what a connector may offer, what planner and runtime may ask."""
