"""``${name}`` in the SQL of a project: its variables, put into the text before it is parsed."""

from __future__ import annotations

from collections.abc import Mapping

from flowsql_core.errors import BindError, did_you_mean
from flowsql_core.span import Source, Span
from flowsql_grammar.variables import with_values


def with_variables(source: Source, variables: Mapping[str, str]) -> Source:
    """The text with the values of its variables; ``${env:NAME}`` and the like stay.

    Raises:
        BindError: a variable that the project does not have.
    """

    def value(name: str, at: int) -> str:
        if name not in variables:
            span = Span(at, at + len(name) + len("${}"))
            hint = did_you_mean(name, variables) or "[variables] of flowsql.toml, or a profile's, give it a value"
            raise BindError("no-variable", f"The project has no variable '{name}'", span, hint).within(source)
        return variables[name]

    return Source(with_values(source.text, value, quoted=True), source.name)
