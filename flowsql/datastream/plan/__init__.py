"""From a program's calls to a ``JobGraph``."""
