"""``_metadata``: what a snapshot holds and where each part of it stands (docs/snapshots.md has the format).

A part is a run of bytes in a file of the snapshot, or in ``_metadata`` itself, with its digest. ``_metadata`` is magic,
version, length of the header, the header (JSON), the parts that stand in it, and a digest of all of that.
"""

from __future__ import annotations

import struct
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Final

import orjson
import xxhash

from flowsql_core.errors import ConnectorError
from flowsql_runtime.checkpoint.layout import OperatorLayout, layout_of_json
from flowsql_runtime.checkpoint.names import plain_name, shared_name

MAGIC: Final = b"FLOWSQLS"
VERSION: Final = 3
#: Formats that are read; 1 knows no files of a backend, and up to 2 committables are hexadecimal digits in the header.
READ_VERSIONS: Final = (1, 2, 3)
_HEAD: Final = struct.Struct("<8sHHQ")
_DIGEST_BYTES: Final = 16


class CorruptSnapshotError(ConnectorError):
    """A file of a snapshot is missing, cut or changed."""

    def __init__(self, path: str, what: str) -> None:
        super().__init__(
            "corrupt-snapshot", f"The snapshot's file '{path}' {what}.", hint="start from an older checkpoint"
        )


@dataclass(frozen=True, slots=True)
class Part:
    """Bytes ``offset .. offset + length`` of a file; ``file`` "" is ``_metadata`` behind its header.

    ``groups`` are the first and the last key group of the rows in it, None where rows belong to no key.
    """

    file: str
    offset: int
    length: int
    digest: str
    rows: int = 0
    groups: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class SharedFile:
    """An immutable file of a backend, which several checkpoints may have.

    ``name``: what the backend calls it. ``file``: below the folder that has the checkpoint's (``shared/...``), or a
    whole path or URI where another job wrote it.
    """

    name: str
    file: str
    length: int
    digest: str


@dataclass(frozen=True, slots=True)
class NativeState:
    """Keyed state as files of its backend, beside the tables of ``keyed``: no key is in both.

    ``database``: identity of what wrote the files; a name means one file there. ``groups``: first and last key group.
    ``private``: files of this checkpoint alone, by what the backend calls them.
    """

    backend: str
    database: str
    groups: tuple[int, int]
    shared: tuple[SharedFile, ...]
    private: dict[str, Part]


@dataclass(frozen=True, slots=True)
class SubtaskState:
    """What one operator in one subtask remembered; at the head of a task also what was on its way to the task.

    ``keyed``: per state name Arrow IPC streams, by key groups. ``operator``: one Arrow IPC stream with list, union and
    broadcast state. ``watermarks_ms``: combined, then by input.
    """

    subtask: int
    keyed: dict[str, tuple[Part, ...]] = field(default_factory=dict)
    operator: Part | None = None
    watermarks_ms: tuple[int, ...] = ()
    in_flight: Part | None = None
    native: NativeState | None = None

    @property
    def size_bytes(self) -> int:
        """Bytes of all parts and files."""
        shared = () if self.native is None else self.native.shared
        return sum(part.length for part in parts_of(self)) + sum(one.length for one in shared)


@dataclass(frozen=True, slots=True)
class ReadableColumn:
    """A column of a state's tables: its name there, its name in the query, the text of its SQL type."""

    stored: str
    name: str
    type: str


@dataclass(frozen=True, slots=True)
class OperatorState:
    """One operator over all subtasks. ``finished``: subtasks that had ended before the barrier.

    ``layout``: of keyed state, None where its operator alone knows. ``rows``: per input a digest of its columns,
    ``types`` of their types (nothing in older snapshots).
    ``columns``: per state name how queries show its columns, keys first; nothing for states of Python objects.
    """

    uid: str
    name: str
    kind: str
    parallelism: int
    max_parallelism: int
    subtasks: tuple[SubtaskState, ...]
    finished: tuple[int, ...] = ()
    layout: OperatorLayout | None = None
    rows: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    columns: dict[str, tuple[ReadableColumn, ...]] = field(default_factory=dict)

    @property
    def is_finished(self) -> bool:
        """Whether all subtasks had ended."""
        return len(self.finished) == self.parallelism


@dataclass(frozen=True, slots=True)
class Manifest:
    """A whole snapshot.

    ``committables``: per sink what its writers had prepared and nobody had committed. ``enumerators`` and
    ``committers``: their own state, as hexadecimal digits. ``lineage``: the first job of those that went on from
    each other's snapshots; what a dead one left behind belongs to all of them. ``checkpointed_bytes``: of state that
    were written for this snapshot; None where nobody said. ``objects``: state or rows on their way may be Python
    objects; None where nobody said.
    """

    checkpoint_id: int
    kind: str
    timestamp_ms: int
    job_id: str
    job_name: str
    operators: dict[str, OperatorState]
    committables: dict[str, tuple[bytes, ...]] = field(default_factory=dict)
    enumerators: dict[str, str] = field(default_factory=dict)
    committers: dict[str, str] = field(default_factory=dict)
    flowsql: str = ""
    lineage: str = ""
    checkpointed_bytes: int | None = None
    objects: bool | None = None

    @property
    def size_bytes(self) -> int:
        """Bytes of state, also of what older checkpoints wrote."""
        return sum(state.size_bytes for found in self.operators.values() for state in found.subtasks)

    def files(self) -> tuple[str, ...]:
        """Names of the files that hold parts."""
        parts = [part for found in self.operators.values() for state in found.subtasks for part in parts_of(state)]
        return tuple(sorted({part.file for part in parts if part.file}))

    def natives(self) -> list[NativeState]:
        """All state that stands in files of backends."""
        states = (state for found in self.operators.values() for state in found.subtasks)
        return [state.native for state in states if state.native is not None]


