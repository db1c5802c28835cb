"""The ends of a job: writing, what stands in front of a sink, and collecting."""
