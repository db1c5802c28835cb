"""Exchange between tasks: partitions, channels, gates."""
