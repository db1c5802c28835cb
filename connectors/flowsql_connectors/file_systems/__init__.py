"""File systems behind URIs: which one a scheme means, and how it is reached."""
