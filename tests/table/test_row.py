from __future__ import annotations

import pickle

import pytest

from flowsql.common import Row, RowKind


def test_values_by_position_name_and_attribute() -> None:
    row = Row(name="ann", age=11)
    assert (row[0], row["age"], row.name, len(row), list(row)) == ("ann", 11, "ann", 2, ["ann", 11])
    assert row.as_dict() == {"name": "ann", "age": 11}


def test_kind_takes_part_in_equality() -> None:
    assert Row(1) == Row(1)
    assert Row(1) != Row.of_kind(RowKind.DELETE, 1)
    assert Row.of_kind(RowKind.UPDATE_AFTER, 1, "a").get_row_kind() is RowKind.UPDATE_AFTER
    assert [str(kind) for kind in RowKind] == ["+I", "-U", "+U", "-D"]


def test_repr_shows_names_where_there_are_some() -> None:
    assert repr(Row(1, "a")) == "<Row(1, 'a')>"
    assert repr(Row(a=1, b="x")) == str(Row(a=1, b="x")) == "Row(a=1, b='x')"


def test_a_row_of_names_makes_rows() -> None:
    person = Row("name", "age")
    assert person("ann", 11).as_dict() == {"name": "ann", "age": 11}
    assert "age" in person("ann", 11)
    assert 11 in Row("ann", 11)
    with pytest.raises(ValueError, match="do not fit"):
        person(1, 2, 3)


def test_rows_nest_and_pickle() -> None:
    row = Row(a=Row(b=1))
    assert row.as_dict(recursive=True) == {"a": {"b": 1}}
    assert pickle.loads(pickle.dumps(row)) == row
    assert pickle.loads(pickle.dumps(row)).a.b == 1


def test_unknown_names_are_refused() -> None:
    with pytest.raises(AttributeError, match="nosuch"):
        Row(a=1).nosuch  # noqa: B018
    with pytest.raises(KeyError):
        Row(1)["a"]
    with pytest.raises(ValueError, match="positional"):
        Row(1, a=2)
