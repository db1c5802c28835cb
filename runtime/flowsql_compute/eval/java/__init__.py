"""What Java's libraries do with text, moments and random numbers."""
