"""Columns and options of csv files: dialect, header, what stands for NULL, types.

The sample is read by the format's own decoder, every field as text, and judged column by column.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import pyarrow as pa

from flowsql_connectors.formats.csv import (
    ALLOW_COMMENTS,
    DISABLE_QUOTE,
    ESCAPE_CHARACTER,
    FIELD_DELIMITER,
    HEADER,
    NULL_LITERAL,
    NULL_LITERALS,
    QUOTE_CHARACTER,
    TIMESTAMP_FORMAT,
    CsvFormat,
)
from flowsql_connectors.formats.csv_tokens import CsvDialect
from flowsql_connectors.formats.format import DecodeContext, FileView, Range
from flowsql_connectors.formats.inferring.csv_dialect import find_dialect
from flowsql_connectors.formats.inferring.sampling import (
    FURTHER_BYTES,
    SAMPLE_BYTES,
    InferredFormat,
    differing,
    empty,
    sampled,
)
from flowsql_connectors.formats.inferring.texts import TextType, type_of_texts
from flowsql_connectors.formats.rows_in_bytes import decompressed, open_file
from flowsql_connectors.options import COLUMNS_INFERRED, ConnectorOption, OptionValues
from flowsql_core.arrow import compute as pc
from flowsql_core.record import record
from flowsql_core.types.logical import STRING, Column, TimestampLtzType, TimestampType

#: Texts that stand for NULL in files of pandas, R, databases and spreadsheets.
_MARKS: Final = ("", "NA", "N/A", "NULL", "null", "\\N")
#: Those that are no word of any language, and so are NULL in columns of texts, too.
_NO_WORDS: Final = ("\\N",)
#: Where the dialect is looked for; rows may be long.
_HEAD_BYTES: Final = 1024 * 1024
#: Of a compressed file more may have been read than is looked at.
_MOST_ROWS: Final = 30_000
_BOM: Final = "\ufeff"
_NAMES: Final = {"\t": "tab"}


@record
class _Sample:
    """Texts of a file by column, its first row apart."""

    first: tuple[str, ...]
    texts: tuple[Any, ...]


def infer_csv(files: Sequence[FileView], given: OptionValues, suffix: str) -> InferredFormat:
    """Columns and options of csv files; ``suffix`` tsv: a tab is between the fields.

    Raises:
        ConnectorError: files are empty, or do not go together.
    """
    looked_at = sampled(files)
    found = find_dialect(
        _head(looked_at[0]),
        given.get(FIELD_DELIMITER) if given.has(FIELD_DELIMITER) else "\t" if suffix == "tsv" else None,
        given.get(QUOTE_CHARACTER) if given.has(QUOTE_CHARACTER) else None,
        given.get(ESCAPE_CHARACTER),
        quoted=not given.get(DISABLE_QUOTE),
    )
    dialect = replace(found.dialect, comments=given.get(ALLOW_COMMENTS))
    as_texts = CsvFormat(dialect, (), ";", ignore_parse_errors=True, header=False, scientific=True)
    _check_widths(looked_at, dialect, found.width)
    samples = [
        _sample(file, as_texts, found.width, SAMPLE_BYTES if at == 0 else FURTHER_BYTES)
        for at, file in enumerate(looked_at)
    ]
    first = samples[0]
    marks = given.get(NULL_LITERALS) or ((given.get(NULL_LITERAL) or "",) if given.has(NULL_LITERAL) else _MARKS)
    types = [_judged([texts], marks)[0] for texts in first.texts]
    header = given.get(HEADER) if given.has(HEADER) else _is_header(first, types, marks)
    for file, sample in zip(looked_at[1:], samples[1:], strict=True):
        if header and sample.first != first.first:
            raise differing(file.path, "does not begin with the header of", looked_at[0].path)
    columns = [
        _judged([*(s.texts[at] for s in samples), *(() if header else (_one(s.first[at]) for s in samples))], marks)
        for at in range(found.width)
    ]
    names = _names(first.first) if header else tuple(f"f{at}" for at in range(found.width))
    literals = _literals(columns, given)
    return InferredFormat(
        tuple(Column(name, each.type) for name, (each, _) in zip(names, columns, strict=True)),
        tuple(_options(as_texts, header, literals, [each for each, _ in columns], given).items()),
        _notes(dialect.delimiter, header, literals),
    )


def _check_widths(files: Sequence[FileView], dialect: CsvDialect, width: int) -> None:
    for file in files[1:]:
        own = find_dialect(_head(file), dialect.delimiter, dialect.quote, dialect.escape, quoted=bool(dialect.quote))
        if own.width != width:
            what = f"has {own.width} field{'s' * (own.width != 1)} in a row, not {width} as"
            raise differing(file.path, what, files[0].path)


def _head(file: FileView) -> str:
    if file.compression is None:
        opened = open_file(file)
        try:
            data = opened.read(0, _HEAD_BYTES)
        finally:
            opened.close()
    else:
        data = next(decompressed(file), b"")[:_HEAD_BYTES]
    return data.decode("utf-8", "replace").removeprefix(_BOM)


def _sample(file: FileView, format_: CsvFormat, width: int, size: int) -> _Sample:
    """The rows that begin in the first bytes of a file.

    Raises:
        ConnectorError: there is none.
        ExecutionError: no UTF-8.
    """
    columns = tuple(Column(f"f{at}", STRING) for at in range(width))
    decoder = format_.decoder(DecodeContext(columns, tuple(range(width)), size, {}))
    part = Range(0, file.size if file.compression is not None else min(size, file.size))
    rows = next((rows for rows in decoder.read(file, part) if rows.num_rows), None)
    if rows is None:
        raise empty(file.path)
    texts = [pc.fill_null(array.slice(0, _MOST_ROWS), "") for array in rows.arrays]
    return _Sample(tuple(array[0].as_py() for array in texts), tuple(array.slice(1) for array in texts))


def _one(text: str) -> Any:
    return pa.array([text], pa.string())


def _judged(texts: Sequence[Any], marks: Sequence[str]) -> tuple[TextType, tuple[str, ...]]:
    """The type of a column, and the texts in it that stand for NULL."""
    distinct = pc.unique(pa.chunked_array(texts, pa.string()))
    is_mark = pc.is_in(distinct, pa.array(marks, pa.string()))
    found = distinct.filter(is_mark).to_pylist()
    values = distinct.filter(pc.invert(is_mark))
    type_ = type_of_texts(values)
    if type_.is_text and len(values):
        # Any word may be meant as it is written (NA is Namibia, too).
        found = [mark for mark in found if mark in _NO_WORDS or mark == ""]
    return type_, tuple(mark for mark in marks if mark in found)


def _is_header(sample: _Sample, types: Sequence[TextType], marks: Sequence[str]) -> bool:
    """Whether the first row names the columns.

    It does where it holds a text above values of another type. Where all columns are texts, it does if its texts could
    be names: each another one, and none of them a number.
    """
    own = [type_of_texts(_one(text)) for text in sample.first]
    if any(
        mine.is_text and not below.is_text and text not in marks
        for text, mine, below in zip(sample.first, own, types, strict=True)
    ):
        return True
    if any(not below.is_text for below in types):
        return False
    texts = [text.strip() for text in sample.first]
    return all(mine.is_text for mine in own) and all(texts) and len(set(texts)) == len(texts)


def _names(first: Sequence[str]) -> tuple[str, ...]:
    """Names of a header; a number behind those that are there already, ``f0``, ``f1``, ... for empty ones."""
    made: list[str] = []
    for at, text in enumerate(first):
        name = re.sub(r"\s+", " ", text).strip() or f"f{at}"
        other, number = name, 1
        while other in made:
            other, number = f"{name}_{number}", number + 1
        made.append(other)
    return tuple(made)


def _literals(columns: Sequence[tuple[TextType, tuple[str, ...]]], given: OptionValues) -> tuple[str, ...]:
    """What stands for NULL: what does so beside numbers and times; an empty field where nothing does."""
    if given.has(NULL_LITERALS) or given.has(NULL_LITERAL):
        return given.get(NULL_LITERALS) or (given.get(NULL_LITERAL) or "",)
    found = {mark for type_, marks in columns for mark in marks if not type_.is_text or mark in _NO_WORDS}
    # A column without a single value says, too, what it writes for NULL.
    found |= {
        mark for type_, marks in columns if type_.is_text and not {"", *_NO_WORDS}.issuperset(marks) for mark in marks
    }
    return tuple(mark for mark in _MARKS if mark in found) or ("",)


def _options(
    format_: CsvFormat, header: bool, literals: tuple[str, ...], types: Sequence[TextType], given: OptionValues
) -> Mapping[str, str]:
    """What differs from the format's defaults and was not given."""
    dialect = format_.dialect
    made = {HEADER.key: str(header).lower()} if header else {}
    if dialect.delimiter != FIELD_DELIMITER.default:
        made[FIELD_DELIMITER.key] = dialect.delimiter
    if dialect.quote is not None and dialect.quote != QUOTE_CHARACTER.default:
        made[QUOTE_CHARACTER.key] = dialect.quote
    if dialect.escape is not None:
        made[ESCAPE_CHARACTER.key] = dialect.escape
    if len(literals) > 1:
        made[NULL_LITERALS.key] = ";".join(literals)
    else:
        made[NULL_LITERAL.key] = literals[0]
    stamps = [each for each in types if isinstance(each.type, TimestampType | TimestampLtzType)]
    if stamps and not all(each.sql for each in stamps):
        made[TIMESTAMP_FORMAT.key] = "ISO-8601"
    made[COLUMNS_INFERRED.key] = "true"
    nulls: tuple[ConnectorOption[Any], ...] = (NULL_LITERAL, NULL_LITERALS)
    if any(given.has(option) for option in nulls):
        for option in nulls:
            made.pop(option.key, None)
    return made


def _notes(delimiter: str, header: bool, literals: tuple[str, ...]) -> tuple[str, ...]:
    notes = ["header" if header else "no header"]
    if delimiter != FIELD_DELIMITER.default:
        notes.append(f"{_NAMES.get(delimiter, repr(delimiter))} between fields")
    if literals != ("",):
        shown = " and ".join(literal or "empty fields" for literal in literals)
        notes.append(f"{shown} as NULL")
    return tuple(notes)
