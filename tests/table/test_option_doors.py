"""Every option of Flink through every door: it is read, or the user is told or refused in a sentence."""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path

import pytest
import yaml

from flowsql.cli.main import main
from flowsql.common import Configuration as UserConfiguration
from flowsql.configuration import command_line_configuration
from flowsql.datastream import StreamExecutionEnvironment
from flowsql.option_homes import OPTION_HOMES
from flowsql.options.dispositions import NoEffect, rule_of
from flowsql.options.flink import FlinkOption, flink_options
from flowsql.table import EnvironmentSettings, StreamTableEnvironment, TableEnvironment
from flowsql_core.config import Configuration
from flowsql_core.errors import BindError, FlowSqlError

#: Sets an option and answers the configuration that then counts.
Door = Callable[[str, str], Configuration]


def by_set(key: str, value: str) -> Configuration:
    session = TableEnvironment.create()
    session.execute_sql(f"SET '{key}' = '{value}'")
    return session.configuration


def by_table_config(key: str, value: str) -> Configuration:
    session = TableEnvironment.create()
    session.get_config().set(key, value)
    return session.configuration


def by_session_configuration(key: str, value: str) -> Configuration:
    session = TableEnvironment.create()
    session.get_config().get_configuration().set_string(key, value)
    return session.configuration


def by_added_configuration(key: str, value: str) -> Configuration:
    session = TableEnvironment.create()
    session.get_config().add_configuration(UserConfiguration().set_string(key, value))
    return session.configuration


def by_settings(key: str, value: str) -> Configuration:
    return TableEnvironment.create(
        EnvironmentSettings.new_instance().with_configuration(UserConfiguration().set_string(key, value)).build()
    ).configuration


def by_creation(key: str, value: str) -> Configuration:
    return TableEnvironment.create(UserConfiguration().set_string(key, value)).configuration


def by_stream_table_settings(key: str, value: str) -> Configuration:
    streams = StreamExecutionEnvironment.get_execution_environment()
    settings = UserConfiguration().set_string(key, value)
    return StreamTableEnvironment.create(streams, settings).configuration


def by_stream_environment(key: str, value: str) -> Configuration:
    return StreamExecutionEnvironment.get_execution_environment(
        UserConfiguration().set_string(key, value)
    ).configuration


def by_configure(key: str, value: str) -> Configuration:
    streams = StreamExecutionEnvironment.get_execution_environment()
    streams.configure(UserConfiguration().set_string(key, value))
    return streams.configuration


def by_file(key: str, value: str) -> Configuration:
    Path("config.yaml").write_text(yaml.safe_dump({key: value}), encoding="utf-8")
    try:
        return TableEnvironment.create().configuration
    finally:
        Path("config.yaml").unlink()


def by_command_line(key: str, value: str) -> Configuration:
    return command_line_configuration([(key, value)], "tableau", warnings.warn)


DOORS: tuple[Door, ...] = (
    by_set,
    by_table_config,
    by_session_configuration,
    by_added_configuration,
    by_settings,
    by_creation,
    by_stream_table_settings,
    by_stream_environment,
    by_configure,
    by_file,
    by_command_line,
)


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("FLOWSQL_CONF_DIR", raising=False)


@contextmanager
def told() -> Iterator[list[str]]:
    """Sentences that are told: warnings of Python, and lines on the error output."""
    sentences: list[str] = []
    err = io.StringIO()
    with warnings.catch_warnings(record=True) as caught, redirect_stderr(err):
        warnings.simplefilter("always")
        yield sentences
    sentences += [str(warning.message) for warning in caught] + err.getvalue().splitlines()


def other_than_default(option: FlinkOption) -> str:
    """A value of the option's type that asks for something."""
    match option.kind.removesuffix("[]"):
        case "boolean":
            return "false" if option.default == "true" else "true"
        case "enum":
            return next(value for value in reversed(option.values) if value not in (option.default, "NONE", "TABLEAU"))
        case "duration":
            return "77 s"
        case "memory":
            return "77 mb"
        case "map":
            return "mine:yours"
        case "string":
            return "mine"
    return "77"


def written(key: str) -> str:
    """A key as a user writes it, without placeholders."""
    for name in ("name", "parameter", "param", "resource_name", "key", "serviceName"):
        key = key.replace(f"<{name}>", "mine")
    assert "<" not in key
    return key


@contextmanager
def refused(key: str, value: str) -> Iterator[None]:
    """An error that names the option and its value."""
    with pytest.raises(FlowSqlError) as caught:
        yield
    assert caught.value.code in ("not-supported-yet", "option-refused"), key
    assert f"'{key}' = '{value}'" in caught.value.message


@pytest.mark.parametrize("door", DOORS, ids=lambda door: door.__name__)
def test_nothing_is_stored_without_a_word(door: Door) -> None:
    for option in flink_options().values():
        if option.key in OPTION_HOMES:
            continue
        key, value = written(option.key), other_than_default(option)
        if isinstance(rule_of(option.key), NoEffect):
            with told() as sentences:
                configuration = door(key, value)
            assert len(sentences) == 1, (key, sentences)
            assert f"'{key}' has no effect: " in sentences[0]
            assert configuration.text(key) == value
        else:
            with refused(key, value):
                door(key, value)


@pytest.mark.parametrize("door", DOORS, ids=lambda door: door.__name__)
def test_defaults_of_flink_pass_in_silence(door: Door) -> None:
    for option in flink_options().values():
        if option.default:
            with told() as sentences:
                assert door(written(option.key), option.default).text(written(option.key)) == option.default
            assert not sentences, option.key


