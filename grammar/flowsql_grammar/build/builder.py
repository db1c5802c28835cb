"""The builder of every rule: the methods of all constructs in one class."""

from __future__ import annotations

from flowsql_grammar.build.alter import AlterBuilder
from flowsql_grammar.build.ddl import DdlBuilder
from flowsql_grammar.build.expression import ExpressionBuilder
from flowsql_grammar.build.literal import LiteralBuilder
from flowsql_grammar.build.match import MatchBuilder
from flowsql_grammar.build.query import QueryBuilder
from flowsql_grammar.build.special import SpecialBuilder
from flowsql_grammar.build.statement import StatementBuilder
from flowsql_grammar.build.type import TypeBuilder


class Builder(
    StatementBuilder,
    DdlBuilder,
    AlterBuilder,
    QueryBuilder,
    MatchBuilder,
    ExpressionBuilder,
    LiteralBuilder,
    SpecialBuilder,
    TypeBuilder,
):
    """All methods. Each takes the span of what was read and the children that the grammar keeps."""
