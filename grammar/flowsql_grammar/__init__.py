"""The sentences of FlowSQL: Flink SQL text to syntax tree and back.

``ast`` holds the nodes. Texts are a :class:`~flowsql_core.span.Source` (which knows its name) or a plain string.
"""

from __future__ import annotations

from flowsql_grammar import ast
from flowsql_grammar.printer import print_sql
from flowsql_grammar.script import (
    highlight,
    is_complete,
    parse_expression,
    parse_script,
    parse_statement,
    parse_type,
    split_statements,
)

__all__ = [
    "ast",
    "highlight",
    "is_complete",
    "parse_expression",
    "parse_script",
    "parse_statement",
    "parse_type",
    "print_sql",
    "split_statements",
]
