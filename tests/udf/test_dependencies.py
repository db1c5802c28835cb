"""What programs bring along for their functions: archives, packages, the interpreter, a default parallelism."""

from __future__ import annotations

import sys
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from flowsql.datastream import StreamExecutionEnvironment
from flowsql.table import DataTypes, EnvironmentSettings, TableEnvironment
from flowsql.table.expressions import col
from flowsql.table.udf import udf
from flowsql_core.errors import BindError, ExecutionError, FlowSqlError


@pytest.fixture
def environment() -> TableEnvironment:
    return TableEnvironment.create(EnvironmentSettings.in_streaming_mode())


def packed(folder: Path, name: str) -> str:
    """A zip or tar file with ``note.txt``."""
    note, path = folder / "note.txt", folder / name
    note.write_text("7")
    if name.endswith(".zip"):
        with zipfile.ZipFile(path, "w") as archive:
            archive.write(note, "note.txt")
    else:
        with tarfile.open(path, "w:gz") as tar:
            tar.add(note, "note.txt")
    note.unlink()
    return str(path)


def read_by_function(environment: TableEnvironment, *files: str) -> list[list[int]]:
    @udf(result_type=DataTypes.ARRAY(DataTypes.BIGINT()))
    def numbers(i):  # type: ignore[no-untyped-def]
        return [i + int(open(file).read()) for file in files]

    table = environment.from_elements([(1,)], ["i"]).select(numbers(col("i")))
    return [row[0] for row in table.execute().collect()]


def test_functions_open_files_of_archives(environment: TableEnvironment, tmp_path: Path) -> None:
    environment.add_python_archive(packed(tmp_path, "a.zip"), "data")
    environment.add_python_archive(packed(tmp_path, "b.tar.gz"))
    assert read_by_function(environment, "data/note.txt", "b.tar.gz/note.txt") == [[8, 8]]
    assert not Path("data").exists()


def test_archives_that_are_none(environment: TableEnvironment, tmp_path: Path) -> None:
    archive = packed(tmp_path, "a.zip")
    with pytest.raises(BindError, match="There is no archive"):
        environment.add_python_archive(str(tmp_path / "b.zip"))
    for folder in ("../up", "/root", "a/../../up"):
        with pytest.raises(BindError, match="is not below the working directory"):
            environment.add_python_archive(archive, folder)
    note = tmp_path / "note.txt"
    note.write_text("7")
    with pytest.raises(BindError, match="is no archive"):
        environment.add_python_archive(str(note))
    damaged = tmp_path / "damaged.zip"
    damaged.write_text("no zip")
    environment.add_python_archive(str(damaged))
    with pytest.raises(FlowSqlError, match=r"damaged\.zip' cannot be unpacked"):
        read_by_function(environment, "note.txt")


def test_archives_need_processes(environment: TableEnvironment, tmp_path: Path) -> None:
    environment.add_python_archive(packed(tmp_path, "a.zip"))
    environment.get_config().set("python.execution-mode", "thread")
    with pytest.raises(ExecutionError, match=r"'python\.archives' needs worker processes"):
        read_by_function(environment, "a.zip/note.txt")


@pytest.fixture
def _paths() -> Iterator[None]:
    before = list(sys.path)
    yield
    sys.path[:] = before


@pytest.mark.usefixtures("_paths")
def test_requirements_are_installed_from_a_folder(environment: TableEnvironment, tmp_path: Path) -> None:
    wheel = tmp_path / "cache" / "brought_for_functions-1.0-py3-none-any.whl"
    wheel.parent.mkdir()
    info = "brought_for_functions-1.0.dist-info"
    files = {
        "brought_for_functions.py": "def twice(x):\n    return 2 * x\n",
        f"{info}/METADATA": "Metadata-Version: 2.1\nName: brought-for-functions\nVersion: 1.0\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    with zipfile.ZipFile(wheel, "w") as packed_wheel:
        for name, text in files.items():
            packed_wheel.writestr(name, text)
        packed_wheel.writestr(f"{info}/RECORD", "".join(f"{name},,\n" for name in (*files, f"{info}/RECORD")))
    requirements = tmp_path / "requirements.txt"
    requirements.write_text("brought-for-functions==1.0\n")
    environment.set_python_requirements(str(requirements), str(wheel.parent))

    @udf(result_type=DataTypes.BIGINT())
    def doubled(i):  # type: ignore[no-untyped-def]
        from brought_for_functions import twice  # type: ignore[import-not-found, import-untyped, unused-ignore]

        return twice(i)

    for mode in ("thread", "process"):
        environment.get_config().set("python.execution-mode", mode)
        table = environment.from_elements([(3,)], ["i"]).select(doubled(col("i")))
        assert [row[0] for row in table.execute().collect()] == [6]
    requirements.write_text("brought-for-functions==2.0\n")
    with pytest.raises(BindError, match="pip cannot install the requirements of"):
        environment.set_python_requirements(str(requirements), str(wheel.parent))
    with pytest.raises(BindError, match="There is no folder of packages"):
        environment.set_python_requirements(str(requirements), "/nosuch")
    with pytest.raises(BindError, match="There is no file of requirements"):
        StreamExecutionEnvironment.get_execution_environment().set_python_requirements("/nosuch")


def test_the_interpreter_is_this_one(tmp_path: Path) -> None:
    link = tmp_path / "py"
    link.symlink_to(sys.executable)
    environment = StreamExecutionEnvironment.get_execution_environment()
    environment.set_python_executable(str(link))
    with pytest.raises(BindError, match="functions run with the Python of this program"):
        environment.set_python_executable("/bin/sh")


def test_new_environments_have_the_default_parallelism(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(StreamExecutionEnvironment, "_default_parallelism", None)
    before = StreamExecutionEnvironment.get_execution_environment()
    before.set_default_local_parallelism(3)
    assert before.get_parallelism() == 1
    assert before.get_default_local_parallelism() == 3
    assert StreamExecutionEnvironment.get_execution_environment().get_parallelism() == 3
    with pytest.raises(ValueError, match="must be at least 1"):
        before.set_default_local_parallelism(0)


def test_the_first_catalog_has_a_name() -> None:
    builder = EnvironmentSettings.new_instance().with_built_in_catalog_name("my").with_built_in_database_name("db")
    settings = builder.build()
    assert (settings.get_built_in_catalog_name(), settings.get_built_in_database_name()) == ("my", "db")
    environment = TableEnvironment.create(settings)
    assert (environment.get_current_catalog(), environment.get_current_database()) == ("my", "db")
    assert (environment.list_catalogs(), environment.list_databases()) == (["my"], ["db"])
    assert next(iter(environment.execute_sql("SELECT CURRENT_DATABASE()").collect()))[0] == "db"
    environment.execute_sql("CREATE TABLE t (a INT) WITH ('connector' = 'datagen', 'number-of-rows' = '1')")
    environment.execute_sql("CREATE VIEW v AS SELECT a IS NULL AS n FROM t")
    assert [row[0] for row in environment.execute_sql("SELECT n FROM my.db.v").collect()] == [False]
