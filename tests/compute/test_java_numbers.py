"""Texts of FLOAT and DOUBLE numbers against those of Java 17."""

from __future__ import annotations

import struct

import pyarrow as pa
import pytest

from flowsql_compute.eval.text.format import double_text
from flowsql_compute.eval.text.java_numbers import java_double, java_float

#: The bits of a number, and its text.
DOUBLES = {
    0x0000000000000001: "4.9E-324",
    0x0000000000000002: "1.0E-323",
    0x0000000000000003: "1.5E-323",
    0x0000000000000028: "2.0E-322",
    0x0010000000000000: "2.2250738585072014E-308",
    0x000FFFFFFFFFFFFF: "2.225073858507201E-308",
    0x3D30000000000000: "5.6843418860808015E-14",
    0x0170000000000000: "9.332636185032189E-302",
    0x44B52D02C7E14AF6: "9.999999999999999E22",
    0x44C52D02C7E14AF6: "1.9999999999999998E23",
    0x4480F0CF064DD592: "1.0E22",
    0x4340000000000000: "9.007199254740992E15",
    0x4350000000000001: "1.8014398509481988E16",
    0x4350000000000002: "1.8014398509481992E16",
    0x43B12210F47DE981: "1.23456789012345677E18",
    0x43E0000000000000: "9.223372036854776E18",
    0x43F0000000000000: "1.8446744073709552E19",
    0x4534ADF4B7320335: "2.5E25",
    0x4533998FB0C53F1F: "2.3694763266616073E25",
    0x4546EA3039FF77F9: "5.5404582822839535E25",
    0x7FEFFFFFFFFFFFFF: "1.7976931348623157E308",
    0x3F50624DD2F1A9FC: "0.001",
    0x3F4D7DBF487FCB92: "9.0E-4",
    0x416312CFE0000000: "9999999.0",
    0x416312D000000000: "1.0E7",
    0x40FE240C9FBE76C9: "123456.789",
    0x444B1AE4D6E2EF50: "1.0E21",
    0x4450000000000000: "1.1805916207174113E21",
    0x4630000000000000: "1.2676506002282294E30",
    0x8000000000000001: "-4.9E-324",
}
FLOATS = {
    0x00000001: "1.4E-45",
    0x00000002: "2.8E-45",
    0x00000003: "4.2E-45",
    0x0000000A: "1.4E-44",
    0x007FFFFF: "1.1754942E-38",
    0x00800000: "1.17549435E-38",
    0x7F7FFFFF: "3.4028235E38",
    0x4B800000: "1.6777216E7",
    0x4C000001: "3.3554436E7",
    0x5A0E1BCA: "1.00000003E16",
    0x6A39FFB7: "5.6214713E25",
    0x68FE5BEF: "9.6094156E24",
    0x69000000: "9.6714065E24",
    0x3DCCCCCD: "0.1",
    0x50000000: "8.5899346E9",
    0x5F000000: "9.223372E18",
    0x33800000: "5.9604645E-8",
    0x00800001: "1.1754945E-38",
}


def _number(bits: int, form: str) -> float:
    value: float = struct.unpack(form, bits.to_bytes(struct.calcsize(form), "little"))[0]
    return value


@pytest.mark.parametrize(("bits", "text"), DOUBLES.items(), ids=DOUBLES.values())
def test_double(bits: int, text: str) -> None:
    value = _number(bits, "<d")
    assert java_double(value) == text
    assert double_text(pa.array([value, None])).to_pylist() == [text, None]


@pytest.mark.parametrize(("bits", "text"), FLOATS.items(), ids=FLOATS.values())
def test_float(bits: int, text: str) -> None:
    value = _number(bits, "<f")
    assert java_float(value) == text
    assert double_text(pa.array([value, None], pa.float32())).to_pylist() == [text, None]
