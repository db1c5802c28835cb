"""Queries: SELECT and what stands in FROM, to logical plans."""
