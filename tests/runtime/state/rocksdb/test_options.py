"""``state.backend.rocksdb.*`` as RocksDB writes them down: OPTIONS and LOG of a database that was made with them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from flowsql_core.config import Configuration
from flowsql_core.errors import ExecutionError
from flowsql_runtime.state.rocksdb import settings
from flowsql_runtime.state.rocksdb.database import Database
from flowsql_runtime.state.rocksdb.local_files import LocalFiles
from flowsql_runtime.state.rocksdb.settings import RocksDBSettings

PREFIX = "state.backend.rocksdb."
HIGH_MEMORY = {"predefined-options": "SPINNING_DISK_OPTIMIZED_HIGH_MEM"}

DEFAULTS = {
    "write_buffer_size": "67108864",
    "max_write_buffer_number": "2",
    "min_write_buffer_number_to_merge": "1",
    "compaction_style": "kCompactionStyleLevel",
    "disable_auto_compactions": "false",
    "level_compaction_dynamic_level_bytes": "false",
    "target_file_size_base": "67108864",
    "max_bytes_for_level_base": "268435456",
    "max_background_jobs": "2",
    "max_open_files": "-1",
    "filter_policy": "nullptr",
    "block_size": "4096",
    "metadata_block_size": "4096",
    "compression": "kSnappyCompression",
    "max_log_file_size": "26214400",
    "keep_log_file_num": "4",
    "cache_index_and_filter_blocks": "true",
    "pin_l0_filter_and_index_blocks_in_cache": "true",
    "index_type": "kBinarySearch",
}

#: Options, and what is not as in ``DEFAULTS``.
GIVEN: list[tuple[dict[str, str], dict[str, str]]] = [
    ({}, {}),
    ({"writebuffer.size": "3 mb"}, {"write_buffer_size": "3145728"}),
    ({"writebuffer.count": "5"}, {"max_write_buffer_number": "5"}),
    (  # RocksDB merges at most one less than there are
        {"writebuffer.number-to-merge": "3", "writebuffer.count": "4"},
        {"min_write_buffer_number_to_merge": "3", "max_write_buffer_number": "4"},
    ),
    ({"compaction.style": "UNIVERSAL"}, {"compaction_style": "kCompactionStyleUniversal"}),
    ({"compaction.style": "FIFO"}, {"compaction_style": "kCompactionStyleFIFO"}),
    ({"compaction.style": "none"}, {"disable_auto_compactions": "true"}),
    ({"compaction.level.use-dynamic-size": "true"}, {"level_compaction_dynamic_level_bytes": "true"}),
    ({"compaction.level.target-file-size-base": "8mb"}, {"target_file_size_base": "8388608"}),
    ({"compaction.level.max-size-level-base": "16mb"}, {"max_bytes_for_level_base": "16777216"}),
    ({"compaction.filter.periodic-compaction-time": "1500 ms"}, {"periodic_compaction_seconds": "2"}),
    ({"compaction.filter.periodic-compaction-time": "0 s"}, {"periodic_compaction_seconds": "0"}),
    ({"thread.num": "3"}, {"max_background_jobs": "3"}),
    ({"files.open": "100"}, {"max_open_files": "100"}),
    ({"use-bloom-filter": "true"}, {"filter_policy": "bloomfilter"}),
    ({"block.blocksize": "8kb"}, {"block_size": "8192"}),
    ({"block.metadata-blocksize": "16kb"}, {"metadata_block_size": "16384"}),
    ({"compression.per.level": "ZSTD_COMPRESSION"}, {"compression": "kZSTD"}),
    (
        {"compression.per.level": "NO_COMPRESSION;LZ4_COMPRESSION"},
        {"compression_per_level": "kNoCompression:kLZ4Compression"},
    ),
    ({"log.max-file-size": "1mb"}, {"max_log_file_size": "1048576"}),
    ({"log.file-num": "9"}, {"keep_log_file_num": "9"}),
    ({"memory.managed": "false"}, {"cache_index_and_filter_blocks": "false"}),
    ({"memory.partitioned-index-filters": "true"}, {"index_type": "kTwoLevelIndexSearch", "partition_filters": "true"}),
    (
        {"predefined-options": "SPINNING_DISK_OPTIMIZED"},
        {"level_compaction_dynamic_level_bytes": "true", "max_background_jobs": "4", "max_open_files": "-1"},
    ),
    (
        HIGH_MEMORY,
        {
            "level_compaction_dynamic_level_bytes": "true",
            "target_file_size_base": str(256 << 20),
            "max_bytes_for_level_base": str(1 << 30),
            "max_write_buffer_number": "4",
            "min_write_buffer_number_to_merge": "3",
            "max_background_jobs": "4",
            "block_size": str(128 << 10),
            "filter_policy": "bloomfilter",
        },
    ),
    ({"predefined-options": "FLASH_SSD_OPTIMIZED"}, {"max_background_jobs": "4", "max_open_files": "-1"}),
]
#: What an option changes beside what it says.
BESIDE = {"memory.managed": {"pin_l0_filter_and_index_blocks_in_cache": "false"}}


def made(tmp_path: Path, **options: str) -> tuple[Database, RocksDBSettings]:
    """An open database of options without their prefix."""
    values = {PREFIX + key: value for key, value in options.items()}
    found = RocksDBSettings.of(Configuration(values=values), 1 << 30, 1)
    database = Database(found, lambda: LocalFiles(str(tmp_path)))
    database.write([b"key"], [b"value"], [])
    return database, found


def written_down(database: Database) -> dict[str, str]:
    """Names and values of its OPTIONS file."""
    assert database.path is not None
    text = max(database.path.glob("OPTIONS-*")).read_text()
    return dict(re.findall(r"(?m)^\s*(\w+)=(.*)$", text))


@pytest.mark.parametrize(("options", "changed"), GIVEN, ids=lambda value: "-".join(value) if value else "none")
def test_options_reach_rocksdb(tmp_path: Path, options: dict[str, str], changed: dict[str, str]) -> None:
    database, _ = made(tmp_path, **options)
    found = written_down(database)
    beside = next((more for key, more in BESIDE.items() if key in options), {})
    expected = DEFAULTS | changed | beside
    if "compression_per_level" in changed:
        del expected["compression"]
    assert {name: found.get(name) for name in expected} == expected
    database.close()


def test_options_that_are_given_win_over_the_set(tmp_path: Path) -> None:
    database, _ = made(tmp_path, **HIGH_MEMORY, **{"block.blocksize": "4kb", "use-bloom-filter": "false"})
    found = written_down(database)
    assert (found["block_size"], found["filter_policy"]) == ("4096", "nullptr")
    assert found["target_file_size_base"] == str(256 << 20)
    database.close()


@pytest.mark.parametrize(
    ("options", "capacity"),
    [
        ({"memory.managed": "false"}, 8 << 20),
        ({"memory.managed": "false", "block.cache-size": "3mb"}, 3 << 20),
        ({"memory.managed": "false"} | HIGH_MEMORY, 256 << 20),
        ({"memory.fixed-per-slot": "100mb"}, int(2.5 / 3 * ((84 << 20) - int(0.4 * (84 << 20))))),
        ({"memory.fixed-per-tm": "100mb"}, int(2.5 / 3 * ((84 << 20) - int(0.4 * (84 << 20))))),
        (
            {"memory.fixed-per-slot": "100mb", "memory.write-buffer-ratio": "0.9"},
            int(2.1 / 3 * ((84 << 20) - int(0.4 * (84 << 20)))),
        ),
    ],
)
def test_the_block_cache_has_the_size_that_memory_allows(
    tmp_path: Path, options: dict[str, str], capacity: int
) -> None:
    logs = tmp_path / "logs"
    logs.mkdir()
    database, _ = made(tmp_path, **options, **{"log.dir": str(logs)})
    (log,) = logs.iterdir()
    assert abs(int(re.findall(r"capacity : (\d+)", log.read_text())[0]) - capacity) <= 1
    database.close()


def test_memory_is_shared_by_those_who_keep_state() -> None:
    def shares(sharers: int, **options: str) -> tuple[int, int | None]:
        found = RocksDBSettings.of(Configuration(values=options), 1000 << 20, sharers)
        return found.resident_bytes, found.rocksdb_bytes

    def parted(size: int) -> tuple[int, int]:
        resident = int(0.4 * size)
        return resident, size - resident

    # 40% of all memory, without the 16 MB (at most half) that a database takes beside what is counted.
    assert shares(1) == parted((400 - 16) << 20)
    assert shares(4) == parted((100 - 16) << 20)
    assert shares(2, **{"taskmanager.memory.managed.size": "100mb"}) == parted((50 - 16) << 20)
    assert shares(4, **{PREFIX + "memory.fixed-per-slot": "10mb"}) == parted(5 << 20)
    assert shares(4, **{PREFIX + "memory.fixed-per-tm": "40mb"}) == parted(5 << 20)
    assert shares(4, **{PREFIX + "memory.managed": "false"})[1] is None


def test_more_bits_make_a_longer_filter(tmp_path: Path) -> None:
    sizes = []
    for bits in ("4", "20"):
        database, _ = made(tmp_path, **{"use-bloom-filter": "true", "bloom-filter.bits-per-key": bits})
        database.write([b"%08d" % number for number in range(5000)], [b""] * 5000, [])
        properties = database.table_properties()
        sizes.append(int(re.findall(r"filter block size=(\d+)", properties)[0]))
        database.close()
    assert 3 * sizes[0] < sizes[1]


def test_files_are_where_the_option_says(tmp_path: Path) -> None:
    values = {PREFIX + "localdir": "/state", "io.tmp.dirs": "/tmp"}
    assert RocksDBSettings.of(Configuration(values=values), 1 << 30, 1).folders == "/state"
    assert RocksDBSettings.of(Configuration(values={"io.tmp.dirs": "/tmp"}), 1 << 30, 1).folders == "/tmp"


def test_a_write_batch_ends_at_its_size(tmp_path: Path) -> None:
    numbers = []
    for size in ("0", "1kb"):
        database, _ = made(tmp_path, **{"write-batch-size": size})
        database.write([b"%08d" % number for number in range(100)], [b"x" * 100] * 100, [])
        assert database.get_many([b"00000000", b"00000099", b"none"]) == [b"x" * 100, b"x" * 100, None]
        numbers.append(database.batches)
        database.close()
    assert numbers == [2, 12]


@pytest.mark.parametrize(
    ("key", "value"),
    [
        *((key, "1") for key in settings.REFUSED),
        (PREFIX + "timer-service.factory", "HEAP"),
        (PREFIX + "bloom-filter.block-based-mode", "true"),
    ],
)
def test_what_cannot_be_honoured_is_refused(key: str, value: str) -> None:
    with pytest.raises(ExecutionError, match=re.escape(key)):
        RocksDBSettings.of(Configuration(values={key: value}), 1 << 30, 1)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("compression.per.level", "FAST"),
        ("writebuffer.count", "0"),
        ("files.open", "0"),
        ("memory.write-buffer-ratio", "1.5"),
        ("bloom-filter.bits-per-key", "-1"),
        ("predefined-options", "FASTEST"),
    ],
)
def test_bad_values_are_refused(key: str, value: Any) -> None:
    with pytest.raises(Exception, match=re.escape(PREFIX + key)):
        Configuration().set(PREFIX + key, value)
