"""``jdbc``: tables of databases by Flink's options: scans, lookups, sinks, catalogs."""
