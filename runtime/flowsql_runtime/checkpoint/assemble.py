"""From what the tasks of a job wrote to the manifest of the whole snapshot."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from importlib.metadata import PackageNotFoundError, version

from flowsql_core.element import CheckpointBarrier
from flowsql_core.graph.job import JobGraph
from flowsql_runtime.checkpoint.layout import OperatorLayout, rows_digests, types_digests
from flowsql_runtime.checkpoint.manifest import (
    Manifest,
    NativeState,
    OperatorState,
    Part,
    ReadableColumn,
    SubtaskState,
    encode_manifest,
)
from flowsql_runtime.checkpoint.trust import holds_objects
from flowsql_runtime.checkpoint.write import ALIGNMENT, WrittenTask
from flowsql_runtime.operators.readable_state import readable_columns


def assemble(
    barrier: CheckpointBarrier,
    job_id: str,
    graph: JobGraph,
    written: Mapping[tuple[int, int], WrittenTask],
    finished: set[tuple[int, int]],
    committables: Mapping[str, Sequence[bytes]],
    enumerators: Mapping[str, bytes],
    committers: Mapping[str, bytes],
    lineage: str,
    layouts: Mapping[str, OperatorLayout],
) -> tuple[Manifest, bytes]:
    """The manifest and the bytes of ``_metadata``.

    Args:
        written: by vertex and subtask, of all tasks that were alive.
        finished: tasks that had ended before the barrier.
        layouts: of keyed state, by operator uid.
    """
    inline: list[bytes] = []
    base = 0
    states: dict[str, list[SubtaskState]] = {}
    for _, task in sorted(written.items()):
        for uid, state in task.states.items():
            states.setdefault(uid, []).append(_relocated(state, base) if task.inline else state)
        if task.inline:
            gap = -len(task.inline) % ALIGNMENT
            inline += [task.inline, bytes(gap)]
            base += len(task.inline) + gap
    operators = {}
    for vertex in graph.vertices:
        ended = tuple(subtask for subtask in range(vertex.parallelism) if (vertex.id, subtask) in finished)
        for node in vertex.operators:
            operators[node.uid] = OperatorState(
                uid=node.uid,
                name=node.name,
                kind=type(node.spec).__name__.removesuffix("Spec"),
                parallelism=vertex.parallelism,
                max_parallelism=vertex.max_parallelism,
                subtasks=tuple(states.get(node.uid, ())),
                finished=ended,
                layout=layouts.get(node.uid),
                rows=rows_digests(node),
                types=types_digests(node),
                columns={
                    name: tuple(ReadableColumn(one.stored, one.name, str(one.type)) for one in columns)
                    for name, columns in readable_columns(node.spec).items()
                },
            )
    manifest = Manifest(
        checkpoint_id=barrier.checkpoint_id,
        kind="savepoint" if barrier.kind.is_savepoint else "checkpoint",
        timestamp_ms=barrier.timestamp_ms,
        job_id=job_id,
        job_name=graph.name,
        operators=operators,
        committables={uid: tuple(parts) for uid, parts in committables.items() if parts},
        enumerators={uid: state.hex() for uid, state in enumerators.items()},
        committers={uid: state.hex() for uid, state in committers.items()},
        flowsql=_version(),
        lineage=lineage,
        checkpointed_bytes=sum(task.written_bytes for task in written.values()),
        objects=holds_objects(graph),
    )
    return manifest, encode_manifest(manifest, b"".join(inline))


def _relocated(state: SubtaskState, base: int) -> SubtaskState:
    """The state with parts that stand in ``_metadata``, ``base`` bytes behind its header."""

    def moved(part: Part) -> Part:
        return replace(part, file="", offset=part.offset + base)

    return replace(
        state,
        keyed={name: tuple(map(moved, parts)) for name, parts in state.keyed.items()},
        operator=None if state.operator is None else moved(state.operator),
        in_flight=None if state.in_flight is None else moved(state.in_flight),
        native=None if state.native is None else _native_relocated(state.native, moved),
    )


def _native_relocated(native: NativeState, moved: Callable[[Part], Part]) -> NativeState:
    return replace(native, private={name: moved(part) for name, part in native.private.items()})


def _version() -> str:
    try:
        return version("flowsql")
    except PackageNotFoundError:  # run from a checkout
        return ""
