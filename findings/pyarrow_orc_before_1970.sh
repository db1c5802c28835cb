#!/usr/bin/env bash
# ORC files that pyarrow writes hold moments before 1970 with a fraction of a second in a form that Java's ORC refuses.
# pyarrow itself reads the file back unchanged. Moments after 1970, and whole seconds before it, are read by both.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check pyarrow==26.0.1 pyspark==4.3.0
cat > "$folder/check.py" <<'PY'
import sys
from pathlib import Path

import pyarrow as pa
import pyspark
from pyarrow import orc
from pyspark.sql import SparkSession

folder = Path(sys.argv[1])
print("pyarrow", pa.__version__, "pyspark", pyspark.__version__)
cases = {"after_1970": 500_000_000, "whole_second_before": -1_000_000_000, "fraction_before": -500_000_000}
for name, nanoseconds in cases.items():
    table = pa.table({"t": pa.array([nanoseconds], pa.timestamp("ns"))})
    orc.write_table(table, str(folder / f"{name}.orc"))
    assert orc.read_table(str(folder / f"{name}.orc")).column("t").cast(pa.int64()).to_pylist() == [nanoseconds]
spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
spark.sparkContext.setLogLevel("OFF")
found = {}
for name in cases:
    try:
        rows = spark.read.orc(str(folder / f"{name}.orc")).selectExpr("CAST(t AS STRING)").collect()
        found[name] = "read"
        print(name, rows[0][0])
    except Exception as error:
        found[name] = "refused"
        print(name, next(line for line in str(error).splitlines() if "nanos" in line).strip().rpartition(": ")[2])
spark.stop()
assert found == {"after_1970": "read", "whole_second_before": "read", "fraction_before": "refused"}, found
PY
"$folder/venv/bin/python" "$folder/check.py" "$folder" 2> "$folder/log" || { cat "$folder/log"; exit 1; }
