from __future__ import annotations

from pathlib import Path

import pytest

from flowsql.configuration import command_line_configuration, file_configuration, set_option
from flowsql.table import EnvironmentSettings, TableEnvironment
from flowsql_core.config import PARALLELISM, Configuration
from flowsql_core.errors import BindError


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("FLOWSQL_CONF_DIR", raising=False)
    return tmp_path


def test_file_may_be_nested_or_flat(folder: Path) -> None:
    (folder / "config.yaml").write_text(
        "execution:\n  runtime-mode: batch\nparallelism.default: 2\ntable:\n  exec.mini-batch:\n    enabled: true\n"
        "my.list: [a, b]\nempty:\n"
    )
    assert dict(file_configuration().items()) == {
        "execution.runtime-mode": "batch",
        "parallelism.default": "2",
        "table.exec.mini-batch.enabled": "true",
        "my.list": "a;b",
    }


def test_named_folder_must_hold_the_file(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLOWSQL_CONF_DIR", str(folder / "conf"))
    with pytest.raises(BindError, match=r"config\.yaml"):
        file_configuration()
    (folder / "conf").mkdir()
    (folder / "conf" / "config.yaml").write_text("parallelism.default: 7\n")
    assert file_configuration().get(PARALLELISM) == 7


@pytest.mark.parametrize("text", ["- a\n- b\n", "a: [unclosed\n", "parallelism.default: many\n"])
def test_a_broken_file_is_refused(folder: Path, text: str) -> None:
    (folder / "config.yaml").write_text(text)
    with pytest.raises(BindError):
        file_configuration()


def test_precedence_is_file_command_line_set(folder: Path) -> None:
    (folder / "config.yaml").write_text("parallelism.default: 2\na: file\nb: file\nc: file\n")
    warnings: list[str] = []
    line = command_line_configuration([("b", "line"), ("c", "line"), ("c", "later")], "tableau", warnings.append)
    environment = TableEnvironment.of_configuration(line)
    environment.execute_sql("SET 'c' = 'set'")
    config = environment.get_config()
    assert [config.get(key, "") for key in "abc"] == ["file", "line", "set"]
    assert environment.configuration.get(PARALLELISM) == 2
    environment.execute_sql("RESET 'c'")
    assert config.get("c", "") == "later"
    environment.execute_sql("SET 'b' = 'set'")
    environment.execute_sql("RESET")
    assert config.get("b", "") == "line"
    assert not warnings


def test_settings_and_table_config_share_one_place(folder: Path) -> None:
    settings = (
        EnvironmentSettings.new_instance().in_batch_mode().with_configuration({"parallelism.default": "3"}).build()
    )
    assert not settings.is_streaming_mode()
    environment = TableEnvironment.create(settings)
    assert environment.get_config().get("parallelism.default", "") == "3"
    environment.get_config().set("parallelism.default", "4")
    rows = [tuple(row) for row in environment.execute_sql("SET").collect()]
    assert rows == [("execution.runtime-mode", "BATCH"), ("parallelism.default", "4")]


def test_unknown_keys_are_kept_and_near_misses_told() -> None:
    configuration = Configuration()
    told: list[str] = []
    set_option(configuration, "my.own.key", "x", told.append)
    assert not told
    set_option(configuration, "table.exec.state.tll", "1 h", told.append)
    assert told == ["Unknown configuration key 'table.exec.state.tll': did you mean 'table.exec.state.ttl'?"]
    assert configuration.text("my.own.key") == "x"
    assert configuration.text("table.exec.state.tll") == "1 h"


def test_old_keys_are_read_under_their_new_name() -> None:
    configuration = Configuration()
    told: list[str] = []
    set_option(configuration, "execution.buffer-timeout", "5 ms", told.append)
    assert told == ["The key 'execution.buffer-timeout' is deprecated, use 'execution.buffer-timeout.interval'."]
    assert configuration.text("execution.buffer-timeout.interval") == "5 ms"


def test_options_of_modules_not_loaded_yet_are_judged() -> None:
    with pytest.raises(BindError, match=r"flowsql\.source\.batch-rows"):
        set_option(Configuration(), "flowsql.source.batch-rows", "many")
