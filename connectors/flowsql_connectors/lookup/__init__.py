"""Lookups that connectors share: options, and whole tables by key."""