@pytest.mark.parametrize("door", DOORS, ids=lambda door: door.__name__)
def test_values_are_judged_at_every_door(door: Door) -> None:
    for key in ("taskmanager.numberOfTaskSlots", "parallelism.default", "execution.checkpointing.timeout"):
        with pytest.raises(BindError, match=f"Could not parse value 'mine' for key '{key}'"):
            door(key, "mine")


@pytest.mark.parametrize("door", DOORS, ids=lambda door: door.__name__)
def test_a_misspelt_option_of_state_is_refused_at_every_door(door: Door) -> None:
    for key, meant in {
        "execution.checkpointing.intervall": "execution.checkpointing.interval",
        "execution.checkpoint.dir": "execution.checkpointing.dir",
        "state.checkpoint.dir": "execution.checkpointing.dir",
        "restart-strategy.fixed-delay.attempt": "restart-strategy.fixed-delay.attempts",
        "State.Backend.Type": "state.backend.type",
        "flowsql.memroy": "flowsql.memory",
    }.items():
        with pytest.raises(BindError, match="There is no option") as caught:
            door(key, "1")
        assert caught.value.hint == f"did you mean '{meant}'?"


@pytest.mark.parametrize("door", DOORS, ids=lambda door: door.__name__)
def test_own_keys_pass_and_old_ones_are_read(door: Door) -> None:
    with told() as sentences:
        assert door("my.own.key", "x").text("my.own.key") == "x"
    assert not sentences
    with told() as sentences:
        assert door("restart-strategy", "none").text("restart-strategy.type") == "none"
    assert len(sentences) == 1
    assert "use 'restart-strategy.type'" in sentences[0]
    with told() as sentences:
        assert door("akka.ask.timeout", "5 s").text("pekko.ask.timeout") == "5 s"
    assert len(sentences) == 2
    with pytest.raises(FlowSqlError, match=r"'state\.backend\.type'"):
        door("state.backend", "mine")


@pytest.mark.parametrize("door", DOORS, ids=lambda door: door.__name__)
def test_maps_may_be_written_entry_by_entry(door: Door) -> None:
    with told() as sentences:
        assert door("pipeline.global-job-parameters.mine", "a,b").text("pipeline.global-job-parameters") == "mine:'a,b'"
    assert not sentences
    with told() as sentences:
        door("kubernetes.jobmanager.labels.team", "mine")
    assert [sentence.partition(" has no effect")[0].removeprefix("[WARNING] ") for sentence in sentences] == [
        "'kubernetes.jobmanager.labels.team'"
    ]
    with pytest.raises(BindError, match=r"'pipeline\.jobvertex-parallelism-overrides\.a' = '2' is refused"):
        door("pipeline.jobvertex-parallelism-overrides.a", "2")


def test_what_asks_for_nothing_is_taken() -> None:
    for key, value in {
        "execution.checkpointing.interval": "0",
        "restart-strategy.type": "OFF",
        "state.backend.type": "hashmap",
        "execution.target": "local",
        "high-availability.type": "none",
        "sql-client.execution.result-mode": "tableau",
    }.items():
        with told() as sentences:
            assert by_set(key, value).text(key) == value
        assert not sentences


def test_a_session_is_told_once() -> None:
    session = TableEnvironment.create()
    with told() as sentences:
        session.execute_sql("SET 'yarn.tags' = 'a'")
        session.execute_sql("SET 'yarn.tags' = 'b'")
        session.execute_sql("RESET 'yarn.tags'")
        session.get_config().set("yarn.tags", "c")
        session.execute_sql("SET 'yarn.application.name' = 'a'")
    assert len(sentences) == 2
    with told() as sentences:
        TableEnvironment.create().execute_sql("SET 'yarn.tags' = 'a'")
    assert len(sentences) == 1


def test_a_warning_points_at_the_line_that_set_the_option() -> None:
    with pytest.warns(UserWarning, match=r"yarn\.tags") as caught:
        StreamExecutionEnvironment.get_execution_environment(UserConfiguration().set_string("yarn.tags", "a"))
    assert [warning.filename for warning in caught] == [__file__]


def test_a_hint_takes_options_of_its_table_only() -> None:
    session = TableEnvironment.create()
    session.execute_sql("CREATE TABLE t (n INT) WITH ('connector' = 'datagen', 'number-of-rows' = '1')")
    with pytest.raises(FlowSqlError, match="Unsupported options"):
        session.execute_sql("SELECT * FROM t /*+ OPTIONS('execution.checkpointing.interval' = '1 s') */")


def test_the_command_keeps_its_output_clean(tmp_path: Path) -> None:
    Path("config.yaml").write_text("rest.port: 8082\n")
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = main(
            [
                "--format",
                "jsonl",
                "-D",
                "yarn.tags=a",
                "-c",
                "SET 'web.history' = '7'; SET 'web.history' = '8'; SELECT 1",
            ]
        )
    assert code == 0
    assert all(line.startswith("{") for line in out.getvalue().splitlines())
    assert [line.partition(" has no effect")[0] for line in err.getvalue().splitlines()] == [
        "[WARNING] 'rest.port'",
        "[WARNING] 'yarn.tags'",
        "[WARNING] 'web.history'",
    ]


def test_the_command_refuses_what_it_would_not_follow() -> None:
    for arguments, code in (
        (["-D", "execution.target=remote", "-c", "SELECT 1"], 2),
        (["-c", "SET 'execution.target' = 'remote'; SELECT 1"], 1),
    ):
        out, err = io.StringIO(), io.StringIO()
        with redirect_stdout(out), redirect_stderr(err):
            assert main(arguments) == code
        assert "Could not parse value 'remote' for key 'execution.target'" in err.getvalue()
        assert "expected one of local, spark" in err.getvalue()
