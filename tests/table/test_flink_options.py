"""The table of Flink's options: types, old names, and one disposition for each; what is implemented is derived."""

from __future__ import annotations

import importlib
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

from flowsql.configuration import set_option
from flowsql.option_homes import OPTION_HOMES
from flowsql.options.dispositions import RULES, rule_of
from flowsql.options.flink import find, flink_options
from flowsql_core.config import OPTIONS, Configuration
from flowsql_core.deprecated_keys import DEPRECATED_KEYS
from flowsql_core.errors import BindError

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("flowsql", "grammar", "planner", "runtime", "connectors")

#: Defaults that are FlowSQL's own on purpose.
OWN_DEFAULTS = {
    "execution.batch-shuffle-mode",  # nothing is kept twice in one process: blocking is for who asks
    "python.execution-mode",  # row-wise functions need no process of their own at parallelism 1
    "sql-client.execution.result-mode",  # rows that are printed stay on the terminal
    "python.fn-execution.arrow.batch.size",  # a call costs more than memory for rows
}
#: Values of Flink that an option that is read does not take.
OWN_VALUES = {
    ("execution.state-recovery.claim-mode", "LEGACY"),  # Flink 2 has only the word left
    ("execution.batch-shuffle-mode", "ALL_EXCHANGES_HYBRID_FULL"),
    ("execution.batch-shuffle-mode", "ALL_EXCHANGES_HYBRID_SELECTIVE"),
    ("state.backend.rocksdb.compression.per.level", "XPRESS_COMPRESSION"),  # of Windows alone
    ("state.backend.rocksdb.compression.per.level", "DISABLE_COMPRESSION_OPTION"),  # no compression of its own
}


def test_the_table_is_flinks() -> None:
    options = flink_options()
    assert len(options) > 900
    interval = options["execution.checkpointing.interval"]
    assert (interval.kind, interval.default, interval.meaning[:46]) == (
        "duration",
        "",
        "Gets the interval in which checkpoints are per"[:46],
    )
    assert options["execution.state-recovery.claim-mode"].values == ("CLAIM", "NO_CLAIM", "LEGACY")
    assert options["execution.checkpointing.dir"].old_keys[0] == "state.checkpoints.dir"


@pytest.mark.parametrize("key", [key for key, made in flink_options().items() if made.default])
def test_defaults_are_of_their_types(key: str) -> None:
    flink_options()[key].parse(flink_options()[key].default)


@pytest.mark.parametrize(
    ("kind", "good", "bad", "hint"),
    [
        ("boolean", "TRUE", "yes", "'true' or 'false'"),
        ("integer", " -7", "7.0", "whole number"),
        ("integer", "2147483647", "2147483648", "whole number below 2147483648"),
        ("long", "2147483648", "many", "whole number"),
        ("double", "0.5", "half", "number, e.g. '0.5'"),
        ("duration", "1 min", "1 parsec", "'10 s'"),
        ("memory", "64 mb", "64 mobs", "'64 mb'"),
        ("map", "a:b,c:'d,e:f'", "a", "pairs 'key:value'"),
        ("map", "{a: b}", "{a}", "pairs 'key:value'"),
        ("enum", "exactly_once", "twice", "EXACTLY_ONCE, AT_LEAST_ONCE"),
        ("enum[]", "EXACTLY_ONCE;at_least_once", "[EXACTLY_ONCE, twice]", "EXACTLY_ONCE, AT_LEAST_ONCE"),
    ],
)
def test_values_are_checked_by_type(kind: str, good: str, bad: str, hint: str) -> None:
    from flowsql.options.flink import FlinkOption

    made = FlinkOption("k", kind, ("EXACTLY_ONCE", "AT_LEAST_ONCE") if "enum" in kind else (), "", (), "")
    made.read("k", good)
    with pytest.raises(BindError, match=r"Could not parse value '.*' for key 'k'") as caught:
        made.read("k", bad)
    assert hint in (caught.value.hint or "")


def test_two_texts_of_one_value_are_equal() -> None:
    assert flink_options()["task.cancellation.interval"].parse("30000") == flink_options()[
        "task.cancellation.interval"
    ].parse("PT30S")
    assert flink_options()["pipeline.jars"].parse("[a, b]") == flink_options()["pipeline.jars"].parse("a; b")


