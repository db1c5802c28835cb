"""The commands behind ``flowsql``, a module each with ``run(invocation)``, which gives the exit code."""
