"""``rocksdb``: keyed state in memory as far as the budget goes, and in RocksDB behind it."""
