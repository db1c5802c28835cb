"""A writer's schema and the columns that are wanted, as a program for :mod:`flowsql_compute.kernels.wire.avro_decode`.

Fields are found by name, or by an alias of the reader's; one that the writer does not have is NULL. Where the writer's
type is a narrower one, or says in which unit times are, values are converted (Avro's rules of schema resolution).
Names of records are not compared: derived schemas call all of them ``record``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from flowsql_compute.kernels.wire import avro_decode as op
from flowsql_connectors.formats.avro.generic import NULL as _NULL
from flowsql_connectors.formats.avro.generic import UnionType
from flowsql_connectors.formats.avro.schema import (
    ArrayOf,
    AvroType,
    Enumeration,
    Fixed,
    MapOf,
    Primitive,
    Record,
    Union,
)
from flowsql_core.errors import BindError, NotSupportedYetError
from flowsql_core.record import record
from flowsql_core.types.logical import (
    INT,
    ArrayType,
    BigIntType,
    BinaryStringType,
    BooleanType,
    CharacterType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LogicalType,
    MapType,
    MultisetType,
    RowType,
    TimestampLtzType,
    TimestampType,
    TimeType,
)

_OPERATIONS: Final = {
    "boolean": (op.BOOLEAN, 0),
    "int": (op.INTEGER, 0),
    "long": (op.INTEGER, 0),
    "float": (op.FLOAT, 4),
    "double": (op.DOUBLE, 8),
    "bytes": (op.BYTES, 0),
    "string": (op.BYTES, 0),
}


@record
class ReaderRules:
    """What a reader's own schema says of fields; dots are between the names of rows in rows.

    ``aliases``: further names that a writer may have given them. ``defaults``: what they are where a writer has none.
    """

    aliases: Mapping[str, tuple[str, ...]]
    defaults: Mapping[str, Any]


def rules_of(schema: AvroType) -> ReaderRules:
    """The aliases and defaults in a schema."""
    aliases: dict[str, tuple[str, ...]] = {}
    defaults: dict[str, Any] = {}
    _collect(schema, "", aliases, defaults)
    return ReaderRules(aliases, defaults)


def _collect(schema: AvroType, path: str, aliases: dict[str, tuple[str, ...]], defaults: dict[str, Any]) -> None:
    match schema:
        case Union(branches=branches):
            for branch in branches:
                _collect(branch, path, aliases, defaults)
        case ArrayOf(items=below) | MapOf(values=below):
            _collect(below, path, aliases, defaults)
        case Record(fields=fields):
            for member in fields:
                name = f"{path}.{member.name}" if path else member.name
                if member.aliases:
                    aliases[name] = member.aliases
                if member.has_default and member.default is not None:
                    defaults[name] = member.default
                _collect(member.type, name, aliases, defaults)


@dataclass(slots=True)
class Place:
    """Where values of a column go. ``leaf``: of values; of a row, whether there is one; of a list, where it ends.

    ``of`` is the writer's type of the values, None while there is none; then each is ``default``.
    """

    name: str
    type: LogicalType
    leaf: int
    below: list[Place] = field(default_factory=list)
    of: AvroType | None = None
    default: Any = None


@dataclass(slots=True)
class DecodeProgram:
    """What the kernel runs. ``names``: of the column that each instruction reads. ``lists``: some leaf lies in one."""

    code: np.ndarray[tuple[int, int], np.dtype[np.int64]]
    jumps: np.ndarray[tuple[int], np.dtype[np.int64]]
    leaves: int
    depth: int
    lists: bool
    places: list[Place]
    names: list[str]


def resolve(writer: AvroType, row: RowType, rules: ReaderRules | None = None) -> DecodeProgram:
    """The program that reads records of ``writer`` as rows of ``row``.

    Raises:
        BindError: a column cannot be read from what was written.
        NotSupportedYetError: a union of types that are kept in different ways, both of which fit a column.
    """
    compiler = _Compiler(rules or ReaderRules({}, {}))
    root = compiler.place("", row.as_nullable(False))
    compiler.read(writer, root)
    compiler.emit(op.END)
    return DecodeProgram(
        np.array(compiler.code, np.int64),
        np.array(compiler.jumps or [0], np.int64),
        compiler.leaves,
        compiler.deepest,
        compiler.lists,
        root.below,
        compiler.names,
    )


class _Compiler:
    def __init__(self, rules: ReaderRules) -> None:
        self._rules = rules
        self.code: list[tuple[int, int, int, int]] = []
        self.names: list[str] = []
        self.jumps: list[int] = []
        self.leaves = 0
        self.deepest = 0
        self.lists = False
        self._depth = 0
        self._path = ""

    def place(self, name: str, type_: LogicalType) -> Place:
        """Leaves for a column and what is inside of it."""
        made = Place(name, type_, self.leaves)
        self.leaves += 1
        inner = f"{name}." if name else ""
        self.lists = self.lists or isinstance(type_, ArrayType | MapType | MultisetType)
        match type_:
            case RowType(fields=fields):
                made.below = [self.place(f"{inner}{member.name}", member.type) for member in fields]
            case ArrayType(element=element):
                made.below = [self.place(name, element)]
            case MapType(key=key, value=value):
                made.below = [self.place(name, key.as_nullable(False)), self.place(name, value)]
            case MultisetType(element=element):
                made.below = [self.place(name, element.as_nullable(False)), self.place(name, INT)]
        return made

    def emit(self, operation: int, leaf: int = -1, argument: int = 0, null: int = -1) -> int:
        """Another instruction; its number."""
        self.code.append((operation, leaf, argument, null))
        self.names.append(self._path)
        return len(self.code) - 1

    def _here(self, at: int, argument: int) -> None:
        operation, leaf, _, null = self.code[at]
        self.code[at] = (operation, leaf, argument, null)

    def read(self, writer: AvroType, place: Place | None) -> None:
        """Values of ``writer`` to a place; without one they are passed over."""
        outer = self._path
        self._path = outer if place is None else place.name
        if place is not None and isinstance(place.type, UnionType):
            self._members(writer, place)
        elif not isinstance(writer, Union):
            if place is not None and not _fits(writer, place):
                raise _unfit(writer, place)
            self._value(writer, place, -1)
        elif not self._plain_union(writer, place):
            self._union(writer, place)
        self._path = outer

    def _plain_union(self, writer: Union, place: Place | None) -> bool:
        """A value that may be NULL, in one instruction."""
        null = writer.null
        if null is None or len(writer.branches) != 2:
            return False
        other = writer.branches[1 - null]
        if not isinstance(other, Primitive | Enumeration | Fixed):
            return False
        if place is not None and not place.type.nullable:
            return False
        if place is not None and not _fits(other, place):
            raise _unfit(other, place)
        self._value(other, place, null)
        return True

    def _union(self, writer: Union, place: Place | None) -> None:
        fitting = [place is None or _fits(branch, place) for branch in writer.branches]
        if not any(fitting):
            assert place is not None
            raise _unfit(writer, place)
        first = len(self.jumps)
        self.jumps += [0] * len(writer.branches)
        self.emit(op.UNION, -1, first, len(writer.branches))
        ends = []
        for at, (branch, fits) in enumerate(zip(writer.branches, fitting, strict=True)):
            self.jumps[first + at] = len(self.code)
            if fits:
                self._value(branch, place, -1)
                ends.append(self.emit(op.JUMP))
            else:
                self.emit(op.REFUSE)
        for end in ends:
            self._here(end, len(self.code))

    def _members(self, writer: AvroType, place: Place) -> None:
        """A value to the member of a union that is for its type: of the same number, else the first one that fits."""
        branches = writer.branches if isinstance(writer, Union) else (writer,)
        others = [branch for branch in branches if branch != _NULL]
        alike = len(others) == len(place.below) and all(map(_fits, others, place.below))
        first = len(self.jumps)
        if isinstance(writer, Union):
            self.jumps += [0] * len(branches)
            self.emit(op.UNION, -1, first, len(branches))
        ends = []
        for number, branch in enumerate(branches):
            if isinstance(writer, Union):
                self.jumps[first + number] = len(self.code)
            if branch == _NULL:
                if not place.type.nullable:
                    self.emit(op.REFUSE)
                    continue
                self._absent(place)
            else:
                fitting = [at for at, below in enumerate(place.below) if _fits(branch, below)]
                if not fitting:
                    raise _unfit(branch, place)
                chosen = others.index(branch) if alike else fitting[0]
                self.emit(op.PRESENT, place.leaf)
                for at, below in enumerate(place.below):
                    if at == chosen:
                        self._value(branch, below, -1)
                    else:
                        self._absent(below)
            ends.append(self.emit(op.JUMP))
        for end in ends:
            self._here(end, len(self.code))

    def _value(self, writer: AvroType, place: Place | None, null: int) -> None:
        leaf = -1 if place is None else place.leaf
        match writer:
            case Primitive(name="null"):
                if place is not None:
                    self._absent(place)
            case Primitive(name=name):
                operation, argument = _OPERATIONS[name]
                self._leaf(operation, argument, writer, place, null)
            case Enumeration(symbols=symbols):
                self._leaf(op.ENUM, len(symbols), writer, place, null)
            case Fixed(size=size):
                self._leaf(op.FIXED, size, writer, place, null)
            case Record():
                self._record(writer, place)
            case ArrayOf(items=items):
                self._list(leaf, [(items, None if place is None else place.below[0])])
            case MapOf(values=values):
                below = [None, None] if place is None else place.below
                self._list(leaf, [(Primitive("string"), below[0]), (values, below[1])])
            case Union():
                raise NotSupportedYetError("an Avro union in a union")

    def _leaf(self, operation: int, argument: int, writer: AvroType, place: Place | None, null: int) -> None:
        if place is None:
            self.emit(operation, -1, argument, null)
            return
        if place.of is not None and _kept(place.of) != _kept(writer):
            raise NotSupportedYetError(f"an Avro union of {place.of.shown} and {writer.shown} as {place.type}")
        place.of = writer
        self.emit(operation, place.leaf, argument, null)

    def _record(self, writer: Record, place: Place | None) -> None:
        if place is None:
            for member in writer.fields:
                self.read(member.type, None)
            return
        self.emit(op.PRESENT, place.leaf)
        wanted = {}
        for below in place.below:
            own = below.name.rpartition(".")[2] if place.name else below.name
            names = {member.name for member in writer.fields}
            found = next((name for name in (own, *self._rules.aliases.get(below.name, ())) if name in names), None)
            if found is not None:
                wanted[found] = below
            elif below.name in self._rules.defaults:
                below.default = _default(self._rules.defaults[below.name], below)
                self._absent(below)
            elif below.type.nullable:
                self._absent(below)
            else:
                raise BindError(
                    "avro-schema-mismatch",
                    f"Found {writer.name}, expecting {writer.name}, missing required field {below.name}",
                    hint=f"the schema that the rows were written with has no field '{own}': declare the column without "
                    "NOT NULL",
                )
        for member in writer.fields:
            self.read(member.type, wanted.get(member.name))

    def _list(self, leaf: int, parts: list[tuple[AvroType, Place | None]]) -> None:
        self._depth += 1
        self.deepest = max(self.deepest, self._depth)
        self.emit(op.OPEN)
        block = self.emit(op.BLOCK, leaf)
        body = len(self.code)
        for writer, place in parts:
            self.read(writer, place)
        self.emit(op.NEXT, leaf, body, block)
        self._here(block, self.emit(op.CLOSE, leaf))
        self._depth -= 1

    def _absent(self, place: Place) -> None:
        if isinstance(place.type, ArrayType | MapType | MultisetType):
            self.emit(op.EMPTY, place.leaf)
            return
        self.emit(op.ABSENT, place.leaf)
        for below in place.below:
            self._absent(below)


def _default(value: Any, place: Place) -> Any:
    """A default as it stands in a schema, as the value of a column."""
    match place.type:
        case BooleanType() if isinstance(value, bool):
            return value
        case IntegerType() if isinstance(value, int):
            return value
        case FloatType() | DoubleType() if isinstance(value, int | float):
            return float(value)
        case CharacterType() if isinstance(value, str):
            return value
        case ArrayType() | MapType() if not value:
            return []
    raise NotSupportedYetError(f"the default {value!r} of field '{place.name}' as {place.type.as_nullable()}")


def _kept(writer: AvroType) -> object:
    """Values of equal ones are kept and converted in the same way."""
    if isinstance(writer, Primitive) and writer.logical is None and writer.name in ("int", "long"):
        return "integer"
    if isinstance(writer, Primitive) and writer.logical is None and writer.name in ("bytes", "string"):
        return "bytes"
    return writer


def _fits(writer: AvroType, place: Place) -> bool:
    """Whether values of a type, which is no union, can be read into a column."""
    type_ = place.type
    name = writer.name if isinstance(writer, Primitive) else ""
    if name == "null":
        return type_.nullable
    match type_:
        case BooleanType():
            return name == "boolean"
        case BigIntType():
            return name in ("int", "long")
        case IntegerType() | DateType():
            return name == "int"
        case FloatType():
            return name in ("int", "long", "float")
        case DoubleType():
            return name in ("int", "long", "float", "double")
        case CharacterType():
            return name in ("string", "bytes") or isinstance(writer, Enumeration)
        case BinaryStringType():
            return name in ("string", "bytes") or isinstance(writer, Fixed)
        case DecimalType():
            return name == "bytes" or isinstance(writer, Fixed)
        case TimeType():
            return name == "int" or writer == Primitive("long", "time-micros")
        case TimestampType() | TimestampLtzType():
            return name == "long"
        case ArrayType():
            return isinstance(writer, ArrayOf)
        case MapType() | MultisetType():
            return isinstance(writer, MapOf)
        case RowType():
            return isinstance(writer, Record)
    return False


def _unfit(writer: AvroType, place: Place) -> BindError:
    return BindError(
        "avro-schema-mismatch",
        f"Found {writer.shown}, expecting {place.type.as_nullable()} in field '{place.name}'",
        hint="the rows were written with a schema that says so; Avro widens numbers, nothing else",
    )
