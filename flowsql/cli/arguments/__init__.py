"""What the command line says, as data, a module a command. Nothing heavy is imported: ``flowsql --help`` is instant."""
