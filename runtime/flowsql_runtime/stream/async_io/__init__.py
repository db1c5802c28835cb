"""Asynchronous functions: the operator, and the elements that wait for their results."""
