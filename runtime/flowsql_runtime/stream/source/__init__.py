"""Where streams begin: collections, lines of files, one source behind the other."""
