"""The function registry: one declaration per function, found by name, resolved by argument types.

The binder asks :func:`resolve_call` / :func:`resolve_aggregate`; nobody else maps names to behaviour.
"""
