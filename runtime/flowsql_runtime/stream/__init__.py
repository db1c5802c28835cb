"""Operators of DataStreams: user functions over Python objects, row by row."""
