"""``state.backend.rocksdb.*``: Flink's options, and what RocksDB is told.

Source: Flink 2.3, ``RocksDBOptions``, ``RocksDBConfigurableOptions``, ``PredefinedOptions``,
``RocksDBMemoryControllerUtils``.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import Any, Final

from flowsql_core.config import (
    ConfigOption,
    Configuration,
    option,
    parse_bool,
    parse_duration_ms,
    parse_enum,
    parse_memory_bytes,
    parse_text,
)
from flowsql_core.errors import ExecutionError
from flowsql_core.record import record


class CompactionStyle(enum.Enum):
    """``state.backend.rocksdb.compaction.style``."""

    LEVEL = "level"
    UNIVERSAL = "universal"
    FIFO = "fifo"
    NONE = "none"


class PredefinedOptions(enum.Enum):
    """``state.backend.rocksdb.predefined-options``."""

    DEFAULT = "DEFAULT"
    SPINNING_DISK_OPTIMIZED = "SPINNING_DISK_OPTIMIZED"
    SPINNING_DISK_OPTIMIZED_HIGH_MEM = "SPINNING_DISK_OPTIMIZED_HIGH_MEM"
    FLASH_SSD_OPTIMIZED = "FLASH_SSD_OPTIMIZED"


class TimerService(enum.Enum):
    """``state.backend.rocksdb.timer-service.factory``."""

    ROCKSDB = "ROCKSDB"
    HEAP = "HEAP"


#: Flink's names of RocksDB's compressions, and the attribute of ``DBCompressionType`` that makes each.
_COMPRESSIONS: Final = {
    "NO_COMPRESSION": "none",
    "SNAPPY_COMPRESSION": "snappy",
    "ZLIB_COMPRESSION": "zlib",
    "BZLIB2_COMPRESSION": "bz2",
    "LZ4_COMPRESSION": "lz4",
    "LZ4HC_COMPRESSION": "lz4hc",
    "ZSTD_COMPRESSION": "zstd",
}


def _parse_count(text: str) -> int:
    value = int(text)
    if value < 1:
        raise ValueError("expected a number from 1 on")
    return value


def _parse_files(text: str) -> int:
    value = int(text)
    if value < 1 and value != -1:
        raise ValueError("expected a number from 1 on, or -1 for no limit")
    return value


def _parse_bits(text: str) -> float:
    value = float(text)
    if not value > 0:
        raise ValueError("expected a number above 0")
    return value


def _parse_ratio(text: str) -> float:
    value = float(text)
    if not 0 < value < 1:
        raise ValueError("expected a number between 0 and 1")
    return value


def _parse_compressions(text: str) -> tuple[str, ...]:
    names = tuple(part.strip().upper() for part in text.replace(",", ";").split(";") if part.strip())
    if not names or any(name not in _COMPRESSIONS for name in names):
        raise ValueError("expected names out of " + ", ".join(_COMPRESSIONS) + ", separated by ';', one for each level")
    return names


PREDEFINED = option(
    "state.backend.rocksdb.predefined-options",
    parse_enum(PredefinedOptions),
    PredefinedOptions.DEFAULT,
    "A set of RocksDB options to start from; options that are given win.",
)
WRITE_BUFFER_BYTES = option(
    "state.backend.rocksdb.writebuffer.size", parse_memory_bytes, 64 << 20, "Bytes of a memtable of RocksDB."
)
WRITE_BUFFERS = option("state.backend.rocksdb.writebuffer.count", _parse_count, 2, "Memtables that may be in memory.")
WRITE_BUFFERS_TO_MERGE = option(
    "state.backend.rocksdb.writebuffer.number-to-merge", _parse_count, 1, "Memtables that are merged before a flush."
)
COMPACTION_STYLE = option(
    "state.backend.rocksdb.compaction.style",
    parse_enum(CompactionStyle),
    CompactionStyle.LEVEL,
    "How RocksDB compacts its files; NONE: not at all.",
)
DYNAMIC_LEVELS = option(
    "state.backend.rocksdb.compaction.level.use-dynamic-size",
    parse_bool,
    False,
    "Whether sizes of levels follow the size of the last one.",
)
TARGET_FILE_BYTES = option(
    "state.backend.rocksdb.compaction.level.target-file-size-base", parse_memory_bytes, 64 << 20, "Bytes of a file."
)
LEVEL_BASE_BYTES = option(
    "state.backend.rocksdb.compaction.level.max-size-level-base", parse_memory_bytes, 256 << 20, "Bytes of level 1."
)
THREADS = option("state.backend.rocksdb.thread.num", _parse_count, 2, "Threads that flush and compact.")
OPEN_FILES = option("state.backend.rocksdb.files.open", _parse_files, -1, "Files held open; -1: all.")
BLOOM_FILTER = option(
    "state.backend.rocksdb.use-bloom-filter", parse_bool, False, "Whether new files have a bloom filter."
)
BLOOM_BITS = option(
    "state.backend.rocksdb.bloom-filter.bits-per-key", _parse_bits, 10.0, "Bits of the bloom filter for each key."
)
BLOOM_BLOCK_BASED = option(
    "state.backend.rocksdb.bloom-filter.block-based-mode",
    parse_bool,
    False,
    "Whether each block has a bloom filter of its own: refused, RocksDB makes one for each file.",
)
BLOCK_CACHE_BYTES = option(
    "state.backend.rocksdb.block.cache-size",
    parse_memory_bytes,
    8 << 20,
    "Bytes of the block cache, where 'state.backend.rocksdb.memory.managed' is false.",
)
BLOCK_BYTES = option("state.backend.rocksdb.block.blocksize", parse_memory_bytes, 4 << 10, "Bytes of a block.")
METADATA_BLOCK_BYTES = option(
    "state.backend.rocksdb.block.metadata-blocksize", parse_memory_bytes, 4 << 10, "Bytes of an index block."
)
PARTITIONED_INDEX = option(
    "state.backend.rocksdb.memory.partitioned-index-filters",
    parse_bool,
    False,
    "Whether index and filters of a file are parted, with a small index in memory.",
)
COMPRESSION: ConfigOption[tuple[str, ...]] = option(
    "state.backend.rocksdb.compression.per.level",
    _parse_compressions,
    ("SNAPPY_COMPRESSION",),
    "Compression of each level, separated by ';'; one: of all.",
)
WRITE_BATCH_BYTES = option(
    "state.backend.rocksdb.write-batch-size", parse_memory_bytes, 2 << 20, "Bytes of a write batch; 0: no limit."
)
SWEEP_PIECE = option(
    "state.backend.rocksdb.compaction.filter.query-time-after-num-entries",
    _parse_count,
    1000,
    "Expired objects of functions that are removed at a time, where their 'StateTtlConfig' does not say it.",
)
COMPACTION_MS = option(
    "state.backend.rocksdb.compaction.filter.periodic-compaction-time",
    parse_duration_ms,
    30 * 86_400_000,
    "Files older than this are rewritten without what was removed, once it is set or state of functions expires; "
    "0: they are not.",
)
LOG_FOLDER = option("state.backend.rocksdb.log.dir", parse_text, "", "Folder of RocksDB's log; empty: beside the data.")
LOG_FILE_BYTES = option("state.backend.rocksdb.log.max-file-size", parse_memory_bytes, 25 << 20, "Bytes of a log file.")
LOG_FILES = option("state.backend.rocksdb.log.file-num", _parse_count, 4, "Log files that stay.")
LOCAL_FOLDERS = option(
    "state.backend.rocksdb.localdir", parse_text, "", "Folders of RocksDB's files; empty: those of 'io.tmp.dirs'."
)
MANAGED = option(
    "state.backend.rocksdb.memory.managed",
    parse_bool,
    True,
    "Whether the state of an operator keeps to its share of 'taskmanager.memory.managed.size' or 'flowsql.memory'.",
)
PER_SLOT = option(
    "state.backend.rocksdb.memory.fixed-per-slot",
    parse_memory_bytes,
    0,
    "Memory for all state of one subtask of each operator; 0: as 'state.backend.rocksdb.memory.managed' says.",
)
PER_PROCESS = option(
    "state.backend.rocksdb.memory.fixed-per-tm",
    parse_memory_bytes,
    0,
    "Memory for all state of the process, shared by its operators; 0: as 'state.backend.rocksdb.memory.managed' says.",
)
WRITE_BUFFER_RATIO = option(
    "state.backend.rocksdb.memory.write-buffer-ratio",
    _parse_ratio,
    0.5,
    "Part of RocksDB's memory for memtables, where it is bounded.",
)
TIMER_SERVICE = option(
    "state.backend.rocksdb.timer-service.factory",
    parse_enum(TimerService),
    TimerService.ROCKSDB,
    "Where timers are: ROCKSDB, with the state of their keys (those of user functions stay in memory).",
)
MANAGED_BYTES = option(
    "taskmanager.memory.managed.size",
    parse_memory_bytes,
    0,
    "Memory for state of the 'rocksdb' backend, shared by the operators; 0: 40% of 'flowsql.memory'.",
)

INCREMENTAL = option(
    "execution.checkpointing.incremental",
    parse_bool,
    False,
    "Whether checkpoints of 'rocksdb' refer to files of RocksDB that older ones wrote; those of 'hashmap' are whole.",
)
TRANSFER_THREADS = option(
    "state.backend.rocksdb.checkpoint.transfer.thread.num",
    _parse_count,
    4,
    "Files of RocksDB that a subtask's incremental checkpoint writes, or its restore reads, at a time.",
)

#: Part of ``flowsql.memory`` for managed memory, as in Flink (``taskmanager.memory.managed.fraction``).
_MANAGED_PART: Final = 0.4
#: What a database takes beside memtables and cache (code, threads, buffers of flushes and compactions), at most half.
_OVERHEAD_BYTES: Final = 16 << 20
#: Part of an operator's memory for slots; the rest is RocksDB's.
_RESIDENT_PART: Final = 0.4
#: Memory of an operator that is told not to bound it.
_UNBOUNDED_RESIDENT: Final = 256 << 20

#: What RocksDB could do but rocksdict has no call for, and why it is not needed or what is done instead.
REFUSED: Final = {
    "state.backend.rocksdb.memory.high-prio-pool-ratio": "the block cache of rocksdict has no pools by priority",
    "state.backend.rocksdb.log.level": "rocksdict has no call for it",
    "state.backend.rocksdb.options-factory": "it names a Java class",
    "state.backend.rocksdb.use-ingest-db-restore-mode": "at another parallelism rows of own key groups are read",
    "state.backend.rocksdb.rescaling.use-delete-files-in-range": "subtasks read only rows of their key groups",
    "state.backend.rocksdb.restore-overlap-fraction-threshold": "subtasks read only rows of their key groups",
}

_SETS: Final[Mapping[PredefinedOptions, Mapping[str, Any]]] = {
    PredefinedOptions.DEFAULT: {},
    PredefinedOptions.SPINNING_DISK_OPTIMIZED: {
        COMPACTION_STYLE.key: CompactionStyle.LEVEL,
        DYNAMIC_LEVELS.key: True,
        THREADS.key: 4,
        OPEN_FILES.key: -1,
    },
    PredefinedOptions.SPINNING_DISK_OPTIMIZED_HIGH_MEM: {
        COMPACTION_STYLE.key: CompactionStyle.LEVEL,
        DYNAMIC_LEVELS.key: True,
        TARGET_FILE_BYTES.key: 256 << 20,
        LEVEL_BASE_BYTES.key: 1 << 30,
        WRITE_BUFFER_BYTES.key: 64 << 20,
        WRITE_BUFFERS.key: 4,
        WRITE_BUFFERS_TO_MERGE.key: 3,
        THREADS.key: 4,
        OPEN_FILES.key: -1,
        BLOCK_CACHE_BYTES.key: 256 << 20,
        BLOCK_BYTES.key: 128 << 10,
        BLOOM_FILTER.key: True,
    },
    PredefinedOptions.FLASH_SSD_OPTIMIZED: {THREADS.key: 4, OPEN_FILES.key: -1},
}


@record
class RocksDBSettings:
    """How one subtask of one operator keeps its state.

    ``resident_bytes``: of slots in memory; 0: nothing stays between two elements. ``rocksdb_bytes``: of memtables and
    block cache; None: not bounded. ``folders``: where files go, as ``io.tmp.dirs``. ``incremental``: whether
    checkpoints refer to files of RocksDB.
    """

    values: Configuration
    resident_bytes: int
    rocksdb_bytes: int | None
    folders: str
    write_batch_bytes: int
    incremental: bool = False
    transfer_threads: int = 4

    @staticmethod
    def of(values: Configuration, process_bytes: int, sharers: int) -> RocksDBSettings:
        """Settings of a job.

        Args:
            process_bytes: ``flowsql.memory``.
            sharers: subtasks that keep state.

        Raises:
            ExecutionError: ``rocksdb-option`` for an option that cannot be honoured.
        """
        for key, reason in REFUSED.items():
            if values.text(key) is not None:
                raise ExecutionError("rocksdb-option", f"'{key}' cannot be set: {reason}", hint="leave the option out")
        if values.get(BLOOM_BLOCK_BASED):
            raise ExecutionError(
                "rocksdb-option",
                f"'{BLOOM_BLOCK_BASED.key}' cannot be true: RocksDB makes one filter for each file",
                hint="leave the option out",
            )
        if values.get(TIMER_SERVICE) is TimerService.HEAP:
            raise ExecutionError(
                "rocksdb-option",
                f"'{TIMER_SERVICE.key}' cannot be HEAP: timers stand with the state of their keys",
                hint="leave the option out",
            )
        share: int | None = None
        if values.get(PER_SLOT):
            share = values.get(PER_SLOT)
        elif values.get(PER_PROCESS):
            share = values.get(PER_PROCESS) // sharers
        elif values.get(MANAGED):
            share = (values.get(MANAGED_BYTES) or int(process_bytes * _MANAGED_PART)) // sharers
        if share is not None:
            share -= min(_OVERHEAD_BYTES, share // 2)
        resident = _UNBOUNDED_RESIDENT if share is None else int(share * _RESIDENT_PART)
        return RocksDBSettings(
            values,
            resident,
            None if share is None else share - resident,
            values.get(LOCAL_FOLDERS) or values.text("io.tmp.dirs") or "",
            values.get(WRITE_BATCH_BYTES),
            values.get(INCREMENTAL),
            values.get(TRANSFER_THREADS),
        )

    def get(self, wanted: ConfigOption[Any]) -> Any:
        """The value of an option: as given, else of the predefined set, else its default."""
        if self.values.text(wanted.key) is not None:
            return self.values.get(wanted)
        return _SETS[self.values.get(PREDEFINED)].get(wanted.key, wanted.default)

    def rocksdb_options(self, rocksdict: Any) -> tuple[Any, list[Any]]:
        """``Options`` of rocksdict, and what has to live as long as they do."""
        made = rocksdict.Options(raw_mode=True)
        kept: list[Any] = []
        made.create_if_missing(True)
        made.set_use_fsync(False)
        made.set_stats_dump_period_sec(0)
        made.increase_parallelism(self.get(THREADS))
        made.set_max_open_files(self.get(OPEN_FILES))
        made.set_write_buffer_size(self.get(WRITE_BUFFER_BYTES))
        made.set_max_write_buffer_number(self.get(WRITE_BUFFERS))
        made.set_min_write_buffer_number_to_merge(self.get(WRITE_BUFFERS_TO_MERGE))
        made.set_target_file_size_base(self.get(TARGET_FILE_BYTES))
        made.set_max_bytes_for_level_base(self.get(LEVEL_BASE_BYTES))
        made.set_level_compaction_dynamic_level_bytes(self.get(DYNAMIC_LEVELS))
        self._compact(made, rocksdict)
        kinds = [getattr(rocksdict.DBCompressionType, _COMPRESSIONS[name])() for name in self.get(COMPRESSION)]
        if len(kinds) == 1:
            made.set_compression_type(kinds[0])
        else:
            made.set_compression_per_level(kinds)
        made.set_max_log_file_size(self.get(LOG_FILE_BYTES))
        made.set_keep_log_file_num(self.get(LOG_FILES))
        if self.get(LOG_FOLDER):
            made.set_db_log_dir(self.get(LOG_FOLDER))
        blocks = rocksdict.BlockBasedOptions()
        blocks.set_block_size(self.get(BLOCK_BYTES))
        blocks.set_metadata_block_size(self.get(METADATA_BLOCK_BYTES))
        if self.get(BLOOM_FILTER):
            blocks.set_bloom_filter(self.get(BLOOM_BITS), False)
        if self.rocksdb_bytes is None:
            cache = rocksdict.Cache(self.get(BLOCK_CACHE_BYTES))
        else:
            ratio = self.get(WRITE_BUFFER_RATIO)
            # As Flink shares it: memtables may be half as large again as their part while one is flushed.
            cache = rocksdict.Cache(max(1 << 20, int((3 - ratio) / 3 * self.rocksdb_bytes)))
            manager = rocksdict.WriteBufferManager.new_write_buffer_manager_with_cache(
                max(1 << 19, int(2 * self.rocksdb_bytes * ratio / 3)), False, cache
            )
            made.set_write_buffer_manager(manager)
            # Each file that a compaction reads has a buffer of its own, 2 MB by default, which nobody counts.
            made.set_compaction_readahead_size(256 << 10)
            kept.append(manager)
            blocks.set_cache_index_and_filter_blocks(True)
            blocks.set_pin_l0_filter_and_index_blocks_in_cache(True)
            if self.get(PARTITIONED_INDEX):
                blocks.set_index_type(rocksdict.BlockBasedIndexType.two_level_index_search())
                blocks.set_partition_filters(True)
                blocks.set_pin_top_level_index_and_filter(True)
        blocks.set_block_cache(cache)
        kept.append(cache)
        made.set_block_based_table_factory(blocks)
        return made, kept

    def _compact(self, made: Any, rocksdict: Any) -> None:
        match self.get(COMPACTION_STYLE):
            case CompactionStyle.LEVEL:
                made.set_compaction_style(rocksdict.DBCompactionStyle.level())
            case CompactionStyle.UNIVERSAL:
                made.set_compaction_style(rocksdict.DBCompactionStyle.universal())
            case CompactionStyle.FIFO:
                made.set_compaction_style(rocksdict.DBCompactionStyle.fifo())
            case CompactionStyle.NONE:
                made.set_disable_auto_compactions(True)
