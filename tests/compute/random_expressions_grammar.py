"""Random well-typed SQL expressions over the signatures of the function registry.

A *kind* is a class of types that may stand for each other as an argument (``STRING`` for CHAR and VARCHAR). For every
function some calls on columns are bound first; those that bind are the *productions* that expressions are made of.
"""

from __future__ import annotations

import random
from collections import defaultdict
from dataclasses import dataclass

from random_expressions_data import ALWAYS, LITERALS, TARGETS, UNITS, WRITTEN, columns

from flowsql_compute.functions.registry import FunctionDef, definitions
from flowsql_compute.functions.signature import FAMILIES
from flowsql_core.config import Configuration
from flowsql_core.errors import FlowSqlError, InternalError
from flowsql_core.expr import Expr
from flowsql_core.span import Source
from flowsql_core.types import logical as t
from flowsql_core.types.coerce import explicit_cast_allowed
from flowsql_core.types.text import parse_type
from flowsql_grammar import parse_expression
from flowsql_planner.bind.context import BindContext
from flowsql_planner.bind.expression.binder import ExpressionBinder
from flowsql_planner.bind.expression.scope import Namespace, Scope
from flowsql_planner.catalog.manager import CatalogManager

#: Need a watermark or are no expression of their own.
LEFT_OUT = frozenset({"CURRENT_WATERMARK", "SOURCE_WATERMARK", "PROCTIME"})
#: Calls that are tried for each overload and number of arguments.
_TRIES = 6
_MOST_TRIES = 100


@dataclass(frozen=True, slots=True)
class Node:
    """An expression as text, and the expressions that it was made of."""

    text: str
    parts: tuple[Node, ...] = ()

    def below(self) -> list[Node]:
        """This node and all below it, smaller ones first."""
        found = [self, *(node for part in self.parts for node in part.below())]
        return sorted(found, key=lambda node: len(node.text))


@dataclass(frozen=True, slots=True)
class Production:
    """One way to make a value of kind ``result``: a template and the kinds of what goes into its holes."""

    name: str
    template: str
    kinds: tuple[str, ...]
    result: str


def kind_of(type_: t.LogicalType) -> str:
    """The kind of a type."""
    match type_:
        case t.CharacterType():
            return "STRING"
        case t.BinaryStringType():
            return "BINARY"
        case t.ArrayType(element=element):
            return f"ARRAY<{kind_of(element)}>"
        case t.MapType(key=key, value=value):
            return f"MAP<{kind_of(key)}, {kind_of(value)}>"
        case t.RowType(fields=fields):
            return f"ROW({', '.join(kind_of(field.type) for field in fields)})"
    return type_.root


_INFIX = frozenset({"+", "-", "*", "/", "%", "=", "<>", "<", "<=", ">", ">=", "||", "AND", "OR", "IS DISTINCT FROM",
                    "IS NOT DISTINCT FROM", "LIKE", "SIMILAR TO"})  # fmt: skip
_WORDS = frozenset({"CURRENT_DATE", "CURRENT_TIME", "CURRENT_TIMESTAMP", "LOCALTIME", "LOCALTIMESTAMP"})
_PARTS = frozenset({"EXTRACT", "FLOOR", "CEIL", "TIMESTAMPADD", "TIMESTAMPDIFF"})


