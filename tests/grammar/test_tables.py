from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest
from corpus_files import HERE, own_statements

from flowsql_core.errors import ParseError
from flowsql_grammar import build_tables, parse_statement
from flowsql_grammar.build import Builder
from flowsql_grammar.tables import PATH, decode, tables

GENERIC = {"opt", "list", "words", "true", "false", "only", "splice"}


@pytest.fixture(scope="module")
def built() -> build_tables.Built:
    return build_tables.build()


def test_shipped_tables_are_those_of_the_grammar(built: build_tables.Built) -> None:
    shipped, fresh = decode(PATH.read_bytes()), decode(built.data)
    assert (shipped.terminals, shipped.rules, shipped.starts) == (fresh.terminals, fresh.rules, fresh.starts), (
        "run: python -m flowsql_grammar.build_tables"
    )
    assert all(shipped.row(state) == fresh.row(state) for state in range(len(fresh.rows)))


def test_conflicts_are_the_reviewed_ones(built: build_tables.Built) -> None:
    pinned = (HERE / "conflicts.txt").read_text("utf-8").splitlines()
    assert list(built.conflicts) == pinned


def test_every_rule_has_a_method_and_every_method_a_rule() -> None:
    actions = {rule.action for rule in tables().rules} - GENERIC
    methods = {name for name in dir(Builder) if not name.startswith("_")}
    assert actions == methods


def test_the_corpus_uses_every_method(monkeypatch: pytest.MonkeyPatch) -> None:
    from flowsql_grammar import parser

    used: set[str] = set()

    def recording(action: str):  # type: ignore[no-untyped-def]
        method = getattr(Builder, action, None)
        if method is None:
            return None

        def call(*args: object) -> object:
            used.add(action)
            return method(*args)

        return call

    handlers = [recording(rule.action) for rule in tables().rules]
    monkeypatch.setattr(parser, "_handlers", lambda: handlers)
    for text in [*own_statements(), "BEGIN STATEMENT SET"]:
        parse_statement(text)
    assert {rule.action for rule in tables().rules} - GENERIC - used == set()


def test_lark_is_not_imported_at_run_time() -> None:
    code = (
        "import sys, flowsql_grammar; flowsql_grammar.parse_script('SELECT 1; CREATE TABLE t (a INT)');"
        "assert not [m for m in sys.modules if m.split('.')[0] in ('lark', 'numba', 'pyarrow', 'numpy')]"
    )
    root = Path(build_tables.__file__).parents[1]
    subprocess.run([sys.executable, "-c", code], check=True, cwd=root)


def test_loading_and_parsing_are_quick() -> None:
    data = PATH.read_bytes()
    started = time.perf_counter()
    decode(data)
    assert time.perf_counter() - started < 0.25
    with pytest.raises(ParseError):
        parse_statement("SELECT 1 WHERE FALSE")
    statement = "SELECT a, b + 1 AS c FROM t WHERE a > 10 AND b IN (1, 2, 3)"
    parse_statement(statement)
    started = time.perf_counter()
    for _ in range(20):
        parse_statement(statement)
    assert (time.perf_counter() - started) / 20 < 0.02
