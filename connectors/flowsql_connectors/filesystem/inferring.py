"""Files that nobody declared as a table: which they are, of which format, and what columns and options they show."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from glob import has_magic, iglob
from pathlib import Path
from typing import Final

from flowsql_connectors.file_systems.choice import is_remote
from flowsql_connectors.filesystem.files import FoundFile, find_files, local_path
from flowsql_connectors.filesystem.options import DEFAULT_NAME, FORMAT, PATH, PATH_PATTERN
from flowsql_connectors.formats.inferring.registry import infer_format
from flowsql_connectors.formats.inferring.texts import type_of_texts
from flowsql_connectors.formats.registry import format_factory
from flowsql_connectors.options import OptionValues
from flowsql_connectors.spi.source import InferredTable
from flowsql_core.errors import BindError, ConnectorError, did_you_mean
from flowsql_core.graph.specs import TableSpec
from flowsql_core.record import record
from flowsql_core.secrets.references import has_placeholder
from flowsql_core.types.logical import BIGINT, DATE, STRING, Column, LogicalType

_FORMATS: Final = {
    "csv": "csv",
    "tsv": "csv",
    "json": "json",
    "jsonl": "json",
    "ndjson": "json",
    "parquet": "parquet",
    "orc": "orc",
    "avro": "avro",
}
_KNOWN: Final = (
    "files by name are .csv, .tsv, .json, .jsonl, .ndjson, .parquet, .orc and .avro, text files also compressed "
    "(.csv.gz)"
)
#: What was found out about files, by the options of the table; it holds as long as the files are the same.
_FOUND: Final[dict[tuple[object, ...], tuple[list[FoundFile], InferredTable]]] = {}
_MOST_FOUND: Final = 256


def infer_files(table: TableSpec, settings: Mapping[str, str]) -> InferredTable:
    """Columns, partition columns and options of the files behind a path; ``settings`` are those of the session.

    Raises:
        BindError, ConnectorError: no such files, files of several formats or of an unknown one, empty or damaged ones.
    """
    options = table.filled_options()
    path = os.path.expanduser(options.get(PATH.key, ""))
    options[PATH.key] = path
    files = _files(path, options, settings)
    key = (tuple(sorted(options.items())), table.partition_keys, os.getcwd())
    known = _FOUND.get(key)
    if known is not None and known[0] == files:
        return known[1]
    made = _inferred(path, options, files, table.partition_keys, settings)
    placeholders = {name: text for name, text in table.options if has_placeholder(text)}
    if placeholders:
        made = replace(made, options=tuple({**dict(made.options), **placeholders}.items()))
    if len(_FOUND) >= _MOST_FOUND:
        _FOUND.clear()
    _FOUND[key] = files, made
    return made


def _inferred(
    path: str,
    options: dict[str, str],
    files: Sequence[FoundFile],
    keys: tuple[str, ...],
    settings: Mapping[str, str],
) -> InferredTable:
    kind = _kind(path, files, options.get(FORMAT.key))
    options.setdefault(FORMAT.key, kind.format)
    format_factory(options[FORMAT.key])  # Flink's words for an unknown one.
    views = [file.view(settings) for file in files]
    inside = infer_format(options[FORMAT.key], views, OptionValues(options), kind.suffix)
    options |= dict(inside.options)
    names = {column.name for column in inside.columns}
    folders = keys or tuple(key for key in _folder_keys(path, files) if key not in names)
    of_folders = tuple(key for key in folders if key not in names)
    columns = (*inside.columns, *_partition_columns(files, of_folders, options, settings))
    count = f"{len(columns)} column{'s' * (len(columns) != 1)}"
    notes = [*(() if len(files) == 1 else (f"{len(files)} files",)), *inside.notes[:1], count, *inside.notes[1:]]
    return InferredTable(columns, tuple(options.items()), folders, ", ".join(notes))


def _files(path: str, options: dict[str, str], settings: Mapping[str, str]) -> list[FoundFile]:
    """All files behind a path; at least one."""
    if not is_remote(path) and not _is_there(path):
        raise _missing(path)
    pattern = options.get(PATH_PATTERN.key)
    try:
        files = find_files(path, pattern=None if pattern is None else PATH_PATTERN.read(pattern), settings=settings)
    except ConnectorError as error:
        if error.code == "file-not-found" and is_remote(path):
            raise _missing_remote(path) from error
        raise
    if not files:
        raise ConnectorError(
            "no-files", f"There is no file in {path}.", hint="names that start with . or _ do not count"
        )
    return files


def _is_there(path: str) -> bool:
    root = local_path(path)
    if os.path.exists(root):
        return True
    return has_magic(root) and any(not os.path.basename(name).startswith("_") for name in iglob(root, recursive=True))


def _missing_remote(path: str) -> ConnectorError:
    if has_magic(path):
        return ConnectorError("no-files", f"No file matches {path}.")
    return ConnectorError("file-not-found", f"File {path} does not exist.")


def _missing(path: str) -> ConnectorError:
    """The error for a path with nothing behind it, with the name nearest to it."""
    root = local_path(path)
    if has_magic(root):
        return ConnectorError("no-files", f"No file matches {path}.", hint=_known_near(root))
    return ConnectorError("file-not-found", f"File {path} does not exist.", hint=_known_near(root))


def _known_near(root: str) -> str | None:
    """Of the first folder or name of a path that is not there: the one that is."""
    at = Path(root)
    while at.parent != at and not at.parent.is_dir():
        at = at.parent
    try:
        names = [name for name in os.listdir(at.parent) if not name.startswith((".", "_"))]
    except OSError:
        return None
    near = did_you_mean(at.name, names)
    if near is not None or not names:
        return near if near is not None else f"the folder {_shown(at.parent)} is empty"
    return f"the folder {_shown(at.parent)} holds {', '.join(sorted(names)[:5])}{', ...' * (len(names) > 5)}"


def _shown(folder: Path) -> str:
    return os.path.abspath(folder) if str(folder) == "." else str(folder)


# Formats


@record
class _Kind:
    """A format, and the suffix that told it."""

    format: str
    suffix: str


def _kind(path: str, files: Sequence[FoundFile], given: str | None) -> _Kind:
    """The format of the files: the one that is given, or what all their names end with."""
    if given is not None:
        return _Kind(given, _suffix(files[0].path))
    # Parts that Flink writes have no suffix; the folder may.
    of_folder = _suffix(path.rstrip("/"))
    kinds: dict[str, FoundFile] = {}
    suffixes = []
    for file in files:
        suffix = _suffix(file.path) or of_folder
        suffixes.append(suffix)
        format_ = _FORMATS.get(suffix)
        if format_ is None or (format_ == "parquet" and file.compression is not None):
            raise _unknown_suffix(file, suffix)
        kinds.setdefault(format_, file)
    if len(kinds) > 1:
        one, other, *_ = kinds.items()
        raise BindError(
            "mixed-formats",
            f"{path} holds files of several formats: {one[1].path} is {one[0]}, {other[1].path} is {other[0]}.",
            hint=f"name those of one format, e.g. '{path.rstrip('/')}/*.{_suffix(one[1].path)}'"
            if os.path.isdir(path)
            else "name those of one format",
        )
    return _Kind(next(iter(kinds)), suffixes[0])


def _suffix(path: str) -> str:
    """What stands behind the last dot of a name, in small letters; that of a compression does not count."""
    name = os.path.basename(path)
    if FoundFile(path, 0, 0).compression is not None:
        name = name.rpartition(".")[0]
    return name.rpartition(".")[2].lower() if "." in name else ""


def _unknown_suffix(file: FoundFile, suffix: str) -> BindError:
    if suffix == "parquet":
        return BindError(
            "unknown-suffix", f"File {file.path} is compressed as a whole, which parquet files are not.", hint=_KNOWN
        )
    ending = f"the suffix '.{suffix}' of" if suffix else "the name of"
    return BindError(
        "unknown-suffix",
        f"No format goes by {ending} file {file.path}.",
        hint=did_you_mean(f".{suffix}", [f".{known}" for known in _FORMATS] if len(suffix) > 2 else [])
        or f"{_KNOWN}; /*+ OPTIONS('format' = 'csv') */ behind the name says it for others",
    )


# Partitions: folders key=value


def _folder_keys(path: str, files: Sequence[FoundFile]) -> tuple[str, ...]:
    """Keys of the folders ``key=value`` below the path, where all files stand in the same ones."""
    fixed = _fixed(path, files)
    while has_magic(fixed):
        fixed = os.path.dirname(fixed)
    found = {
        tuple(
            part.partition("=")[0]
            for part in os.path.relpath(os.path.dirname(file.path) or ".", fixed or ".").split(os.sep)
            if "=" in part
        )
        for file in files
    }
    return found.pop() if len(found) == 1 else ()


def _fixed(path: str, files: Sequence[FoundFile]) -> str:
    """The folder that a path names, or that its file is in."""
    if is_remote(path):
        return os.path.dirname(path) if any(file.path == path for file in files) else path.rstrip("/")
    root = local_path(path)
    return root if os.path.isdir(root) else os.path.dirname(root)


def _partition_columns(
    files: Sequence[FoundFile], keys: tuple[str, ...], options: dict[str, str], settings: Mapping[str, str]
) -> tuple[Column, ...]:
    if not keys:
        return ()
    default = options.get(DEFAULT_NAME.key, DEFAULT_NAME.default)
    located = find_files(options[PATH.key], keys, default, settings=settings)
    return tuple(
        Column(key, _partition_type([text for file in located if (text := file.partition[at]) is not None]))
        for at, key in enumerate(keys)
    )


def _partition_type(texts: Sequence[str]) -> LogicalType:
    import pyarrow as pa

    type_ = type_of_texts(pa.array(sorted(set(texts)), pa.string())).type
    return type_ if type_ in (BIGINT, DATE) else STRING
