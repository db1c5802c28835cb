"""What a lake's library costs: nothing where it is not used, one sentence where it is missing."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from typing import Any

import pytest

from flowsql_connectors.lakes import installed
from flowsql_core.errors import ConnectorError
from tests.connectors.tables import insert, scan

from .lake import Lake
from .sessions import session


@pytest.mark.parametrize("module", ["pyiceberg", "deltalake"])
def test_a_library_that_is_missing(lake: Lake, monkeypatch: pytest.MonkeyPatch, module: str) -> None:
    def found(name: str) -> Any:
        return None if name == module else importlib.util.find_spec(name)

    monkeypatch.setattr(installed, "find_spec", found)
    if (module == "pyiceberg") is not (lake.kind == "iceberg"):
        insert(lake.table("a INT"), [(1,)])
        return
    said = f"Connector '{lake.kind}' needs the Python module '{module}', which is not installed."
    for use in (
        lambda: scan(lake.table("a INT")),
        lambda: insert(lake.table("a INT"), [(1,)]),
        lambda: session().execute_sql(f"CREATE TABLE t WITH ({lake.clause})"),
    ):
        with pytest.raises(ConnectorError) as told:
            use()
        assert told.value.message == said
        assert told.value.hint == f"pip install 'flowsql[{lake.kind}]'"


@pytest.mark.nightly
def test_libraries_are_imported_on_use() -> None:
    text = (
        "import sys\n"
        "from flowsql_connectors import registry\n"
        "for name in ('iceberg', 'delta'):\n"
        "    registry.source_factory(name), registry.sink_factory(name)\n"
        "registry.catalog_factory('iceberg').options()\n"
        "print([name for name in ('pyiceberg', 'deltalake', 'sqlalchemy', 'pydantic') if name in sys.modules])\n"
    )
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, env=_environment())
    assert done.stdout == "[]\n", done.stderr


def _environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
