"""Messages whose schema stands in a schema registry."""
