"""Geometries as MySQL keeps them: a reference system, then well-known binary (OGC 06-103r4), as JSON of Flink CDC."""

from __future__ import annotations

import json
import struct
from itertools import pairwise
from typing import Any, Final

_NAMES: Final = {
    1: "Point", 2: "LineString", 3: "Polygon", 4: "MultiPoint", 5: "MultiLineString", 6: "MultiPolygon",
    7: "GeometryCollection",
}  # fmt: skip
_COLLECTION: Final = 7


def geometry_text(value: bytes) -> str:
    """``{"coordinates":[1,1],"type":"Point","srid":0}``; numbers without fraction as integers."""
    reference = int.from_bytes(value[:4], "little")
    shape, _ = _shape(value, 4)
    return json.dumps({**shape, "srid": reference}, separators=(",", ":"))


def _shape(value: bytes, at: int) -> tuple[dict[str, Any], int]:
    """A geometry at a place, and the place behind it."""
    order = "<" if value[at] else ">"
    kind = struct.unpack_from(order + "I", value, at + 1)[0]
    if kind == _COLLECTION:
        parts, at = _parts(value, at + 5, order)
        # Flink CDC tells the type of a part first.
        parts = [{"type": part.pop("type"), **part} for part in parts]
        return {"geometries": parts, "type": _NAMES[kind]}, at
    coordinates, at = _coordinates(value, at + 5, order, kind)
    return {"coordinates": coordinates, "type": _NAMES[kind]}, at


def _parts(value: bytes, at: int, order: str) -> tuple[list[dict[str, Any]], int]:
    count = struct.unpack_from(order + "I", value, at)[0]
    at += 4
    found = []
    for _ in range(count):
        part, at = _shape(value, at)
        found.append(part)
    return found, at


def _coordinates(value: bytes, at: int, order: str, kind: int) -> tuple[list[Any], int]:
    if kind == 1:
        return _point(value, at, order), at + 16
    if kind == 2:
        return _points(value, at, order)
    if kind >= 4:
        parts, at = _parts(value, at, order)
        return [part["coordinates"] for part in parts], at
    count = struct.unpack_from(order + "I", value, at)[0]
    at += 4
    rings: list[Any] = []
    for _ in range(count):
        ring, at = _points(value, at, order)
        # As in Flink CDC: the outer ring goes round to the left, holes to the right.
        rings.append(ring if (_area(ring) < 0) == bool(rings) else ring[::-1])
    return rings, at


def _area(ring: list[Any]) -> float:
    """Twice the area within a ring; negative where it goes round to the right."""
    return float(sum(x * b - a * y for (x, y), (a, b) in pairwise(ring)))


def _points(value: bytes, at: int, order: str) -> tuple[list[Any], int]:
    count = struct.unpack_from(order + "I", value, at)[0]
    at += 4
    return [_point(value, at + 16 * index, order) for index in range(count)], at + 16 * count


def _point(value: bytes, at: int, order: str) -> list[float | int]:
    return [int(part) if part.is_integer() else part for part in struct.unpack_from(order + "dd", value, at)]