def template(definition: FunctionDef, count: int, unit: str) -> str:
    """How a call with so many arguments is written; ``{0}`` is the first one."""
    name, holes = definition.name, [f"{{{place}}}" for place in range(count)]
    commas = ", ".join(holes)
    if name in _INFIX and count > 1:
        if name in ("LIKE", "SIMILAR TO") and count == 3:
            return f"({{0}} {name} {{1}} ESCAPE {{2}})"
        return f"({f' {name} '.join(holes)})"
    if name in ("+", "-", "NOT"):
        return f"({name} {{0}})"
    if name.startswith("IS ") and count == 1:
        return f"({{0}} {name})"
    if name in _WORDS:
        return name
    match name, count:
        case "EXTRACT", 1:
            return f"EXTRACT({unit} FROM {{0}})"
        case (("FLOOR" | "CEIL"), 1) if definition.signature.params == ("DATETIME",):
            return f"{name}({{0}} TO {unit})"
        case (("TIMESTAMPADD" | "TIMESTAMPDIFF"), 2):
            return f"{name}({unit}, {{0}}, {{1}})"
        case "IN", _:
            return f"({{0}} IN ({', '.join(holes[1:])}))"
        case "ITEM", 2:
            return "{0}[{1}]"
        case "FIELD", 1:
            return "({0}).a"
        case "ARRAY", _:
            return f"ARRAY[{commas}]"
        case "MAP", _:
            return f"MAP[{commas}]"
        case "OVERLAPS", 4:
            return "(({0}, {1}) OVERLAPS ({2}, {3}))"
        case "POSITION", 2:
            return "POSITION({0} IN {1})"
        case "POSITION", 3:
            return f"LOCATE({commas})"
        case "TRIM", 2:
            return "TRIM(BOTH {1} FROM {0})"
        case "OVERLAY", 3:
            return "OVERLAY({0} PLACING {1} FROM {2})"
        case "OVERLAY", 4:
            return "OVERLAY({0} PLACING {1} FROM {2} FOR {3})"
        case "JSON_OBJECT", _:
            pairs = zip(holes[::2], holes[1::2], strict=False)
            return f"JSON_OBJECT({', '.join(f'KEY {key} VALUE {value}' for key, value in pairs)})"
        case "OBJECT_OF", 3:
            return "OBJECT_OF({0}, 'a', {1}, 'b', {2})"
        case "OBJECT_UPDATE", _ if count > 1:
            return "OBJECT_UPDATE(OBJECT_OF('com.example.Thing', 'a', {0}, 'b', {1}), 'a', {0})"
    return f"{name}({commas})"


