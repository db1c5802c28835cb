#!/usr/bin/env bash
# pyiceberg writes a NULL list of structs as an empty list, on append; a NULL list of numbers stays NULL.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check "pyiceberg[sql-sqlite]==0.12.0" pyarrow==26.0.1
cd "$folder"
"$folder/venv/bin/python" - <<'PY'
import glob

import pyarrow as pa
import pyarrow.parquet as pq
import pyiceberg
from pyiceberg.catalog.sql import SqlCatalog

print("pyiceberg", pyiceberg.__version__, "pyarrow", pa.__version__)
rows = pa.table(
    {
        "structs": pa.array([None, [], [{"p": 1}]], pa.list_(pa.struct([("p", pa.int32())]))),
        "numbers": pa.array([None, [], [1]], pa.list_(pa.int32())),
    }
)
catalog = SqlCatalog("c", uri="sqlite:///catalog.db", warehouse=".")
catalog.create_namespace("n")
table = catalog.create_table("n.t", rows.schema)
table.append(rows)
(path,) = glob.glob("n/**/*.parquet", recursive=True)
stored = pq.read_table(path)
for name in rows.column_names:
    given, file, scanned = (one[name].to_pylist() for one in (rows, stored, table.scan().to_arrow()))
    print(name, "appended", given, "in the file", file, "scanned", scanned)
assert stored["structs"].to_pylist()[0] == []
assert stored["numbers"].to_pylist()[0] is None
PY
