"""The ``flowsql`` command."""
