"""Functions that SQL names: by the path of a Python object, or by their own text."""

from __future__ import annotations

import importlib
import linecache
import textwrap
import types
from typing import Any

from flowsql_core.errors import BindError, FlowSqlError
from flowsql_core.process_function import ProcessTableFunction
from flowsql_core.udf import (
    AsyncScalarFunction,
    ImperativeAggregateFunction,
    ScalarFunction,
    ScalarUdf,
    UserDefinedFunction,
)
from flowsql_core.udf_aggregates import make_own
from flowsql_core.udf_types import make_udf


def load_path(path: str) -> ScalarUdf:
    """The function at ``package.module.name`` (or ``package.module.Class.name``).

    Raises:
        BindError: no such module or name, or something else stands there.
    """
    try:
        found = _object_at(path)
    except Exception as error:  # an import runs any code
        raise BindError(
            "function-not-loadable",
            f"The Python function '{path}' cannot be loaded: {type(error).__name__}: {error}",
            hint="the module has to be on PYTHONPATH",
        ) from error
    return _declared(found, path, path.rpartition(".")[2])


def function_text(source: str) -> str:
    """The text of a function without the indentation that it has inside of a statement."""
    return textwrap.dedent(source).strip() + "\n"


def remember_lines(source: str, name: str) -> tuple[str, str]:
    """The file's name that a text is known under, and the text: traces show its lines, debuggers find them."""
    file = f"<function {name}>"
    text = function_text(source)
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    return file, text


def load_source(source: str, name: str) -> ScalarUdf:
    """The function that a text defines: the one called ``name`` (in any case), the only one that ``udf`` made, or the
    only one.

    Raises:
        BindError: the text fails when it is run, or which function is meant is not clear.
    """
    file, text = remember_lines(source, name)
    module = types.ModuleType(f"flowsql_inline_{name}")
    try:
        exec(compile(text, file, "exec"), vars(module))
    except Exception as error:
        raise BindError(
            "function-not-loadable", f"The text of the function '{name}' fails: {type(error).__name__}: {error}"
        ) from error
    own = {key: value for key, value in vars(module).items() if not key.startswith("_") and _is_own(value, module)}
    found = _meant(own, name)
    if found is None:
        raise BindError(
            "function-not-loadable",
            f"The text of the function '{name}' defines {', '.join(own) or 'nothing that can be called'}.",
            hint=f"define one function, or one called {name}",
        )
    return _declared(found, f"the text of '{name}'", name)


def _meant(own: dict[str, Any], name: str) -> Any:
    """What a text is about: what has the name of the function, before a class of that name; else the only thing."""
    named = [value for key, value in own.items() if key.lower() == name.lower()]
    declared = [value for value in own.values() if isinstance(value, ScalarUdf)]
    for found in (named, declared, list(own.values())):
        if found is named and len(found) > 1:
            found = [value for value in found if not isinstance(value, type)]
        if len(found) == 1:
            return found[0]
    return None


def _is_own(value: Any, module: types.ModuleType) -> bool:
    """Whether a name of a text may be what it defines: not what it only imported."""
    if isinstance(value, ScalarUdf | UserDefinedFunction):
        return True
    return callable(value) and getattr(value, "__module__", None) == module.__name__


def _object_at(path: str) -> Any:
    parts = path.split(".")
    for length in range(len(parts) - 1, 0, -1):
        module_name = ".".join(parts[:length])
        try:
            found: Any = importlib.import_module(module_name)
        except ModuleNotFoundError as error:
            # A module that is there but lacks one of its own imports is another failure.
            if length > 1 and error.name is not None and (module_name + ".").startswith(error.name + "."):
                continue
            raise
        for part in parts[length:]:
            found = getattr(found, part)
        return found
    raise ImportError(f"no module in '{path}'")


def _declared(found: Any, where: str, name: str) -> ScalarUdf:
    if isinstance(found, ScalarUdf):
        return found
    if isinstance(found, type) and issubclass(
        found, ScalarFunction | AsyncScalarFunction | ImperativeAggregateFunction | ProcessTableFunction
    ):
        found = found()
    try:
        if isinstance(found, ProcessTableFunction):
            # Loaded with functions that are of this kind only.
            from flowsql_core.process_signature import make_own_process

            return make_own_process(found, name)
        if isinstance(found, ImperativeAggregateFunction):
            return make_own(found, name)
        return make_udf(found, name=name)
    except FlowSqlError:
        raise
    except (TypeError, ValueError, RuntimeError) as error:
        raise BindError(
            "function-not-loadable", f"{where} is no Python function that gives a value: {error}"
        ) from error
