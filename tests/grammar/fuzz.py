"""Mutated statements: whatever the text, the parser answers with a tree or a ParseError, within a second.

python tests/grammar/fuzz.py [COUNT [SEED]]
"""

from __future__ import annotations

import random
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

from flowsql_core.errors import ParseError
from flowsql_core.span import Source
from flowsql_grammar import parse_statement, print_sql, split_statements
from flowsql_grammar.lexer import tokenize

LIMIT_SECONDS = 1.0
_NOISE = ["(", ")", ",", ";", ".", "'", "`", "/*", "*/", "/*+", "--", "NOT", "SELECT", "AS", "TABLE", "?", "\\", "\x00"]


@dataclass
class Outcome:
    """What became of the mutations."""

    parsed: int = 0
    refused: int = 0
    slowest: float = 0.0
    faults: list[str] = field(default_factory=list)


def mutate(text: str, rng: random.Random) -> str:
    """One to three tokens dropped, doubled, swapped, or replaced by noise."""
    words = [text[t.start : t.end] for t in tokenize(Source(text))[:-1]]
    for _ in range(rng.randint(1, 3)):
        if len(words) < 2:
            break
        at = rng.randrange(len(words))
        match rng.randrange(5):
            case 0:
                del words[at]
            case 1:
                words.insert(at, words[at])
            case 2:
                other = rng.randrange(len(words))
                words[at], words[other] = words[other], words[at]
            case 3:
                words[at] = rng.choice(_NOISE)
            case _:
                cut = rng.randrange(len(words[at]) + 1)
                words[at] = words[at][:cut]
    return " ".join(words)


def run(statements: list[str], count: int, seed: int) -> Outcome:
    """Parse ``count`` mutations; what still parses must survive printing."""
    rng = random.Random(seed)
    outcome = Outcome()
    for _ in range(count):
        text = mutate(rng.choice(statements), rng)
        started = time.perf_counter()
        try:
            tree = parse_statement(text)
            if parse_statement(print_sql(tree)) != tree:
                outcome.faults.append(f"printed text means something else: {text}")
            outcome.parsed += 1
        except ParseError as error:
            outcome.refused += 1
            if error.at is None or error.source is None:
                outcome.faults.append(f"no place in the error for: {text}")
            error.render()
        except Exception as error:
            outcome.faults.append(f"{type(error).__name__}: {error} for: {text}")
        taken = time.perf_counter() - started
        outcome.slowest = max(outcome.slowest, taken)
        if taken > LIMIT_SECONDS:
            outcome.faults.append(f"{taken:.1f} s for: {text}")
        split_statements(text)
    return outcome


def main() -> int:
    """Run from the command line."""
    sys.path.insert(0, str(Path(__file__).parent))
    from corpus_files import own_statements, pieces, script_text, shared_scripts

    count = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else 1
    statements = own_statements() + [text for file in shared_scripts() for text in pieces(script_text(file))]
    outcome = run(statements, count, seed)
    print(f"{outcome.parsed} parsed, {outcome.refused} refused, slowest {outcome.slowest * 1e3:.0f} ms")
    for fault in outcome.faults[:50]:
        print(fault)
    return 1 if outcome.faults else 0


if __name__ == "__main__":
    sys.exit(main())
