"""Objects of state backends, checkpoint storages and slot sharing groups, with the values that PyFlink 2.3 gave."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from flowsql.common import Types
from flowsql.configuration import OptionWarning
from flowsql.datastream import SlotSharingGroup, StreamExecutionEnvironment
from flowsql.datastream.checkpoint_storage import FileSystemCheckpointStorage, JobManagerCheckpointStorage
from flowsql.datastream.slot_sharing_group import MemorySize
from flowsql.datastream.state_backend import EmbeddedRocksDBStateBackend, HashMapStateBackend, PredefinedOptions

_VAR = "file://var/checkpoints/"


def test_a_rocksdb_backend_answers_as_in_pyflink() -> None:
    backend = EmbeddedRocksDBStateBackend()
    assert not backend.is_incremental_checkpoints_enabled()
    assert EmbeddedRocksDBStateBackend(True).is_incremental_checkpoints_enabled()
    assert not EmbeddedRocksDBStateBackend(False).is_incremental_checkpoints_enabled()
    with pytest.raises(TypeError, match="should be None or True or False"):
        EmbeddedRocksDBStateBackend(3)  # type: ignore[arg-type]
    backend.set_db_storage_paths("file://var/a/", "file:///var/b/", "/var/c/", "/tmp/d")
    assert backend.get_db_storage_paths() == ["/a", "/var/b", "/var/c", "/tmp/d"]
    with pytest.raises(ValueError, match="Relative paths are not supported"):
        backend.set_db_storage_paths("rel/x")
    with pytest.raises(ValueError, match="hdfs://x/y has a non-local scheme"):
        backend.set_db_storage_paths("hdfs://x/y")
    assert backend.get_predefined_options() is PredefinedOptions.DEFAULT
    backend.set_predefined_options(PredefinedOptions.FLASH_SSD_OPTIMIZED)
    assert backend.get_predefined_options() is PredefinedOptions.FLASH_SSD_OPTIMIZED
    assert (backend.get_options(), backend.get_number_of_transfer_threads()) == (None, 4)
    backend.set_number_of_transfer_threads(7)
    assert backend.get_number_of_transfer_threads() == 7
    with pytest.raises(ValueError, match="greater than zero"):
        backend.set_number_of_transfer_threads(0)


def test_a_backend_sets_options_that_jobs_run_with(env: StreamExecutionEnvironment, tmp_path: Path) -> None:
    assert isinstance(env.get_state_backend(), HashMapStateBackend)
    backend = EmbeddedRocksDBStateBackend(True)
    backend.set_db_storage_paths(f"file://{tmp_path}")
    backend.set_predefined_options(PredefinedOptions.SPINNING_DISK_OPTIMIZED)
    backend.set_number_of_transfer_threads(2)
    assert env.set_state_backend(backend).get_state_backend() is backend
    assert {key: value for key, value in env.configuration.items() if "rocksdb" in key + value} == {
        "state.backend.type": "rocksdb",
        "state.backend.rocksdb.localdir": str(tmp_path),
        "state.backend.rocksdb.predefined-options": "SPINNING_DISK_OPTIMIZED",
        "state.backend.rocksdb.checkpoint.transfer.thread.num": "2",
    }
    assert env.configuration.text("execution.checkpointing.incremental") == "true"
    keyed = env.from_collection([1, 2, 3], Types.INT()).key_by(lambda value: value % 2)
    assert sorted(keyed.sum().execute_and_collect()) == [1, 2, 4]
    env.set_state_backend(HashMapStateBackend())
    assert env.configuration.text("state.backend.type") == "hashmap"


def test_storages_answer_as_in_pyflink() -> None:
    plain = JobManagerCheckpointStorage()
    assert (plain.get_checkpoint_path(), plain.get_max_state_size()) == (None, 5242880)
    assert str(plain) == "JobManagerCheckpointStorage (checkpoints to JobManager) ( maxStateSize: 5242880)"
    with pytest.warns(OptionWarning, match="max_state_size .* has no effect"):
        limited = JobManagerCheckpointStorage(_VAR, 1234)
    assert (limited.get_checkpoint_path(), limited.get_max_state_size()) == ("file://var/checkpoints", 1234)
    with pytest.raises(ValueError, match="must be > 0"):
        JobManagerCheckpointStorage(None, 0)
    files = FileSystemCheckpointStorage(_VAR)
    assert (files.get_min_file_size_threshold(), files.get_write_buffer_size()) == (20480, 4096)
    with pytest.warns(OptionWarning, match="write_buffer_size .* has no effect"):
        files = FileSystemCheckpointStorage(_VAR, 2048, 4096)
    assert (files.get_min_file_size_threshold(), files.get_write_buffer_size()) == (2048, 4096)
    with pytest.raises(ValueError, match="not less than '-1'"):
        FileSystemCheckpointStorage("/a/b", None, -2)


def test_groups_keep_their_resources() -> None:
    builder = SlotSharingGroup.builder("g").set_cpu_cores(1.5).set_task_heap_memory_mb(10).set_managed_memory_mb(3)
    with pytest.warns(OptionWarning, match="the slot sharing group 'g' have no effect"):
        group = builder.set_external_resource("gpu", 2.0).build()
    assert (group.get_cpu_cores(), group.get_external_resources()) == (1.5, {"gpu": 2.0})
    assert group.get_task_heap_memory() == MemorySize.of_mebi_bytes(10)
    assert (group.get_task_off_heap_memory(), group.get_managed_memory()) == (MemorySize(0), MemorySize(3 << 20))
    empty = SlotSharingGroup.builder("g").build()
    assert (empty.get_cpu_cores(), empty.get_task_heap_memory(), empty.get_external_resources()) == (None, None, {})


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda made: made.set_cpu_cores(1.0).build(), "cpu cores and task heap memory are required"),
        (lambda made: made.set_external_resource("gpu", 1.0).build(), "cpu cores and task heap memory are required"),
        (lambda made: made.set_task_heap_memory(MemorySize(0)), "heap memory should be positive"),
        (lambda made: made.set_cpu_cores(0.0), "cpu cores should be positive"),
    ],
)
def test_groups_without_what_flink_requires_are_refused(build: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        build(SlotSharingGroup.builder("g"))


def test_the_changelog_backend_is_a_wish(env: StreamExecutionEnvironment) -> None:
    assert env.is_changelog_state_backend_enabled() is None
    with pytest.warns(OptionWarning, match="enable_changelog_state_backend has no effect"):
        assert env.enable_changelog_state_backend(True).is_changelog_state_backend_enabled() is True
    assert env.enable_changelog_state_backend(False).is_changelog_state_backend_enabled() is False
