"""Sessions of Spark: started here, reached over Spark Connect, or handed in by the program."""
