"""Databases that SQLAlchemy has a dialect for, asked by its expressions (SQLAlchemy Core)."""
