"""``postgres-cdc``: logical replication of PostgreSQL."""
