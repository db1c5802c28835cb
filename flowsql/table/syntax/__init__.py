"""Syntax trees as programs write them: small pieces of SQL, literals, the text that errors point into."""
