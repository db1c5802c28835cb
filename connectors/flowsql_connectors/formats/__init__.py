"""Formats: bytes of files to columns and back."""
