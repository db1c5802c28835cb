"""Readings of sensors into files, each exactly once: lines in folders by the hour, and csv files for other programs.

``FileSink`` in both its forms: rows of text that roll by size, and a bulk format whose small files are merged.

    python examples/stream_files.py FOLDER
"""

from __future__ import annotations

import sys
from pathlib import Path

from flowsql.common import Encoder, Row, Types
from flowsql.datastream import StreamExecutionEnvironment
from flowsql.datastream.connectors.file_system import (
    BucketAssigner,
    FileCompactor,
    FileCompactStrategy,
    FileSink,
    OutputFileConfig,
    RollingPolicy,
)
from flowsql.datastream.formats.csv import CsvBulkWriters, CsvSchema
from flowsql.table import DataTypes

READING = Types.ROW_NAMED(["sensor", "celsius"], [Types.STRING(), Types.DOUBLE()])
READINGS = [Row(f"sensor {number % 3}", 20 + number / 4) for number in range(12)]


def lines(folder: Path) -> FileSink:
    """Texts, a new file from 100 bytes on, folders such as ``2024-01-31--09``."""
    return (
        FileSink.for_row_format(str(folder), Encoder.simple_string_encoder())
        .with_bucket_assigner(BucketAssigner.date_time_bucket_assigner("yyyy-MM-dd--HH", "UTC"))
        .with_rolling_policy(RollingPolicy.default_rolling_policy(part_size=100))
        .with_output_file_config(OutputFileConfig.builder().with_part_prefix("readings").build())
        .build()
    )


def table(folder: Path) -> FileSink:
    """Csv files with a header; those of ten checkpoints become one."""
    schema = CsvSchema.builder().add_string_column("sensor").add_number_column("celsius", DataTypes.DOUBLE())
    merged = FileCompactStrategy.builder().enable_compaction_on_checkpoint(10).build()
    return (
        FileSink.for_bulk_format(str(folder), CsvBulkWriters.for_schema(schema.set_use_header().build()))
        .with_bucket_assigner(BucketAssigner.base_path_bucket_assigner())
        .with_output_file_config(OutputFileConfig.builder().with_part_suffix(".csv").build())
        .enable_compact(merged, FileCompactor.concat_file_compactor())
        .build()
    )


def main(folder: Path) -> None:
    """Write the readings and show how many lines each file has."""
    env = StreamExecutionEnvironment.get_execution_environment()
    env.enable_checkpointing(1_000)
    readings = env.from_collection(READINGS, READING)
    readings.map(lambda row: f"{row.sensor}: {row.celsius:.2f}", Types.STRING()).sink_to(lines(folder / "lines"))
    readings.sink_to(table(folder / "csv")).uid("csv files")
    env.execute("readings")
    for path in sorted(folder.rglob("*-*")):
        if path.is_file():
            print(path.parent.relative_to(folder).parts[0], len(path.read_text().splitlines()))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
