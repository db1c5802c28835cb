"""JSON as Jackson reads it, token by token: what is left to it are documents that are damaged or odd."""