def test_keys_with_placeholders_are_found() -> None:
    assert getattr(find("metrics.reporter.mine.interval"), "key", None) == "metrics.reporter.<name>.interval"
    assert getattr(find("metrics.reporter.mine.host.name"), "key", None) == "metrics.reporter.<name>.<parameter>"
    assert find("metrics.reporter") is None


def test_every_option_is_read_or_has_a_rule_and_every_rule_an_option() -> None:
    without = [key for key in flink_options() if key not in OPTION_HOMES and rule_of(key) is None]
    assert not without, "read them (a ConfigOption beside its reader), or give them a rule in dispositions.py"
    used = {max((start for start in RULES if key.startswith(start)), key=len, default="") for key in flink_options()}
    assert set(RULES) <= used, "rules that no option of Flink falls under"


def test_a_rule_gives_a_sentence() -> None:
    for key, rule in RULES.items():
        assert rule.reason, key
        assert not rule.reason.endswith("."), key
        for harmless in rule.harmless:
            for covered in [made for name, made in flink_options().items() if name.startswith(key)]:
                covered.parse(harmless)


def test_options_that_are_read_have_flinks_defaults_and_values() -> None:
    for module in set(OPTION_HOMES.values()):
        importlib.import_module(module)
    for key in OPTION_HOMES:
        theirs = flink_options().get(key)
        if theirs is None:
            continue
        ours = OPTIONS[key]
        if theirs.default and key not in OWN_DEFAULTS:
            assert ours.read(theirs.default) == ours.default, key
        for value in theirs.values:
            if (key, value) in OWN_VALUES:
                with pytest.raises(BindError):
                    ours.read(value)
            else:
                ours.read(value)


def test_old_keys_are_flinks_and_lead_to_options() -> None:
    options = flink_options()
    assert not set(DEPRECATED_KEYS) & set(options)
    for old, new in DEPRECATED_KEYS.items():
        assert old in options[new].old_keys


def test_an_option_counts_as_soon_as_its_constant_exists(monkeypatch: pytest.MonkeyPatch) -> None:
    """No list of what is implemented is written by hand: the module that defines the option is enough."""
    key = "queryable-state.enable"
    with pytest.raises(BindError, match="is refused: other processes cannot ask for state"):
        set_option(Configuration(), key, "true")
    home = ModuleType("home_of_a_new_option")
    monkeypatch.setitem(sys.modules, home.__name__, home)
    monkeypatch.setitem(OPTION_HOMES, key, home.__name__)
    monkeypatch.setitem(OPTIONS, key, OPTIONS["table.dml-sync"])
    told: list[str] = []
    configuration = Configuration()
    set_option(configuration, key, "true", told.append)
    assert configuration.text(key) == "true"
    assert not told


def test_homes_hold_what_they_are_said_to_hold() -> None:
    for key, module in OPTION_HOMES.items():
        importlib.import_module(module)
        assert key in OPTIONS, f"{module} does not define '{key}'"
    defined = {key for key in OPTIONS if OPTIONS[key].key == key}
    assert defined <= set(OPTION_HOMES), "run: python docs/make_options.py"


def test_every_constant_is_read() -> None:
    """A ``ConfigOption`` that no code uses would count as implemented, and do nothing."""
    texts = {}
    for folder in FOLDERS:
        for path in (ROOT / folder).rglob("*.py"):
            below = path.relative_to(ROOT if folder == "flowsql" else ROOT / folder)
            texts[".".join(below.with_suffix("").parts)] = path.read_text(encoding="utf-8")
    constants = [
        (module, name, key)
        for module, text in texts.items()
        for name, key in re.findall(r"(?m)^([A-Z_0-9]+)(?:: [^=]+)? = option\(\s*\"([^\"]+)\"", text)
    ]
    assert {key for _, _, key in constants} == set(OPTION_HOMES)

    def is_read(module: str, name: str) -> bool:
        imported = re.compile(rf"from {re.escape(module)} import (\([^)]*\b{name}\b|[^(\n]*\b{name}\b)")
        readers = [text for other, text in texts.items() if other == module or imported.search(text)]
        # Where it is defined or imported it stands once; whoever reads it names it again.
        return any(len(re.findall(rf"\b{name}\b", text)) > 1 for text in readers)

    assert not [f"{name} ({key})" for module, name, key in constants if not is_read(module, name)]
