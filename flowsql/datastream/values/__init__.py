"""Values of streams: types declared for them, and their text."""
