"""Parse to tree: one method for each rule of the grammar, spread over files by construct."""

from __future__ import annotations

from flowsql_grammar.build.builder import Builder

__all__ = ["Builder"]
