"""Patterns that never come back elsewhere: LIKE and what RE2 can say are linear, all others have a time limit."""

from __future__ import annotations

import random
import re
import signal
import threading
import time
from types import FrameType

import pyarrow as pa
import pytest

from flowsql.table import EnvironmentSettings, TableEnvironment
from flowsql_compute.eval.context import EvalContext
from flowsql_compute.functions.registry import Invocation
from flowsql_compute.functions.text import regex, regex_search
from flowsql_core.errors import ExecutionError, FlowSqlError, NotSupportedYetError
from flowsql_core.types import logical as t

#: Each takes a time that doubles with a character, or grows with a high power, in an engine that goes back and forth.
HOSTILE = [
    ("(a+)+$", "a" * 60 + "b"),
    ("(a|aa)+$", "a" * 80 + "b"),
    ("(a|a?)+$", "a" * 60 + "b"),
    ("(.*)*x", "y" * 80),
    ("(x+x+)+y", "x" * 60),
    ("^(([a-z])+.)+[A-Z]([a-z])+$", "a" * 80),
    ("a?" * 40 + "a" * 40, "a" * 40),
    (".*" * 20 + "z", "a" * 200),
    (r"(\w+\s?)+!$", "aaaa bbbb cccc dddd eeee ffff gggg hhhh iiii"),
    (r"(a*)*\1b", "a" * 50),
    (r"(?=(a|aa)+$)a", "a" * 80 + "b"),
    (r"(a|aa)+\b\1$", "a" * 80 + "\u00e9"),
    (r"(?:(a|aa)+)++b", "a" * 80),
    (r"(?<=(a|b|ab){1,40}c)d", "ab" * 60 + "d"),
]


def call(n: int, limit_s: float = 0.1) -> Invocation:
    return Invocation(n, EvalContext(regex_limit_s=limit_s), (), t.STRING)


def ask(pattern: str, text: str, by_column: bool = False) -> str:
    """Ask all functions; which of them gave up."""
    column = pa.array([text, "", None], pa.string())
    given = pa.array([pattern] * 3, pa.string()) if by_column else pa.scalar(pattern)
    gave_up = ""
    for function, rest in (
        (regex.regexp, ()),
        (regex.regexp_extract, ()),
        (regex.regexp_replace, (pa.scalar("<>"),)),
        (regex_search.regexp_count, ()),
        (regex_search.regexp_instr, ()),
        (regex_search.regexp_substr, ()),
        (regex_search.regexp_extract_all, (pa.scalar(0, pa.int32()),)),
    ):
        try:
            function(call(3), column, given, *rest)
            gave_up += "."
        except ExecutionError as error:
            gave_up += "x" if error.code == "regex-timeout" else error.code
    return gave_up


@pytest.mark.parametrize(("pattern", "text"), HOSTILE)
@pytest.mark.parametrize("by_column", [False, True])
def test_every_function_comes_back(pattern: str, text: str, by_column: bool) -> None:
    began = time.process_time()
    gave_up = ask(pattern, text, by_column)
    assert time.process_time() - began < 5
    if "(?" not in pattern and "\\" not in pattern:
        # RE2 says whether there is a match.
        assert gave_up.startswith("."), gave_up


def test_the_error_says_what_and_what_helps() -> None:
    made = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    made.execute_sql("SET 'flowsql.regex.timeout' = '50 ms'")
    made.execute_sql("CREATE TEMPORARY VIEW v AS SELECT * FROM (VALUES (1, '" + "a" * 80 + "b')) AS v(id, x)")
    with pytest.raises(FlowSqlError) as caught:
        list(made.execute_sql(r"SELECT REGEXP_EXTRACT(x, '(?=(a|aa)+$)a') FROM v WHERE id > 0").collect())
    said = caught.value.render()
    assert "The regular expression '(?=(a|aa)+$)a' took longer than 0.05 s for one text of 81 characters: 'aaaa" in said
    assert "SET 'flowsql.regex.timeout'" in said


def like(text: str, pattern: str) -> bool:
    made = "".join({"%": ".*", "_": "[^\n\r\u0085\u2028\u2029]"}.get(one, re.escape(one)) for one in pattern)
    return re.fullmatch(made, text, re.DOTALL) is not None


def test_like_as_its_regular_expression() -> None:
    drawn = random.Random(34)
    letters = "ab\u00e9\U0001f600\n\u2028"
    texts = ["".join(drawn.choices(letters, k=drawn.randrange(12))) for _ in range(3000)]
    patterns = ["".join(drawn.choices(letters + "%%%__", k=drawn.randrange(8))) for _ in range(3000)]
    wanted = [like(text, pattern) for text, pattern in zip(texts, patterns, strict=True)]
    assert sum(wanted) > 200
    found = regex.like(call(3000), pa.array(texts), pa.array(patterns)).to_pylist()
    assert found == wanted
    escapes = pa.array(["!"] * 1500 + ["#"] * 1500)
    assert regex.like(call(3000), pa.array(texts), pa.array(patterns), escapes).to_pylist() == wanted
    sliced = regex.like(call(100), pa.array(texts)[50:150], pa.array(patterns)[50:150]).to_pylist()
    assert sliced == wanted[50:150]


