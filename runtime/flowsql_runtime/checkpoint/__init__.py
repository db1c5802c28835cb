"""Checkpoints and savepoints: options, coordination, storage, recovery."""