class Grammar:
    """Columns, what can be made of them, and the making of expressions."""

    def __init__(self) -> None:
        named = columns()
        self.arrays = [array for _, _, _, array in named]
        self.schema = tuple(t.Column(name, type_) for name, _, type_, _ in named)
        self._scope = Scope((Namespace("t", self.schema),))
        self._catalogs, self._config = CatalogManager(), Configuration()
        self.columns: dict[str, list[str]] = defaultdict(list)
        self.samples: dict[str, tuple[str, t.LogicalType]] = {}
        for name, text, type_, _ in named:
            self.columns[kind_of(type_)].append(name)
            self.samples.setdefault(kind_of(type_), (text, type_))
        self.kinds = list(self.samples)
        self.by_name: dict[str, list[Production]] = defaultdict(list)
        self.by_kind: dict[str, dict[str, list[Production]]] = defaultdict(lambda: defaultdict(list))
        rng = random.Random(11)
        for definition in definitions():
            if definition.name not in LEFT_OUT:
                self._probe(definition, rng)
        self._syntax()
        self.names = list(self.by_name)

    def bind(self, text: str) -> Expr:
        """The typed expression.

        Raises:
            FlowSqlError: it is not well-typed, or not supported.
        """
        source = Source(text)
        context = BindContext(self._catalogs, self._config, source)
        return ExpressionBinder(context, self._scope).bind(parse_expression(source))

    def expression(self, rng: random.Random, depth: int = 3) -> Node:
        """A random expression; every function is equally likely to be its outermost one."""
        name = rng.choice(self.names)
        return self._build(rng.choice(self.by_name[name]), rng, depth)

    # Productions

    def _probe(self, definition: FunctionDef, rng: random.Random) -> None:
        signature = definition.signature
        most = signature.max_args
        counts = sorted({signature.required, signature.required + 1, signature.required + 2, most or 0, 1, 3})
        for count in counts:
            if not signature.accepts_count(count) or (count == 0 and signature.params and signature.required):
                continue
            known: set[tuple[str, tuple[str, ...]]] = set()
            for attempt in range(_MOST_TRIES if count else 1):
                if attempt >= _TRIES and definition.name in self.by_name:
                    break
                kinds = self._choose([signature.param(place) for place in range(count)], rng)
                unit = rng.choice(UNITS)
                text = template(definition, count, unit)
                if (text, kinds) in known:
                    continue
                known.add((text, kinds))
                args = [self._argument(definition.name, place, kind, rng) for place, kind in enumerate(kinds)]
                try:
                    made = self.bind(text.format(*args))
                except InternalError:
                    raise
                except FlowSqlError:
                    continue
                self._add(Production(definition.name, text, kinds, kind_of(made.type)))

    def _choose(self, families: list[str], rng: random.Random) -> tuple[str, ...]:
        chosen: list[str] = []
        for place, family in enumerate(families):
            fitting = [kind for kind in self.kinds if isinstance(self.samples[kind][1], FAMILIES[family].members)]
            near = rng.random()
            if place and len(fitting) == len(self.kinds):
                # Arguments of any type mostly have the type of the first one, or of its elements.
                inner = chosen[0].partition("<")[2].removesuffix(">").split(", ")[-1]
                if near < 0.45 and inner in self.kinds:
                    chosen.append(inner)
                    continue
                if near < 0.9:
                    chosen.append(chosen[place - 2 if near < 0.1 and place > 1 else 0])
                    continue
            chosen.append(rng.choice(fitting or self.kinds))
        return tuple(chosen)

    def _argument(self, name: str, place: int, kind: str, rng: random.Random) -> str:
        written = _written(name, place)
        return rng.choice(self.columns[kind]) if written is None else rng.choice(written)

    def _syntax(self) -> None:
        # JSON(...) is a value of these alone.
        self._add(Production("JSON", "JSON_OBJECT(KEY 'j' VALUE JSON({0}))", ("STRING",), "STRING"))
        for kind, (_, type_) in self.samples.items():
            self._add(Production("CASE", "CASE WHEN {0} THEN {1} ELSE {2} END", ("BOOLEAN", kind, kind), kind))
            self._add(Production("CASE", "CASE WHEN {0} THEN {1} END", ("BOOLEAN", kind), kind))
            self._add(Production("CASE", "CASE {0} WHEN {1} THEN {2} END", ("INTEGER", "INTEGER", kind), kind))
            if not t.is_nested(type_) and not isinstance(type_, t.BitmapType | t.VariantType):
                self._add(Production("BETWEEN", "({0} BETWEEN {1} AND {2})", (kind, kind, kind), "BOOLEAN"))
                self._add(Production("NOT IN", "({0} NOT IN ({1}, {2}))", (kind, kind, kind), "BOOLEAN"))
            for text in TARGETS:
                target = parse_type(text)
                if explicit_cast_allowed(type_, target):
                    for cast in ("CAST", "TRY_CAST"):
                        self._add(Production(cast, f"{cast}({{0}} AS {text})", (kind,), kind_of(target)))

    def _add(self, production: Production) -> None:
        self.by_name[production.name].append(production)
        self.by_kind[production.result][production.name].append(production)

    # Expressions

    def _build(self, production: Production, rng: random.Random, depth: int) -> Node:
        parts: list[Node] = []
        for place, kind in enumerate(production.kinds):
            written = _written(production.name, place)
            if written is not None and ((production.name, place) in ALWAYS or rng.random() < 0.9):
                parts.append(Node(rng.choice(written)))
            else:
                parts.append(self._make(kind, rng, depth - 1))
        text = production.template.format(*(part.text for part in parts))
        return Node(text, tuple(parts))

    def _make(self, kind: str, rng: random.Random, depth: int) -> Node:
        if depth > 0 and rng.random() < 0.75 and self.by_kind[kind]:
            names = self.by_kind[kind]
            frequent = [name for name in ("CAST", "CASE") if name in names]
            name = rng.choice(frequent) if frequent and rng.random() < 0.25 else rng.choice(list(names))
            return self._build(rng.choice(names[name]), rng, depth)
        chance = rng.random()
        if chance < 0.05:
            return Node(f"CAST(NULL AS {self.samples[kind][0]})")
        literals = LITERALS.get(kind)
        if literals and chance < 0.3:
            return Node(rng.choice(literals))
        return Node(rng.choice(self.columns[kind]))


def _written(name: str, place: int) -> list[str] | None:
    """What is written at a place; keys of maps and JSON objects stand at every other one."""
    if name in ("MAP", "JSON_OBJECT"):
        place = 0 if place % 2 == 0 else -1
    return WRITTEN.get((name, place))
