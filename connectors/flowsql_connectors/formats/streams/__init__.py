"""Formats of files that only programs of DataStreams read and write; tables cannot name them."""
