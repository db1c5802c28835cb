"""Tables whose files are not on this machine: object stores and whatever else a URI leads to."""
