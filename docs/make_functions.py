"""Write down the functions and types that the code declares: ``python docs/make_functions.py``.

``docs/functions.md`` comes from the registry, ``docs/types.md`` from the logical types and their Arrow forms, and
``flowsql_compute/functions/declared_in.py``, by which the registry finds the module of a name, from the modules
themselves. ``flowsql_grammar/formatting/functions.py`` are the names that the formatter writes in capitals.
"""

from __future__ import annotations

import inspect
import re
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

from flowsql_compute.functions.aggregate import aggregate_function, aggregate_names
from flowsql_compute.functions.flink_names import FLINK_FUNCTIONS
from flowsql_compute.functions.registry import FunctionDef, Nulls, declared_in, definitions
from flowsql_compute.functions.signature import FAMILIES, Signature
from flowsql_compute.functions.spark_form import NoSparkForm
from flowsql_core.errors import NotSupportedYetError
from flowsql_core.types import logical as t
from flowsql_core.types.arrow import to_arrow
from flowsql_grammar.reserved import FUNCTION_WORDS

DOCS = Path(__file__).resolve().parent
FUNCTIONS, TYPES = DOCS / "functions.md", DOCS / "types.md"
DECLARED_IN = DOCS.parent / "runtime" / "flowsql_compute" / "functions" / "declared_in.py"
CAPITALS = DOCS.parent / "grammar" / "flowsql_grammar" / "formatting" / "functions.py"

#: Built-in functions that no registry knows: windows, and what stands in MATCH_RECOGNIZE.
_FORMS_OF_THEIR_OWN = (
    *(f"{kind}_{what}" for kind in ("TUMBLE", "HOP", "SESSION") for what in ("START", "END", "ROWTIME", "PROCTIME")),
    *("CUMULATE", "DESCRIPTOR", "FIRST", "LAST", "MATCH_ROWTIME", "MATCH_PROCTIME"),
)

_NULL_RULES = {
    Nulls.PROPAGATE: "NULL when an argument is NULL",
    Nulls.NULLABLE: "may be NULL whatever comes in",
    Nulls.NOT_NULL: "never NULL",
    Nulls.CUSTOM: "by its own rule",
}


def signature_text(signature: Signature) -> str:
    """``LPAD(CHARACTER, INTEGER, CHARACTER) -> STRING``."""
    params = []
    for place, name in enumerate(signature.params):
        shown = FAMILIES[name].shown
        repeated = signature.variadic and place == len(signature.params) - 1
        params.append(f"{shown} ..." if repeated else f"[{shown}]" if place >= signature.required else shown)
    result = signature.result
    if result.startswith("$"):
        result = f"type of argument {result[1:]}"
    return f"{signature.name}({', '.join(params)}) -> {'common type' if result == 'T' else result}"


def one_line(doc: str) -> str:
    """A docstring as one line that a table can hold."""
    return " ".join(doc.split()).replace("``", "`").replace("|", "\\|")


def _rows(group: list[FunctionDef]) -> Iterator[str]:
    for definition in group:
        text = signature_text(definition.signature).replace("|", "\\|")
        spark = definition.spark
        form = "kernel" if isinstance(spark, NoSparkForm) and spark.by_kernel else "refused"
        shown = form if isinstance(spark, NoSparkForm) else "`" + spark.replace("|", "\\|") + "`"
        marks = "" if definition.deterministic else " Not deterministic."
        marks += " May fail." if definition.raises else ""
        result = "derived" if definition.returns is not None else ""
        text = text.split(" -> ")[0] if result else text
        rule = _NULL_RULES[definition.nulls]
        yield f"| `{text}` | {one_line(definition.doc)}{marks} | {rule} | {shown} |\n"


def render_functions() -> str:
    """The page of functions."""
    groups: dict[str, list[FunctionDef]] = {}
    for definition in definitions():
        groups.setdefault(definition.kernel.__module__, []).append(definition)
    parts = [
        "# Functions\n\nWritten by `docs/make_functions.py` from the registry. Arguments are type families; `[X]` may "
        "be left out, `X ...` repeats. Where no result stands behind the brackets it follows from the arguments. "
        "*Spark* is the text on Spark, `kernel` where FlowSQL's own kernel runs there, `refused` where neither does.\n"
    ]
    for module, group in groups.items():
        title = (sys.modules[module].__doc__ or "").split("\n\n")[0].strip().rstrip(".")
        parts.append(f"\n## {one_line(title)}\n\n| form | what it gives | NULL | Spark |\n|---|---|---|---|\n")
        parts.extend(_rows(group))
    parts.append("\n## Aggregates\n\n")
    parts.extend(f"- {form}\n" for form in _aggregate_forms())
    missing = sorted(FLINK_FUNCTIONS - {*declared_in(), *aggregate_names()})
    parts.append(f"\n## Not yet\n\nFlink has these too: {', '.join(f'`{name}`' for name in missing)}.\n")
    return "".join(parts)


