"""Avro schemas: their JSON read into nodes.

Source: Apache Avro specification 1.12, "Schema Declaration", "Names", "Logical Types".
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import orjson

from flowsql_core.errors import ConnectorError
from flowsql_core.record import record

PRIMITIVES: Final = frozenset({"null", "boolean", "int", "long", "float", "double", "bytes", "string"})


@record
class AvroType:
    """A schema. ``logical``: its logical type, None where there is none that is known of."""

    @property
    def shown(self) -> str:
        """How errors call it."""
        raise NotImplementedError


@record
class Primitive(AvroType):
    """One of the eight types without parts."""

    name: str
    logical: str | None = None
    precision: int = 0
    scale: int = 0

    @property
    def shown(self) -> str:
        """With its logical type."""
        return self.name if self.logical is None else f"{self.name} ({self.logical})"


@record
class AvroField:
    """A field of a record; ``default`` counts where ``has_default``."""

    name: str
    type: AvroType
    aliases: tuple[str, ...] = ()
    has_default: bool = False
    default: Any = None


@record
class Record(AvroType):
    """Fields in the order in which they are written."""

    name: str
    fields: tuple[AvroField, ...]

    @property
    def shown(self) -> str:
        """With its name."""
        return f"record {self.name}"


@record
class ArrayOf(AvroType):
    """A list."""

    items: AvroType

    @property
    def shown(self) -> str:
        """With its items."""
        return f"array of {self.items.shown}"


@record
class MapOf(AvroType):
    """Texts to values."""

    values: AvroType

    @property
    def shown(self) -> str:
        """With its values."""
        return f"map of {self.values.shown}"


@record
class Union(AvroType):
    """One of several."""

    branches: tuple[AvroType, ...]

    @property
    def shown(self) -> str:
        """With its branches."""
        return f"union of {', '.join(branch.shown for branch in self.branches)}"

    @property
    def null(self) -> int | None:
        """Which branch is null, if one is."""
        found = (at for at, branch in enumerate(self.branches) if branch == Primitive("null"))
        return next(found, None)


@record
class Enumeration(AvroType):
    """One of a few words."""

    name: str
    symbols: tuple[str, ...]

    @property
    def shown(self) -> str:
        """With its name."""
        return f"enum {self.name}"


@record
class Fixed(AvroType):
    """So many bytes."""

    name: str
    size: int
    logical: str | None = None
    precision: int = 0
    scale: int = 0

    @property
    def shown(self) -> str:
        """With its size."""
        return f"fixed({self.size})"


def parse_schema(text: str | bytes) -> AvroType:
    """The schema of a JSON text.

    Raises:
        ConnectorError: it is no JSON, or no schema; recursive records, which no column can hold.
    """
    try:
        document = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise _no_schema(f"it is no JSON: {error}") from error
    return _Parser().parse(document, "")


def _no_schema(reason: str) -> ConnectorError:
    return ConnectorError("bad-avro-schema", f"The Avro schema cannot be used: {reason}.")


class _Parser:
    """Names that were defined so far."""

    def __init__(self) -> None:
        self._known: dict[str, AvroType | None] = {}

    def parse(self, document: Any, namespace: str) -> AvroType:
        match document:
            case str():
                return Primitive(document) if document in PRIMITIVES else self._named(document, namespace)
            case list():
                return Union(tuple(self.parse(branch, namespace) for branch in document))
            case {"type": type_}:
                return self._complex(type_, document, namespace)
        raise _no_schema(f"{orjson.dumps(document).decode()[:100]} is no type")

    def _named(self, name: str, namespace: str) -> AvroType:
        full = _full_name(name, namespace)
        found = self._known.get(full, self._known.get(name, ...))
        if found is ...:
            raise _no_schema(f"no type '{name}' is defined before it is used")
        if found is None:
            raise _no_schema(f"record '{full}' holds itself, and no column can")
        assert isinstance(found, AvroType)
        return found

    def _complex(self, type_: Any, document: Mapping[str, Any], namespace: str) -> AvroType:
        if not isinstance(type_, str):
            return self.parse(type_, namespace)
        if type_ in PRIMITIVES:
            return Primitive(type_, *_logical(document, None))
        try:
            match type_:
                case "array":
                    return ArrayOf(self.parse(document["items"], namespace))
                case "map":
                    return MapOf(self.parse(document["values"], namespace))
                case "record" | "error" | "enum" | "fixed":
                    return self._definition(type_, document, namespace)
        except KeyError as error:
            raise _no_schema(f"{error} is missing in a type '{type_}'") from error
        return self._named(type_, namespace)

    def _definition(self, type_: str, document: Mapping[str, Any], namespace: str) -> AvroType:
        full = _full_name(document["name"], document.get("namespace", namespace))
        inner = full.rpartition(".")[0]
        self._known[full] = None
        made: AvroType
        if type_ == "enum":
            made = Enumeration(full, tuple(document["symbols"]))
        elif type_ == "fixed":
            made = Fixed(full, document["size"], *_logical(document, document["size"]))
        else:
            made = Record(full, tuple(self._field(field, inner) for field in document["fields"]))
        self._known[full] = made
        return made

    def _field(self, document: Mapping[str, Any], namespace: str) -> AvroField:
        return AvroField(
            document["name"],
            self.parse(document["type"], namespace),
            tuple(document.get("aliases", ())),
            "default" in document,
            document.get("default"),
        )


def _logical(document: Mapping[str, Any], size: int | None) -> tuple[str | None, int, int]:
    """The logical type, and precision and scale of a decimal; ``size``: bytes that its numbers have at most.

    Logical types that are not valid are left out of account, as the specification wants it.
    """
    logical = document.get("logicalType")
    if logical != "decimal":
        return logical, 0, 0
    precision, scale = document.get("precision"), document.get("scale", 0)
    if not (isinstance(precision, int) and isinstance(scale, int) and 0 <= scale <= precision and precision > 0):
        return None, 0, 0
    if size is not None and 10**precision > 2 ** (8 * size - 1):
        return None, 0, 0
    return logical, precision, scale


def _full_name(name: str, namespace: str | None) -> str:
    return name if "." in name or not namespace else f"{namespace}.{name}"
