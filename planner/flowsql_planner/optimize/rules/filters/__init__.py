"""Rules that move filters, and make them simpler."""
