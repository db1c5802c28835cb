#!/usr/bin/env bash
# PyFlink writes records of Avro with two arrays: the second one is stored empty.
# Needs Java 17 or 21 and a Python that apache-flink 2.3 has wheels for.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check apache-flink==2.3.0
jar=flink-sql-avro-2.3.0.jar
curl --silent --show-error --fail --output "$folder/$jar" \
  "https://repo1.maven.org/maven2/org/apache/flink/flink-sql-avro/2.3.0/$jar"
mkdir "$folder/out"
"$folder/venv/bin/python" - "$folder/out" "$folder/$jar" <<'PY'
import glob
import json
import os
import sys

import fastavro
import pyflink.version
from pyflink.datastream import StreamExecutionEnvironment
from pyflink.datastream.connectors.file_system import FileSink
from pyflink.datastream.formats.avro import AvroBulkWriters, AvroSchema, GenericRecordAvroTypeInfo

folder, jar = sys.argv[1:]
schema = {
    "type": "record",
    "name": "r",
    "fields": [
        {"name": "a", "type": {"type": "array", "items": "int"}},
        {"name": "b", "type": {"type": "array", "items": "string"}},
    ],
}
given = [{"a": [1, 2], "b": ["x", "y"]}]
env = StreamExecutionEnvironment.get_execution_environment()
env.set_python_executable(sys.executable)
env.set_parallelism(1)
env.add_jars("file://" + jar)
avro_schema = AvroSchema.parse_string(json.dumps(schema))
records = env.from_collection(given).map(lambda row: row, output_type=GenericRecordAvroTypeInfo(avro_schema))
records.sink_to(FileSink.for_bulk_format(folder, AvroBulkWriters.for_generic_record(avro_schema)).build())
env.execute()
paths = glob.glob(folder + "/*/*", include_hidden=True)
(path,) = [path for path in paths if not path.endswith(".crc") and os.path.isfile(path)]
with open(path, "rb") as file:
    found = list(fastavro.reader(file))
print("apache-flink", pyflink.version.__version__)
print("given ", given)
print("stored", found)
assert found == [{"a": [1, 2], "b": []}]
PY
