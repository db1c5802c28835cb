"""What only Java could do, refused with the Python way."""

from __future__ import annotations

from flowsql_core.errors import BindError
from flowsql_core.span import Span
from flowsql_grammar import ast

JavaOnly = ast.AddJar | ast.RemoveJar


def java_only(reason: str, python_way: str, at: Span) -> BindError:
    """The refusal of a construct that needs a JVM."""
    return BindError("java-only", f"{reason}; FlowSQL runs Python.", at, python_way)


def refuse_java(statement: JavaOnly) -> BindError:
    """ADD JAR and REMOVE JAR."""
    words = "ADD JAR" if isinstance(statement, ast.AddJar) else "REMOVE JAR"
    return java_only(
        f"{words} takes Java archives", "install Python packages, or put them on PYTHONPATH", statement.span
    )


def bind_call(node: ast.Call) -> BindError:
    """CALL: no catalog of FlowSQL has procedures."""
    return BindError(
        "procedure-not-found", f"Procedure '{node.call.name}' not found: catalogs of FlowSQL have none.", node.span
    )
