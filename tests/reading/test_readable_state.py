"""What operators of real SQL keep can be read from a snapshot: every state, each column with its name and type."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from flowsql_core.types.arrow import to_arrow
from flowsql_runtime.checkpoint.encode import KEY_GROUP
from flowsql_runtime.operators.operator_class import OperatorClass
from flowsql_runtime.operators.readable_state import _STATEFUL
from flowsql_runtime.operators.registry import _CLASSES
from flowsql_runtime.reading.columns import find_state
from flowsql_runtime.reading.snapshot import find_parts
from flowsql_runtime.testing.cut import Recorder

from ..sql.test_cut import CASES, ROWS, Case, session_of
from ..sql.test_cut import folder as folder
from .snapshots import write_snapshot

pytestmark = [pytest.mark.usefixtures("each_backend"), pytest.mark.sampled(3)]


# Every third one: what queries keep repeats, and a job takes its time.
@pytest.mark.parametrize("case", CASES[::3], ids=lambda case: f"{case.number}")
def test_every_state_of_a_query_is_readable(case: Case, folder: Path, tmp_path: Path) -> None:
    graph = session_of(folder, case).graph(case.sql, 2)
    graph = replace(graph, resources={**graph.resources, "collect": Recorder()})
    snapshot = find_parts(write_snapshot(graph, ROWS // 2, tmp_path / "cut"))
    for operator in snapshot.manifest.operators.values():
        for name in {state for one in operator.subtasks for state in one.keyed}:
            state = find_state(snapshot, operator, name, unpickle=False)
            rows = 0
            for part in state.parts:
                # Nothing that is stored goes unnamed.
                schema = snapshot.schema(part.part)
                shown = {at for place in range(len(state.columns)) for at in state._range(schema, place)}
                named = {one.stored for one in operator.columns[name]}
                hidden = {one for at, one in enumerate(schema.names) if at not in shown and one not in named}
                assert hidden == {KEY_GROUP}, name
                for columns, count in state.read(snapshot, part, range(len(state.columns))):
                    assert [array.type for array in columns] == [to_arrow(column.type) for column in state.columns]
                    assert {len(array) for array in columns} <= {count}
                    rows += count
            assert rows == sum(part.part.rows for part in state.parts)


def test_every_operator_with_keyed_state_names_its_columns() -> None:
    stateful = {spec for spec, found in _CLASSES.items() if isinstance(found, OperatorClass) and found.stateful}
    assert stateful == set(_STATEFUL)
