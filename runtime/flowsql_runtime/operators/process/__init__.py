"""Process table functions of users."""
