"""States of operators that keep rows or Python objects by key: the values that a query reads of them."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from ..sql.process_functions import Visiting
from .test_state_queries import ORDERS, Session

pytestmark = pytest.mark.usefixtures("each_backend")

SUMS = """from flowsql.table.udf import AggregateFunction

class Numbers(AggregateFunction):
    def create_accumulator(self):
        return []

    def accumulate(self, numbers, n):
        numbers.append(n)

    def retract(self, numbers, n):
        numbers.remove(n)

    def get_value(self, numbers):
        return len(numbers)

    def get_result_type(self):
        return 'BIGINT'

    def get_accumulator_type(self):
        return 'ARRAY<INT>'

numbers = Numbers()
"""


@pytest.fixture
def session(tmp_path: Path) -> Session:
    return Session(tmp_path)


def delayed(session: Session, seconds: int) -> None:
    """A table of the same orders whose watermark is behind."""
    session.environment.execute_sql(
        f"CREATE TABLE delayed (id INT, who STRING, amount INT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts - INTERVAL "
        f"'{seconds}' SECOND) WITH ('connector' = 'filesystem', 'format' = 'csv', 'csv.null-literal' = '', "
        f"'path' = '{session.folder}/orders.csv')"
    ).wait()


def states(session: Session, path: str, uid: str) -> set[str]:
    return {row[3] for row in session.rows(f"SHOW OPERATORS IN '{path}'") if row[0] == uid}


def by_user(orders: list[tuple[Any, ...]]) -> dict[str, list[tuple[Any, ...]]]:
    found: dict[str, list[tuple[Any, ...]]] = defaultdict(list)
    for order in orders:
        found[order[1]].append(order)
    return found


def test_frames_and_rows_that_wait(session: Session) -> None:
    delayed(session, 10)
    path = session.saved(
        "SELECT id, SUM(amount) OVER (PARTITION BY who ORDER BY ts RANGE BETWEEN INTERVAL '20' SECOND PRECEDING AND "
        "CURRENT ROW) AS s FROM delayed",
        parallelism=1,
        rows=30,
    )
    uid = session.operator(path, "OverAggregate")
    assert states(session, path, uid) == {"over.accumulators", "held", "waiting", "answered", "over"}
    waiting = session.rows(f"SELECT id, who, amount, `time` FROM state('{path}', '{uid}', 'waiting')")
    first = min(number for number, *_ in waiting)
    # Rows wait until the watermark is at their time.
    assert sorted((number, who, amount) for number, who, amount, _ in waiting) == [o[:3] for o in ORDERS[first:30]]
    assert all(str(at) == f"2024-01-01 10:00:{ORDERS[number][3]:02}" for number, _, _, at in waiting)
    held = session.rows(f"SELECT who, amount, `time` FROM state('{path}', '{uid}', 'held')")
    answered = by_user(ORDERS[:first])
    wanted = [(who, n, at) for who, rows in answered.items() for _, _, n, at in rows if at >= rows[-1][3] - 20]
    assert sorted(((who, str(at), n) for who, n, at in held), key=repr) == sorted(
        ((who, f"2024-01-01 10:00:{at:02}", n) for who, n, at in wanted), key=repr
    )
    last = session.rows(f"SELECT who, last_time FROM state('{path}', '{uid}', 'answered') WHERE who = 'u1'")
    assert [(who, str(at)) for who, at in last] == [("u1", f"2024-01-01 10:00:{answered['u1'][-1][3]:02}")]


def test_rows_with_nested_columns(session: Session) -> None:
    path = session.saved(
        "SELECT r, l, ROW_NUMBER() OVER (PARTITION BY who ORDER BY amount) AS n "
        "FROM (SELECT who, amount, ROW(id, ROW(who, id + 1)) AS r, ARRAY[id, 2] AS l FROM orders)"
    )
    uid = session.operator(path, "OverAggregate")
    kept = session.rows(f"SELECT who, amount, r, l FROM state('{path}', '{uid}', 'rows')")
    wanted = [(who, n, (number, (who, number + 1)), [number, 2]) for number, who, n, _ in ORDERS]
    plain = [(who, n, (r[0], tuple(r[1])), list(numbers)) for who, n, r, numbers in kept]
    assert sorted(plain, key=repr) == sorted(wanted, key=repr)


def test_rows_of_a_ranking(session: Session) -> None:
    path = session.saved(
        "SELECT * FROM (SELECT id, who, ROW_NUMBER() OVER (PARTITION BY who ORDER BY id DESC) AS place FROM orders) "
        "WHERE place <= 2"
    )
    uid = session.operator(path, "Rank")
    kept = session.rows(f"SELECT * FROM state('{path}', '{uid}')")
    assert sorted(kept) == sorted(order[:2] for rows in by_user(ORDERS).values() for order in rows[-2:])


def test_first_rows_that_wait_and_those_that_left(session: Session) -> None:
    delayed(session, 2)
    path = session.saved(
        "SELECT id, who FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY who ORDER BY ts) AS place FROM delayed) "
        "WHERE place = 1",
        parallelism=1,
        rows=5,
    )
    uid = session.operator(path, "Deduplicate")
    times = {
        who: (str(at), state) for who, at, state in session.rows(f"SELECT * FROM state('{path}', '{uid}', 'times')")
    }
    assert set(times) == {order[1] for order in ORDERS[:5]}
    rows = {who: number for number, who in session.rows(f"SELECT id, who FROM state('{path}', '{uid}', 'rows')")}
    waits = {who for who, (_, state) in times.items() if state == 1}
    assert 0 < len(waits) < len(times)
    # A row that has left is gone; its key is not.
    assert rows == {who: number if who in waits else None for number, who, _, _ in ORDERS[:5]}
    assert {who: at for who, (at, _) in times.items() if who in waits} == {
        who: f"2024-01-01 10:00:{at:02}" for _, who, _, at in ORDERS[:5] if who in waits
    }


def test_accumulators_of_python_functions(session: Session) -> None:
    session.environment.execute_sql(f"CREATE TEMPORARY SYSTEM FUNCTION numbers AS $$\n{SUMS}$$ LANGUAGE PYTHON").wait()
    path = session.saved(
        "SELECT who, numbers(id), numbers(DISTINCT amount), SUM(amount) FROM orders WHERE amount > 2 GROUP BY who",
        parallelism=1,
    )
    uid = session.operator(path, "PythonGroupAggregate")
    state = f"'{path}', '{uid}', 'python.accumulators'"
    assert session.columns(f"SELECT * FROM state({state})") == {
        "who": "STRING",
        "numbers_id": "BYTES",
        "numbers_distinct_amount": "BYTES",
    }
    assert all(type(blob) is bytearray for (blob,) in session.rows(f"SELECT numbers_id FROM state({state})"))
    users = by_user([order for order in ORDERS if (order[2] or 0) > 2])
    found = session.rows(f"SELECT * FROM state({state}, unpickle => TRUE)")
    assert sorted(found) == sorted(
        (who, repr([row[0] for row in rows]), repr(list(dict.fromkeys(row[2] for row in rows))))
        for who, rows in users.items()
    )
    seen = session.rows(f"SELECT who, amount FROM state('{path}', '{uid}', 'python.distinct0')")
    assert sorted(seen) == sorted({(who, row[2]) for who, rows in users.items() for row in rows})
    sums = session.rows(f"SELECT who, sum_amount FROM state('{path}', '{uid}', 'aggregate.accumulators')")
    assert sorted(sums) == sorted((who, sum(row[2] for row in rows)) for who, rows in users.items())


def test_process_table_functions(session: Session) -> None:
    session.environment.create_temporary_system_function("Visiting", Visiting)
    session.environment.execute_sql("CREATE VIEW visits AS SELECT id, who, amount AS n, who AS tag, ts FROM orders")
    path = session.saved(
        "SELECT * FROM Visiting(visit => TABLE visits PARTITION BY who, on_time => DESCRIPTOR(ts), uid => 'calls')",
        parallelism=1,
        rows=30,
    )
    uid = session.operator(path, "ProcessTableFunction")
    assert {"state.visits", "state.numbers", "state.pages", "timers", "timers by name"} <= states(session, path, uid)
    orders = by_user(ORDERS[:30])
    visits = session.rows(f"SELECT who, `count`, `last` FROM state('{path}', '{uid}', 'state.visits') WHERE kept = 1")
    assert visits
    assert {(who, last) for who, _, last in visits} <= {(who, who) for who in orders}
    numbers = session.rows(f"SELECT who, `value` FROM state('{path}', '{uid}', 'state.numbers')")
    assert {who for who, _ in numbers} <= set(orders)
    assert all(number in [order[0] for order in orders[who]] for who, number in numbers)
    named = session.rows(f"SELECT name, COUNT(*) FROM state('{path}', '{uid}', 'timers by name') GROUP BY name")
    assert {name for name, _ in named} <= {"ask", "forget"}
