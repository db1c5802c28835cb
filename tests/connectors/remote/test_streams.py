"""``FileSink`` of DataStreams into object stores."""

from __future__ import annotations

import pytest

from flowsql.common import Encoder
from flowsql.common.configuration import Configuration
from flowsql.datastream import StreamExecutionEnvironment
from flowsql.datastream.connectors.file_system import (
    BucketAssigner,
    FileCompactor,
    FileCompactStrategy,
    FileSink,
    OutputFileConfig,
)
from flowsql_core.errors import NotSupportedYetError
from tests.connectors.remote.store import Store


def write(store: Store, sink: FileSink) -> None:
    settings = Configuration()
    for key, value in store.settings.items():
        settings.set_string(key, value)
    env = StreamExecutionEnvironment.get_execution_environment(settings)
    env.set_parallelism(1)
    env.from_collection(["a", "b"]).sink_to(sink)
    env.execute()


def builder(store: Store) -> FileSink.RowFormatBuilder:
    return (
        FileSink.for_row_format(store.root, Encoder.simple_string_encoder())
        .with_bucket_assigner(BucketAssigner.base_path_bucket_assigner())
        .with_output_file_config(OutputFileConfig.builder().with_part_suffix(".txt").build())
    )


def test_values_become_objects(store: Store) -> None:
    write(store, builder(store).build())
    (name,) = store.names()
    assert name.startswith("part-")
    assert name.endswith(".txt")
    assert store.get(name) == b"a\nb\n"


def test_merging_is_refused(store: Store) -> None:
    strategy = FileCompactStrategy.builder().enable_compaction_on_checkpoint(1).build()
    made = builder(store).enable_compact(strategy, FileCompactor.concat_file_compactor()).build()
    with pytest.raises(NotSupportedYetError, match="enable_compact in an object store"):
        write(store, made)
