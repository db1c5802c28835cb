"""Messages that kernels read give the rows, and the errors, that the decoders of lines give."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flowsql_connectors.formats.format import Columns, DecodeContext, FileFormat, MessageDecoder, Messages
from flowsql_connectors.formats.messages.by_kernel import KernelMessages
from flowsql_connectors.formats.messages.lines import EmptyMessage, LineMessages
from flowsql_connectors.formats.registry import format_factory
from flowsql_connectors.options import OptionValues
from flowsql_core.errors import FlowSqlError
from tests.connectors.tables import columns_of, table_of

_COLUMNS = columns_of(
    "a INT, b STRING, c BIGINT, d TIMESTAMP(3), e DOUBLE, f DATE, g DECIMAL(10, 2), h TINYINT, i BOOLEAN, j BYTES"
)
_NAMES = [column.name for column in _COLUMNS]
_LOST = "lost"


def _format(name: str, **options: str) -> FileFormat:
    given_ = {f"{name}.{key.replace('_', '-')}": value for key, value in options.items()}
    table = table_of("a INT", {"connector": "kafka"})
    return format_factory(name).create(OptionValues(given_), table)


def _decoders(format_: FileFormat, projection: tuple[int, ...]) -> tuple[MessageDecoder, MessageDecoder, list[Any]]:
    """The one of the format and that of lines; what either loses."""
    lost: list[Any] = []

    def context() -> DecodeContext:
        counts: dict[str, int] = {}
        lost.append(counts)

        def lose(name: str, number: int, where: Any) -> None:
            counts[name] = counts.get(name, 0) + number

        return DecodeContext(_COLUMNS, projection, 65_536, {}, lose=lose)

    json = format_.identifier == "json"
    bad = EmptyMessage.SKIPPED if format_.ignore_parse_errors else EmptyMessage.BAD  # type: ignore[attr-defined]
    empty = EmptyMessage.NOTHING if json else bad
    own = format_.message_decoder(context())
    assert isinstance(own, KernelMessages)
    lines = LineMessages(format_.decoder, context(), empty, " " if json else None, row_a_message=not json)
    return own, lines, lost


def _told(decoder: MessageDecoder, messages: list[bytes | None]) -> Any:
    try:
        found = decoder.decode(Messages(pa.array(messages, pa.binary()), lambda index: f"message {index}"))
    except FlowSqlError as error:
        return error.code, error.message
    return _rows(found)


def _rows(found: Columns) -> list[Any]:
    assert found.lines is not None
    if not found.num_rows:
        return []
    values = [array.to_pylist() for array in found.arrays]
    # NaN is not equal to itself; of texts each is.
    return [[int(line), *map(repr, row)] for line, *row in zip(found.lines.tolist(), *values, strict=True)]


_SCALARS = [
    "0", "-0", "1", "-7", "127", "128", "2147483647", "2147483648", "-2147483648", "9223372036854775807", "01", "1.0",
    "1.5", "-2.25", "0.10", "1e2", "1E400", "1.", ".5", "-", "+1", "123456789012345678", "1234567890123456789",
    "true", "false", "null", "tru", "nul", "NaN", '""', '"x"', '"5"', '" 5 "', '"true"', '"2026-01-01 00:00:00"',
    '"2026-01-01T00:00:00"', '"2026-01-01 00:00:00.123"', '"2026-02-30"', '"2026-02-28"', '"YWI="', '"a\\nb"',
    '"\\u00e9"', '"\\x"', '"é"', '"tab\t"', '"' + "long " * 30 + '"', '"' + "x" * 63 + '"', '"' + "x" * 64 + '"',
    "{}", "[]", '{"a":1}', "[1, 2]", '{"a":[{"b":"]"},{}],"c":"}"}', "[1,]", "{,}", '{"a"}', "[[[]]", '"open',
]  # fmt: skip
_BLANKS = st.sampled_from(["", "", "", " ", "\n", "\r\n", "\t ", "\x0b"])
_MEMBER_NAMES = st.sampled_from([*_NAMES, "z", "aa", "", "\\u0061", "é"])


@st.composite
def _objects(draw: st.DrawFn) -> bytes:
    """Mostly objects; some are cut, or have a byte put in."""
    members = [
        f'{draw(_BLANKS)}"{draw(_MEMBER_NAMES)}"{draw(_BLANKS)}:{draw(_BLANKS)}{draw(st.sampled_from(_SCALARS))}'
        for _ in range(draw(st.integers(0, 4)))
    ]
    text = f"{draw(_BLANKS)}{{{','.join(members)}{draw(_BLANKS)}}}{draw(_BLANKS)}".encode()
    match draw(st.integers(0, 11)):
        case 0:
            return text[: draw(st.integers(0, len(text)))]
        case 1:
            at = draw(st.integers(0, len(text)))
            return text[:at] + draw(st.sampled_from([b'"', b",", b"}", b"\\", b"{", b"\xff", b" "])) + text[at:]
        case 2:
            return b"[" + text + b"," + text + b"]"
    return text


_VALID = [
    ["1", "-5", "null", "2147483647"], ['"x"', '""', '"é"', "null", '"a\\nb"', '"' + "y" * 70 + '"'],
    ["9007199254740993", "-1"], ['"2026-01-01 00:00:00"', '"1969-12-31 23:59:59.5"'], ["1.5", "-0.0", "2", "1e3"],
    ['"2026-02-28"'], ["1.5", "12345678.99", "3"], ["-128", "127"], ["true", "false", "null"], ['"YWI="'],
]  # fmt: skip


@st.composite
def _valid_objects(draw: st.DrawFn) -> bytes:
    places = draw(st.lists(st.integers(0, len(_NAMES) - 1), unique=True))
    return ("{" + ", ".join(f'"{_NAMES[p]}": {draw(st.sampled_from(_VALID[p]))}' for p in places) + "}").encode()


@st.composite
def _similar_objects(draw: st.DrawFn) -> list[bytes | None]:
    """Messages with the same members in the same order, some with a byte more or less or a blank between."""
    places = draw(st.lists(st.integers(0, len(_NAMES) - 1), min_size=1, max_size=4))
    names = draw(st.permutations([*(_NAMES[place] for place in places), *draw(st.sampled_from([[], ["z"], ["aa"]]))]))
    found: list[bytes | None] = []
    for _ in range(draw(st.integers(2, 8))):
        values = [
            draw(st.sampled_from(_VALID[_NAMES.index(name)] if name in _NAMES else ["1", '"x"'])) for name in names
        ]
        text = "{" + ",".join(f'"{name}":{value}' for name, value in zip(names, values, strict=True)) + "}"
        raw = text.encode()
        at = draw(st.integers(0, len(raw)))
        match draw(st.integers(0, 5)):
            case 0:
                raw = raw[:at] + draw(st.sampled_from([b" ", b'"', b",", b"}", b"x", b":"])) + raw[at:]
            case 1:
                raw = raw[:at] + raw[at + 1 :]
        # Behind the last message stands nothing that a comparison of 64 bytes could reach into.
        found.append(raw + b" " * draw(st.sampled_from([0, 0, 70])))
    return found


_FIELDS = [
    "", "0", "-0", "1", "007", "-7", "127", "128", "2147483648", "123456789012345678", "1.5", "x", " 5", "+5", "true",
    "NA", '"NA"', '""', '"x"', '"5"', '"a,b"', '"a""b"', '"open', 'qu"ote', '"x" ', "é", "2026-01-01", '"2026-02-28"',
    '"2026-01-01 00:00:00"', "2026-01-01 00:00:00.123", "a\\,b", "a\nb", '"a\nb"', "YWI=",
    "l" * 70, '"' + "l" * 64 + '"',
]  # fmt: skip


@st.composite
def _csv_rows(draw: st.DrawFn) -> bytes:
    width = draw(st.sampled_from([len(_COLUMNS)] * 6 + [1, len(_COLUMNS) - 1, len(_COLUMNS) + 1]))
    row = ",".join(draw(st.sampled_from(_FIELDS)) for _ in range(width))
    return (row + draw(st.sampled_from(["", "", "", "\n", "\r\n", ","]))).encode()


_VALID_FIELDS = [
    ["1", "-5", '"7"'], ["x", "", '"a,b"', '"é"', '"a""b"'], ["9007199254740993"], ['"2026-01-01 00:00:00"'],
    ["1.5", "-0.0"], ["2026-02-28"], ["1.5", "12345678.99"], ["-128", "127"], ["true", "false"], ["YWI="],
]  # fmt: skip
_valid_csv_rows = st.tuples(*(st.sampled_from(fields) for fields in _VALID_FIELDS)).map(
    lambda fields: ",".join(fields).encode()
)
_PROJECTIONS = st.sampled_from([(0,), (1,), (2, 0), (3, 4, 8), (), tuple(range(len(_COLUMNS)))])


def _each_object() -> list[bytes]:
    """Each value in each column, and where nobody wants it."""
    return [f'{{"{name}":{value}}}'.encode() for name in [*_NAMES, "z"] for value in _SCALARS]


def _each_row() -> list[bytes]:
    """Each field in each column."""
    usual = [fields[0] for fields in _VALID_FIELDS]
    return [
        ",".join([*usual[:place], field, *usual[place + 1 :]]).encode()
        for place in range(len(_COLUMNS))
        for field in _FIELDS
    ]


@pytest.mark.parametrize("name", ["json", "csv"])
def test_each_value_in_each_column(name: str) -> None:
    everything = tuple(range(len(_COLUMNS)))
    messages: list[bytes | None] = [*(_each_object() if name == "json" else _each_row())]
    own, lines, lost = _decoders(_format(name, ignore_parse_errors="true"), everything)
    assert _told(own, messages) == _told(lines, messages)
    assert lost[0] == lost[1]
    strict, strict_lines, _ = _decoders(_format(name), everything)
    good, bad = [], []
    for message in messages:
        lost[1].clear()
        _told(lines, [message])
        (bad if lost[1] else good).append(message)
    assert _told(strict, good) == _told(strict_lines, good)
    for message in bad[::9]:
        strict._distrust = 0  # type: ignore[attr-defined]
        assert _told(strict, [message]) == _told(strict_lines, [message])


@pytest.mark.parametrize("options", [{}, {"ignore_parse_errors": "true"}], ids=["strict", "skips"])
@given(
    st.one_of(
        st.lists(_valid_objects(), max_size=30),
        st.lists(st.one_of(_objects(), st.none()), max_size=8),
        _similar_objects(),
    ),
    _PROJECTIONS,
)
@settings(max_examples=max(25, settings().max_examples), deadline=None)
def test_json(options: dict[str, str], messages: list[bytes | None], projection: tuple[int, ...]) -> None:
    own, lines, lost = _decoders(_format("json", **options), projection)
    assert _told(own, messages) == _told(lines, messages)
    assert lost[0] == lost[1]


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"ignore_parse_errors": "true"},
        {"null_literal": "NA"},
        {"escape_character": "\\", "ignore_parse_errors": "true"},
        {"disable_quote_character": "true", "ignore_parse_errors": "true"},
    ],
    ids=["strict", "skips", "null", "escapes", "no quotes"],
)
@given(
    st.one_of(st.lists(_valid_csv_rows, max_size=30), st.lists(st.one_of(_csv_rows(), st.none()), max_size=8)),
    _PROJECTIONS,
)
@settings(max_examples=max(15, settings().max_examples), deadline=None)
def test_csv(options: dict[str, str], messages: list[bytes | None], projection: tuple[int, ...]) -> None:
    own, lines, lost = _decoders(_format("csv", **options), projection)
    assert _told(own, messages) == _told(lines, messages)
    assert lost[0] == lost[1]


def test_more_members_and_longer_names_than_are_remembered() -> None:
    names = [*(f"n{at}" for at in range(70)), "n" * 80, "b", "a"]
    text = "{" + ",".join(f'"{name}":{at}' for at, name in enumerate(names)) + "}"
    own, lines, _ = _decoders(_format("json"), (0, 1))
    messages: list[bytes | None] = [text.replace('"b":71', f'"b":"{at}"').encode() for at in range(5)]
    told = _told(own, messages)
    assert told == _told(lines, messages)
    assert told == [[at, "72", f"'{at}'"] for at in range(5)]


def test_odd_messages_stand_between_the_others() -> None:
    own, _, _ = _decoders(_format("json"), (0, 1))
    messages = [b'{"a":0}', b'{"a":1,"b":"\\u0041"}', None, b'[{"a":3},{"a":4}]', b'{"b":"x","a":5}', b'{"a":"6"}']
    found = own.decode(Messages(pa.array(messages, pa.binary()), str))
    assert found.lines is not None
    assert found.lines.tolist() == [0, 1, 3, 3, 4, 5]
    assert [array.to_pylist() for array in found.arrays] == [[0, 1, 3, 4, 5, 6], [None, "A", None, None, "x", None]]
