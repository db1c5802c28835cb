"""The interactive shell: ``flowsql`` without a script, at a terminal."""
