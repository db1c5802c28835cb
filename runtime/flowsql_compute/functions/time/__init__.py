"""Functions over dates, times and intervals."""
