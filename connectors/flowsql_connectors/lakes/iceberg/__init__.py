"""``iceberg``: tables and catalogs of Apache Iceberg, over pyiceberg."""
