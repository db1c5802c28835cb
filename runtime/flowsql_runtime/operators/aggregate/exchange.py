"""Accumulators as columns between the two phases of an aggregate, and back."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from flowsql_compute.eval.columns import validity
from flowsql_compute.functions.aggregate import AccumulatorColumn, Fold, accumulator_columns
from flowsql_compute.keys import is_bytes_type
from flowsql_core.errors import InternalError
from flowsql_core.expr import AggregateCall
from flowsql_core.types.arrow import to_arrow
from flowsql_runtime.operators.aggregate.result import Average, Count, Deviation, Finisher, Plain, WideSum
from flowsql_runtime.state.arrow_words import array_of_words, value_words, word_count
from flowsql_runtime.state.stores import AccumulatorStore

Words = npt.NDArray[np.int64]
#: Declared column, its word, the word that counts its values or -1.
Place = tuple[AccumulatorColumn, int, int]


def places_of(call: AggregateCall, finisher: Finisher | None) -> list[Place]:
    """Where the accumulator columns of a mergeable call stand in a row of words."""
    declared = accumulator_columns(call)
    match finisher:
        case Count(count=count):
            return [(declared[0], count, -1)]
        case Deviation(value=value):
            return [(column, value + place, -1) for place, column in enumerate(declared)]
        case Plain(value=value, count=count) | WideSum(value=value, count=count) | Average(value=value, count=count):
            if len(declared) == 1:
                return [(declared[0], value, count)]
            # A sum over as many rows taken out as put in still counts: never NULL here.
            return [(declared[0], value, -1), (declared[1], count, -1)]
        case _:
            raise InternalError(f"{call.function} does not merge")


def columns_of_states(states: Words, places: Sequence[Place], store: AccumulatorStore) -> Iterator[Any]:
    """Arrow columns of states (words, n), their bytes from ``store``."""
    for column, word, counted in places:
        type_ = to_arrow(column.type)
        valid = None if counted < 0 else states[counted] != 0
        if is_bytes_type(type_):
            refs = states[word] if valid is None else np.where(valid, states[word], np.int64(0))
            yield store.bytes_at(refs, type_)
        else:
            yield array_of_words([states[word + part] for part in range(word_count(type_))], valid, type_)


def put_columns(rows: Words, arrays: Sequence[Any], places: Sequence[Place], store: AccumulatorStore) -> None:
    """The inverse of :func:`columns_of_states`, into rows (n, words).

    A MIN or MAX that is NULL has seen nothing; the count that says so is made here.
    """
    for array, (column, word, counted) in zip(arrays, places, strict=True):
        valid = validity(array)
        if is_bytes_type(array.type):
            rows[:, word] = store.store_bytes(array)
        else:
            for part, values in enumerate(value_words(array).words):
                rows[:, word + part] = values
        if column.fold in (Fold.MIN, Fold.MAX) and counted > 0:
            seen = np.ones(len(rows), np.int64) if valid is None else valid.astype(np.int64)
            rows[:, counted] = np.maximum(rows[:, counted], seen)
