"""Changes of databases: what all connectors that read a database's log have in common."""