def _aggregate_forms() -> Iterator[str]:
    for name in sorted(aggregate_names()):
        try:
            found = aggregate_function(name)
        except NotSupportedYetError:
            continue
        if found.name == name and not name.startswith("$"):
            yield ", ".join(f"`{form}`" for form in found.forms)


def _types(base: type[t.LogicalType]) -> Iterator[type[t.LogicalType]]:
    for kind in base.__subclasses__():
        if "root" in vars(kind):
            yield kind
        yield from _types(kind)


def _example(kind: type[t.LogicalType]) -> t.LogicalType:
    """A type of each kind, with its parameters as they are if nothing is written."""
    given: dict[type[t.LogicalType], t.LogicalType] = {
        t.ArrayType: t.ArrayType(element=t.INT),
        t.MapType: t.MapType(key=t.STRING, value=t.INT),
        t.MultisetType: t.MultisetType(element=t.STRING),
        t.RowType: t.RowType(fields=(t.Field("a", t.INT), t.Field("b", t.STRING))),
        t.RawType: t.RawType(class_name="decimal.Context"),
        t.StructuredType: t.StructuredType(fields=(t.Field("sku", t.STRING),), class_name="shop.Item"),
    }
    return given.get(kind) or kind()


def render_types() -> str:
    """The page of types."""
    parts = [
        "# Types\n\nWritten by `docs/make_functions.py` from the code. Every type may carry `NOT NULL`. The Arrow "
        "type is what a column is made of in memory.\n\n| type | what it holds | Arrow |\n|---|---|---|\n"
    ]
    for kind in dict.fromkeys(_types(t.LogicalType)):
        example = _example(kind)
        try:
            arrow = f"`{to_arrow(example)}`"
        except NotSupportedYetError:
            arrow = "-"
        parts.append(f"| `{example}` | {one_line(inspect.getdoc(kind) or '')} | {arrow} |\n")
    return "".join(parts)


def render_declared_in() -> str:
    """The module of names and the modules that declare them."""
    lines = []
    for name, modules in declared_in().items():
        shown = ", ".join(f'"{module}"' for module in modules) + ("," if len(modules) == 1 else "")
        lines.append(f'    "{name}": ({shown}),\n')
    return (
        '"""Which modules declare a function, by name or alias. Written by ``docs/make_functions.py``."""\n\n'
        "from __future__ import annotations\n\nfrom typing import Final\n\n"
        "DECLARED_IN: Final[dict[str, tuple[str, ...]]] = {\n" + "".join(lines) + "}\n"
    )


def render_written_in_capitals() -> str:
    """The module of names that the formatter writes in capitals."""
    names = {*FLINK_FUNCTIONS, *declared_in(), *aggregate_names(), *FUNCTION_WORDS, *_FORMS_OF_THEIR_OWN}
    shown = textwrap.fill(
        " ".join(sorted(name for name in names if re.fullmatch(r"[A-Z]\w*", name))),
        120,
        initial_indent="    ",
        subsequent_indent="    ",
        break_on_hyphens=False,
    )
    return (
        '"""Names of built-in functions, which the formatter writes in capitals. '
        'Written by ``docs/make_functions.py``."""\n\n'
        f'from __future__ import annotations\n\n_WORDS = """\n{shown}\n"""\n\nFUNCTIONS = frozenset(_WORDS.split())\n'
    )


PAGES = (
    (FUNCTIONS, render_functions),
    (TYPES, render_types),
    (DECLARED_IN, render_declared_in),
    (CAPITALS, render_written_in_capitals),
)


if __name__ == "__main__":
    for path, render in PAGES:
        text = render()
        changed = not path.exists() or path.read_text(encoding="utf-8") != text
        if "--check" in sys.argv:
            if changed:
                sys.exit(f"{path} is not up to date: run python docs/make_functions.py")
        elif changed:
            path.write_text(text, encoding="utf-8")
