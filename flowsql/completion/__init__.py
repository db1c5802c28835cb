"""What may stand at the cursor of a statement that is being typed, for shells and other clients."""
