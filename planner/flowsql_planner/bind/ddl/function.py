"""CREATE, ALTER and DROP of functions."""

from __future__ import annotations

from typing import assert_never

from flowsql_core.catalog import CatalogFunction, ObjectPath
from flowsql_core.errors import BindError
from flowsql_core.span import Span
from flowsql_core.udf_source import function_text
from flowsql_grammar import ast
from flowsql_planner.bind import operations as op
from flowsql_planner.bind.context import BindContext
from flowsql_planner.bind.java_only import java_only

#: Class name of a function whose text stands in the statement.
INLINE = "<inline>"


def bind_create_function(context: BindContext, node: ast.CreateFunction) -> op.CreateFunction:
    """CREATE [TEMPORARY [SYSTEM]] FUNCTION ... LANGUAGE PYTHON."""
    function = _function(node.class_name, node.language, node.span)
    if node.resources:
        raise java_only("USING JAR takes Java archives", "put the module on PYTHONPATH", node.resources[0].span)
    options = tuple((option.key, option.value) for option in node.options)
    made = CatalogFunction(function.class_name, function.language, function.source, options)
    path = _path(context, node.name, node.system)
    return op.CreateFunction(path, made, node.temporary, node.system, node.if_not_exists, node.name.span)


def bind_alter_function(context: BindContext, node: ast.AlterFunction) -> op.AlterFunction:
    """ALTER FUNCTION of a permanent one: the others cannot be altered in Flink either."""
    if node.temporary:
        word = "system" if node.system else "catalog"
        raise BindError(
            "alter-temporary", f"Alter temporary {word} function is not supported", node.name.span, "drop and create it"
        )
    function = _function(node.class_name, node.language, node.span)
    return op.AlterFunction(_path(context, node.name, False), function, node.if_exists, node.name.span)


def bind_drop_function(context: BindContext, node: ast.Drop) -> op.DropFunction:
    """DROP [TEMPORARY [SYSTEM]] FUNCTION."""
    path = _path(context, node.name, node.system)
    return op.DropFunction(path, node.temporary, node.system, node.if_exists, node.name.span)


def _path(context: BindContext, name: ast.Identifier, system: bool) -> ObjectPath:
    return context.catalogs.functions.qualify((name.last.text,) if system else name.texts)


def _function(class_name: str, language: ast.FunctionLanguage | None, span: Span) -> CatalogFunction:
    match language:
        case ast.FunctionLanguage.PYTHON:
            return _python_function(class_name, span)
        case ast.FunctionLanguage.SQL:
            raise BindError("function-language", "Unrecognized function language string SQL", span, "LANGUAGE PYTHON")
        case ast.FunctionLanguage.JAVA | ast.FunctionLanguage.SCALA | None:
            words = (
                "LANGUAGE JAVA is the default: FlowSQL" if language is None else f"LANGUAGE {language.value}: FlowSQL"
            )
            raise java_only(f"{words} has no JVM", "AS 'module.function' LANGUAGE PYTHON", span)
        case _:
            assert_never(language)


def _python_function(text: str, span: Span) -> CatalogFunction:
    """A dotted path ``package.module.name``; anything else is the text of the function itself."""
    stripped = text.strip()
    if not stripped:
        raise BindError("function-path", "className cannot be null or empty", span, "AS 'module.function'")
    if all(part.isidentifier() for part in stripped.split(".")):
        if "." not in stripped:
            raise BindError(
                "function-path",
                f"'{stripped}' is no path of a Python function",
                span,
                "write 'module.function', or the function itself between $$ and $$",
            )
        return CatalogFunction(stripped)
    try:
        compile(function_text(text), INLINE, "exec")
    except SyntaxError as error:
        raise BindError(
            "function-source", f"The source of the function is not Python: {error.msg} (line {error.lineno})", span
        ) from None
    return CatalogFunction(INLINE, source=text)
