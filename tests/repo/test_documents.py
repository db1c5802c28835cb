"""Documents say what the code does."""

from __future__ import annotations

import importlib.util
import re
import shutil
from pathlib import Path
from types import ModuleType
from weakref import WeakSet

import pytest

from flowsql.common import public_api

from ..spark.spark_machine import ON_SPARK, hurry
from .document_blocks import Reader

ROOT = Path(__file__).resolve().parents[2]
SOURCES = ("flowsql", "grammar", "planner", "runtime", "connectors", "tests", "docs")


@pytest.fixture(scope="module")
def make_options() -> ModuleType:
    spec = importlib.util.spec_from_file_location("make_options", ROOT / "docs" / "make_options.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_table_of_options_is_current(make_options: ModuleType) -> None:
    assert make_options.TABLE.read_text() == make_options.render_table(), "run: python docs/make_options.py"


def test_homes_of_options_are_current(make_options: ModuleType) -> None:
    assert make_options.HOMES.read_text() == make_options.render_homes(), "run: python docs/make_options.py"


def documents() -> list[Path]:
    return [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]


def name_of(path: Path) -> str:
    return path.relative_to(ROOT / "docs" if path.is_relative_to(ROOT / "docs") else ROOT).as_posix()


@pytest.mark.parametrize("name", ["docs/architecture.md", "CONTRIBUTING.md"])
def test_paths_that_are_named_exist(name: str) -> None:
    """Folders end with a slash; a path may begin in the middle."""
    found = [path for folder in SOURCES for path in [ROOT / folder, *(ROOT / folder).rglob("*")]]
    paths = ["/" + path.relative_to(ROOT).as_posix() for path in found]
    named = re.findall(r"`([\w./-]+/|[\w./-]+/[\w.-]+\.(?:py|md|lark))`", (ROOT / name).read_text())
    assert len(named) > 5
    assert [name for name in named if not any(path.endswith("/" + name.rstrip("/")) for path in paths)] == []


@pytest.mark.parametrize("path", documents(), ids=name_of)
def test_make_targets_that_are_named_exist(path: Path) -> None:
    targets = set(re.findall(r"(?m)^([a-z]+):", (ROOT / "Makefile").read_text()))
    named = set(re.findall(r"(?m)(?:`|^)make ([a-z]+)", path.read_text()))
    assert named <= targets


#: The flights, which ``make test`` and ``make demo`` lay out.
DEMO_DATA = ROOT / "build" / "demo-data"

#: What a pipeline leaves behind when it has run in the checkout.
_RUNS = shutil.ignore_patterns("out", ".flowsql")


def write_data(folder: Path) -> None:
    """What the blocks of documents read."""
    (folder / "clicks.csv").write_text("ann,2020-01-01 10:00:05\nbob,2020-01-01 10:00:20\nann,2020-01-01 10:01:10\n")
    (folder / "cities.json").write_text('{"ORD": "Chicago"}')
    shutil.copytree(ROOT / "examples" / "pipeline", folder / "examples" / "pipeline", ignore=_RUNS)
    (folder / "build").mkdir()
    (folder / "build" / "demo-data").symlink_to(DEMO_DATA)
    (folder / "my_package").mkdir()
    (folder / "my_package" / "functions.py").write_text("def plus(a: int, b: int) -> int:\n    return a + b\n")


#: Documents whose blocks run on Spark.
SPARKS = ("howto/run_on_spark.md", "spark.md", "spark_streaming.md")


@pytest.mark.parametrize(
    "path",
    [pytest.param(path, id=name_of(path), marks=ON_SPARK if name_of(path) in SPARKS else ()) for path in documents()],
)
def test_every_block_does_what_it_says(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Sessions of other tests that show all frames of errors may still be alive.
    monkeypatch.setattr(public_api, "_sessions", WeakSet())
    if name_of(path) in SPARKS:
        hurry()
    if str(DEMO_DATA.relative_to(ROOT)) in path.read_text() and not (DEMO_DATA / "flights.csv").exists():
        pytest.skip(f"the flights are not there: python examples/prepare_flights.py {DEMO_DATA.relative_to(ROOT)}")
    write_data(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    Reader(tmp_path).read(path.read_text())


@pytest.mark.parametrize(
    ("block", "complaint"),
    [
        ('```console\n$ flowsql -c "SELECT 1"\n+I 2\n```\n', "the console block of line 3"),
        ("```console\n$ make demo\n```\n", "'make demo' is no command of flowsql"),
        ("```console\n$ flowsql -c 'SELECT at FROM t'\n```\n", "SQL parse failed"),
        ("```sql\nSELECT a FROM nowhere;\n```\n", "Object 'nowhere' not found"),
        ("```sql\n-- lost.sql\nSELECT 1;\n```\n", "no command runs lost.sql"),
        ("```python\nprint(undefined)\n```\n", "the python block of line 3: name 'undefined' is not defined"),
        ("```python\nprint(1)\n```\n\n```text\n2\n```\n", "the python block of line 3"),
        ("```sql\nSELECT 1;\n```\n\n```text\n2 rows\n```\n", "the sql block of line 3"),
        ("```yaml\n- 1\n```\n", "must hold keys and values"),
        ("```\nSELECT 1;\n```\n", "its kind is none"),
        ("```sh\nmake demo\n```\n", "no test runs it: write why"),
        (
            "<!-- not run: drawn -->\n```text\n->\n```\n\n```text\n->\n```\n",
            "the text block of line 8: no test runs it",
        ),
    ],
)
def test_a_wrong_block_is_found(block: str, complaint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(AssertionError, match=re.escape(complaint)):
        Reader(tmp_path).read(f"# Title\n\n{block}")


def test_readme_begins_with_the_two_commands() -> None:
    first_screen = (ROOT / "README.md").read_text().splitlines()[:24]
    assert any("make demo" in line for line in first_screen)
    assert any("make test" in line for line in first_screen)
