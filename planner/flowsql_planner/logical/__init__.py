"""Relational algebra: nodes, walking and rewriting them."""