def test_like_is_linear_and_takes_nulls_and_escapes() -> None:
    text, pattern = "a" * 2000, "%a" * 200 + "%b"
    began = time.process_time()
    assert regex.like(call(1), pa.array([text]), pa.array([pattern])).to_pylist() == [False]
    assert regex.like(call(1), pa.array([text]), pa.scalar(pattern)).to_pylist() == [False]
    assert regex.like(call(1), pa.array([text]), pa.scalar("%a" * 20_000)).to_pylist() == [False]
    assert regex.similar_to(call(1), pa.array([text]), pa.array(["(a|aa)*b"])).to_pylist() == [False]
    assert time.process_time() - began < 5
    texts = pa.array(["a%", None, "ab", "x_y"])
    given = pa.array(["a!%", "%", None, "x!_y"])
    assert regex.like(call(4), texts, given, pa.array(["!", "!", "!", "!"])).to_pylist() == [True, None, None, True]
    assert regex.like(call(4), texts, given, pa.array(["!", "!", "!", None])).to_pylist() == [True, None, None, None]
    # Asked of Flink 2.3.
    for pattern, fits in (("a_b", False), ("a%b", True), ("%_b", False), ("a__", False), ("%", True), ("%\n%", True)):
        assert regex.like(call(1), pa.array(["a\nb"]), pa.array([pattern])).to_pylist() == [fits]
        assert regex.like(call(1), pa.array(["a\nb"]), pa.scalar(pattern)).to_pylist() == [fits]
    with pytest.raises(ExecutionError, match="Invalid escape sequence"):
        regex.like(call(1), pa.array(["a"]), pa.array(["a!b"]), pa.array(["!"]))


def test_what_re2_takes_for_too_large() -> None:
    texts = pa.array(["a" * 50])
    for pattern in ("((a{1,30}){1,30}){1,30}", "|".join(f"{number}b{{900}}" for number in range(2000)) + "|a"):
        assert regex.regexp(call(1, 5.0), texts, pa.scalar(pattern)).to_pylist() == [True]
        assert regex_search.regexp_instr(call(1, 5.0), texts, pa.scalar(pattern)).to_pylist() == [1]


def test_nesting_without_end() -> None:
    with pytest.raises(NotSupportedYetError, match="nested so deep"):
        regex.regexp(call(1), pa.array(["a"]), pa.array(["(" * 100_000 + ")" * 100_000]))


def drawn_pattern(drawn: random.Random, depth: int) -> str:
    """A pattern of a random shape, with repetitions in repetitions."""
    if depth == 0:
        return drawn.choice(["a", "b", ".", "[ab]", "\\w", "\\s", "[^b]", "aa", "\u00e9", "\\b", "$", "^", "a?", "\\1"])
    inner = drawn_pattern(drawn, depth - 1)
    other = drawn_pattern(drawn, depth - 1)
    return drawn.choice(
        [f"({inner})+", f"({inner})*", f"(?:{inner}|{other})+", f"{inner}{other}", f"({inner}){{1,20}}", f"(?={inner})",
         f"(?!{inner}){other}", f"({inner}|{other})", f"(?>{inner})*{other}", f"(?:{inner})+?{other}", f"({inner})++",
         f"(?i){inner}", f"(?:{inner}){{2,}}"]
    )  # fmt: skip


def soak(seconds: float, patterns: int, seed: int) -> tuple[int, int, float, float]:
    """Ask random patterns of random texts; patterns asked, texts given up, the longest batch, the longest silence.

    The silence: how long Python's main thread did not come to a signal's handler.
    """
    drawn = random.Random(seed)
    failed: list[BaseException] = []
    asked = gave_up = 0
    longest = silence = 0.0
    last = time.monotonic()

    def tick(number: int, frame: FrameType | None) -> None:
        nonlocal last, silence
        now = time.monotonic()
        silence, last = max(silence, now - last), now

    def work() -> None:
        try:
            search()
        except BaseException as error:
            failed.append(error)
            raise

    def search() -> None:
        nonlocal asked, gave_up, longest
        end = time.monotonic() + seconds
        while asked < patterns and time.monotonic() < end:
            pattern = drawn_pattern(drawn, drawn.randrange(1, 5))
            texts = [
                "".join(drawn.choices("aaaab \u00e9"[: drawn.randrange(1, 7)], k=drawn.randrange(200)))
                for _ in range(3)
            ]
            function = drawn.choice([regex.regexp, regex.regexp_extract, regex_search.regexp_count])
            given = drawn.choice([pa.scalar(pattern), pa.array([pattern] * 3)])
            began = time.monotonic()
            try:
                function(call(3), pa.array(texts), given)
            except ExecutionError:
                gave_up += 1
            except NotSupportedYetError:
                pass
            longest = max(longest, time.monotonic() - began)
            asked += 1

    before = signal.signal(signal.SIGALRM, tick)
    thread = threading.Thread(target=work)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.02, 0.02)
        thread.start()
        while thread.is_alive():
            thread.join(0.01)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert not failed
    return asked, gave_up, longest, silence


def test_random_patterns_come_back() -> None:
    asked, _, _, silence = soak(60, 60, 1)
    assert asked == 60
    assert silence < 5


@pytest.mark.nightly
def test_two_minutes_of_random_patterns() -> None:
    asked, gave_up, longest, silence = soak(120, 1_000_000, 2)
    print(f"{asked} patterns, {gave_up} given up, longest batch {longest:.3f} s, longest silence {silence:.3f} s")
    assert asked >= 1_000
    assert longest < 5
    assert silence < 2
