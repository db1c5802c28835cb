"""``memory``: tables of this process, asked while jobs write them."""
