"""Tables whose rows are values of a Redis server: strings, hashes, lists and streams."""