def parts_of(state: SubtaskState) -> list[Part]:
    """All parts of one subtask's state."""
    found = [part for parts in state.keyed.values() for part in parts]
    if state.native is not None:
        found += state.native.private.values()
    return found + [part for part in (state.operator, state.in_flight) if part is not None]


def digest_of(data: Any) -> str:
    """The digest that a part carries: XXH3, 128 bits, in hexadecimal digits."""
    return xxhash.xxh3_128_hexdigest(data)


def encode_manifest(manifest: Manifest, inline: bytes) -> bytes:
    """``_metadata`` with the parts that stand in it."""
    told = asdict(replace(manifest, committables={}))
    behind: list[bytes] = [inline]
    places: dict[str, list[tuple[int, int]]] = {}
    end = len(inline)
    for uid, prepared in manifest.committables.items():
        places[uid] = []
        for one in prepared:
            places[uid].append((end, len(one)))
            behind.append(one)
            end += len(one)
    header = orjson.dumps({**told, "committables": places})
    body = b"".join((_HEAD.pack(MAGIC, VERSION, 0, len(header)), header, *behind))
    return body + xxhash.xxh3_128_digest(body)


def decode_manifest(data: memoryview, path: str) -> tuple[Manifest, memoryview]:
    """The manifest, and the parts that stand in ``_metadata``.

    Raises:
        CorruptSnapshotError: the bytes are not those that were written.
    """
    if len(data) < _HEAD.size + _DIGEST_BYTES or bytes(data[:8]) != MAGIC:
        raise CorruptSnapshotError(path, "is not a snapshot's metadata")
    body = data[:-_DIGEST_BYTES]
    if xxhash.xxh3_128_digest(body) != bytes(data[-_DIGEST_BYTES:]):
        raise CorruptSnapshotError(path, "is cut or damaged: its checksum does not match")
    _, version, _, length = _HEAD.unpack_from(data)
    if version not in READ_VERSIONS:
        known = f"{', '.join(map(str, READ_VERSIONS[:-1]))} and {READ_VERSIONS[-1]}"
        raise ConnectorError(
            "snapshot-version", f"'{path}' has format {version}; this version of FlowSQL reads the formats {known}."
        )
    end = _HEAD.size + length
    manifest = _manifest(orjson.loads(body[_HEAD.size : end]), body[end:])
    _check_names(manifest, path)
    return manifest, body[end:]


def _check_names(manifest: Manifest, path: str) -> None:
    """Refuse names that lead out of the snapshot."""
    for file in manifest.files():
        plain_name(file, path)
    for native in manifest.natives():
        for name in native.private:
            plain_name(name, path)
        for shared in native.shared:
            plain_name(shared.name, path)
            shared_name(shared.file, path)


def _manifest(found: dict[str, Any], behind: memoryview) -> Manifest:
    operators = {uid: _operator(state) for uid, state in found.pop("operators").items()}
    committables = {
        uid: tuple(_committable(one, behind) for one in prepared) for uid, prepared in found.pop("committables").items()
    }
    return Manifest(operators=operators, committables=committables, **found)


def _committable(told: str | list[int], behind: memoryview) -> bytes:
    """One committable: digits of formats 1 and 2, else where it stands behind the header."""
    if isinstance(told, str):
        return bytes.fromhex(told)
    offset, length = told
    return bytes(behind[offset : offset + length])


def _operator(found: dict[str, Any]) -> OperatorState:
    subtasks = tuple(
        SubtaskState(
            state["subtask"],
            {name: tuple(map(_part, parts)) for name, parts in state["keyed"].items()},
            None if state["operator"] is None else _part(state["operator"]),
            tuple(state["watermarks_ms"]),
            None if state["in_flight"] is None else _part(state["in_flight"]),
            _native(state.get("native")),
        )
        for state in found.pop("subtasks")
    )
    layout = layout_of_json(found.pop("layout"))
    rows, types = tuple(found.pop("rows")), tuple(found.pop("types", ()))
    columns = {
        name: tuple(ReadableColumn(**column) for column in shown) for name, shown in found.pop("columns", {}).items()
    }
    return OperatorState(
        subtasks=subtasks,
        finished=tuple(found.pop("finished")),
        layout=layout,
        rows=rows,
        types=types,
        columns=columns,
        **found,
    )


def _part(found: dict[str, Any]) -> Part:
    groups = found.pop("groups")
    return Part(groups=None if groups is None else (groups[0], groups[1]), **found)


def _native(found: dict[str, Any] | None) -> NativeState | None:
    if found is None:
        return None
    first, last = found.pop("groups")
    shared = tuple(SharedFile(**one) for one in found.pop("shared"))
    private = {name: _part(part) for name, part in found.pop("private").items()}
    return NativeState(groups=(first, last), shared=shared, private=private, **found)
