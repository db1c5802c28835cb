"""Lineage: from which columns of which tables the columns of a sink come, and how."""
