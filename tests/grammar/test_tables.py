from __future__ import annotations

import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest
from corpus_files import HERE, own_statements

from flowsql_grammar import ast, build_tables, parse_statement
from flowsql_grammar.build import builders
from flowsql_grammar.parser import Rule
from flowsql_grammar.tables import PATH, Tables, tables

GENERIC = {"opt", "list", "words", "true", "false", "only", "splice"}


@pytest.fixture(scope="module")
def built() -> build_tables.Built:
    return build_tables.build()


def test_shipped_tables_are_those_of_the_grammar(built: build_tables.Built) -> None:
    shipped, fresh = Tables(PATH.read_bytes()), Tables(built.data)
    for part in ("terminals", "display", "starts", "ends", "lefts", "actions", "plans"):
        assert getattr(shipped, part) == getattr(fresh, part), "run: python -m flowsql_grammar.build_tables"
    assert all(shipped.row(state) == fresh.row(state) for state in range(len(fresh.rows)))


def test_conflicts_are_the_reviewed_ones(built: build_tables.Built) -> None:
    pinned = (HERE / "conflicts.txt").read_text("utf-8").splitlines()
    assert list(built.conflicts) == pinned


def test_every_rule_has_a_method_and_every_method_a_rule() -> None:
    methods = [name for builder in builders() for name in dir(builder) if not name.startswith("_")]
    assert len(methods) == len(set(methods)), "two builders have a method of one name"
    assert set(tables().actions) - GENERIC == set(methods)


def test_the_corpus_uses_every_method(monkeypatch: pytest.MonkeyPatch) -> None:
    from flowsql_grammar import parser

    used: set[str] = set()
    made: list[Rule | None] = []

    class Recording(Rule):
        def __init__(self, left: int, action: str, plan: str) -> None:
            super().__init__(left, action, plan)
            build = self.build
            if build is not None:
                self.build = lambda *args: used.add(action) or build(*args)

    monkeypatch.setattr(parser, "_rules", made)
    monkeypatch.setattr(parser, "Rule", Recording)
    for text in [*own_statements(), "BEGIN STATEMENT SET"]:
        parse_statement(text)
    assert set(tables().actions) - GENERIC - used == set()


def test_every_node_has_a_home() -> None:
    """The names of the lazy package are those of its modules, no more and no less."""
    folder = Path(ast.__file__).parent
    for file in folder.glob("*.py"):
        if file.stem in ("__init__", "lazy"):
            continue
        module = import_module(f"flowsql_grammar.ast.{file.stem}")
        defined = set(re.findall(r"(?m)^(?:class ([A-Z]\w*)|([A-Z]\w*): TypeAlias)", file.read_text("utf-8")))
        for name in {a or b for a, b in defined} - {"NodeType"}:
            assert getattr(ast, name) is getattr(module, name)


def test_lark_is_not_imported_at_run_time() -> None:
    code = (
        "import sys, flowsql_grammar; flowsql_grammar.parse_script('SELECT 1; CREATE TABLE t (a INT)');"
        "assert not [m for m in sys.modules if m.split('.')[0] in ('lark', 'numba', 'pyarrow', 'numpy')]"
    )
    root = Path(build_tables.__file__).parents[1]
    subprocess.run([sys.executable, "-c", code], check=True, cwd=root)
