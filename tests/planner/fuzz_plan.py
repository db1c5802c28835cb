"""Mutated scripts, parsed, bound and planned: whatever the text, the answer is a plan or an error that has a place.

python tests/planner/fuzz_plan.py [COUNT [SEED]]

Nothing is run: queries stop at their job graph.
"""

from __future__ import annotations

import random
import sys
import time
import traceback
from dataclasses import dataclass, field
from pathlib import Path

from flowsql.table.environment_settings import EnvironmentSettings
from flowsql.table.session.environment import TableEnvironment
from flowsql_core.errors import FlowSqlError, InternalError
from flowsql_core.span import Source
from flowsql_grammar import ast, highlight, parse_statement
from flowsql_planner.bind import operations as op

sys.path.insert(0, str(Path(__file__).parents[1] / "grammar"))

LIMIT_SECONDS = 1.0
_RUN = (ast.QueryStatement, ast.Insert, ast.StatementSet, ast.Execute, ast.ClientCommand)


@dataclass
class Outcome:
    """What became of the mutations."""

    planned: int = 0
    refused: int = 0
    slowest: float = 0.0
    faults: list[str] = field(default_factory=list)


def run(scripts: list[list[str]], count: int, seed: int) -> Outcome:
    """Plan ``count`` mutations, each in the catalog that its script has made so far."""
    from fuzz import mutate

    rng = random.Random(seed)
    outcome = Outcome()
    while outcome.planned + outcome.refused + len(outcome.faults) < count:
        env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
        script = rng.choice(scripts)
        words = [word for text in script for word in _words(text)]
        for text in script:
            for _ in range(3):
                _plan(env, _bent(text, words, rng), outcome)
            _plan(env, mutate(text, rng), outcome)
            _define(env, text)
    return outcome


def _words(text: str) -> list[tuple[str, str]]:
    """Names, numbers and strings of a text: what may stand for another and still be a sentence."""
    found = [(label, text[span.start : span.end]) for label, span in highlight(text)]
    return [(label, word) for label, word in found if label in _SWAPPED]


def _bent(text: str, words: list[tuple[str, str]], rng: random.Random) -> str:
    """The text with one or two of its words replaced by others, mostly of the same class: a sentence of odd meaning."""
    places = [(label, span) for label, span in highlight(text) if label in _SWAPPED]
    for label, span in sorted(rng.sample(places, min(len(places), rng.randint(1, 2))), key=lambda p: -p[1].start):
        choice = rng.choice(_ODD + [word for other, word in words if other == label or rng.random() < 0.1])
        text = text[: span.start] + choice + text[span.end :]
    return text


_SWAPPED = {"name", "number", "string"}
_ODD = [
    "x",
    "a.b",
    "-1",
    "99999999999999999999",
    "1e400",
    "''",
    "NULL",
    "COUNT",
    "`order`",
    "'\\ud800'",
    "0",
    "DATE '2020-01-01'",
]


def _define(env: TableEnvironment, text: str) -> None:
    """Carry out what defines something; queries are not run."""
    try:
        if not isinstance(parse_statement(text), _RUN):
            env.execute_sql(text)
    except FlowSqlError:
        return


def _plan(env: TableEnvironment, text: str, outcome: Outcome) -> None:
    started = time.thread_time()
    source = Source(text)
    executor = env._executor
    try:
        operation = executor.bind(parse_statement(source), source)
        match operation:
            case op.Query():
                executor._planner().plan_query(operation, object())
            case op.Insert():
                executor._planner().plan_inserts((operation,))
            case op.StatementSet(inserts):
                executor._planner().plan_inserts(inserts)
        outcome.planned += 1
    except InternalError as error:
        outcome.faults.append(f"InternalError: {error} for: {text}")
    except FlowSqlError as error:
        outcome.refused += 1
        if error.at is None:
            outcome.faults.append(f"no place in {error.code}: {error.message[:120]} for: {text}")
        error.within(source).render()
    except Exception as error:
        frame = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{Path(frame.filename).name}:{frame.lineno}"
        outcome.faults.append(f"{type(error).__name__} at {where}: {error} for: {text}")
    taken = time.thread_time() - started
    outcome.slowest = max(outcome.slowest, taken)
    if taken > LIMIT_SECONDS:
        outcome.faults.append(f"{taken:.1f} s for: {text}")


def main() -> int:
    """Run from the command line."""
    from corpus_files import pieces, script_text, shared_scripts

    count = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else 1
    outcome = run([pieces(script_text(file)) for file in shared_scripts()], count, seed)
    print(f"{outcome.planned} planned, {outcome.refused} refused, slowest {outcome.slowest * 1e3:.0f} ms")
    for fault in outcome.faults[:50]:
        print(fault)
    return 1 if outcome.faults else 0


if __name__ == "__main__":
    sys.exit(main())
