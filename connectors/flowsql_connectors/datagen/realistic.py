"""Kinds of ``datagen`` columns beyond Flink's two: values as they come in practice.

Keys of which few are hot, values around a mean, some words more often than others, names of people, times that a clock
gives and of which a share comes late. Each kind is an entry of :data:`KINDS`.
"""

from __future__ import annotations

import decimal
import importlib
from collections.abc import Callable
from typing import Any, Final

import numpy as np
import pyarrow as pa

from flowsql_connectors.datagen.rows import Make, RowRange, local_ms
from flowsql_connectors.options import ConnectorOption, OptionValues, optional, parse_positive
from flowsql_core.arrow import compute as pc
from flowsql_core.config import parse_duration_ms
from flowsql_core.errors import BindError
from flowsql_core.record import record
from flowsql_core.types.arrow import to_arrow
from flowsql_core.types.logical import (
    ApproximateType,
    BooleanType,
    CharacterType,
    DateType,
    DecimalType,
    IntegerType,
    LogicalType,
    TimestampLtzType,
    TimestampType,
)

#: Keys that ``zipf`` tells apart: the weights of all are held in memory.
MAX_ZIPF_KEYS: Final = 10_000_000


@record
class Kind:
    """``fits``: which columns may be of this kind; ``types``: these in words. ``make``: the generator of one."""

    types: str
    fits: Callable[[LogicalType], bool]
    options: Callable[[str], tuple[ConnectorOption[Any], ...]]
    make: Callable[[str, LogicalType, OptionValues], Make]


# choice


def _values(path: str) -> ConnectorOption[str]:
    return ConnectorOption(f"fields.{path}.values", str, "", "The values, with ';' between them.")


def _weights(path: str) -> ConnectorOption[list[float] | None]:
    def parse(text: str) -> list[float]:
        weights = [float(weight) for weight in text.split(";")]
        if min(weights) < 0 or not 0 < sum(weights) < float("inf"):
            raise ValueError("weights are not negative, and one of them at least is above zero")
        return weights

    return ConnectorOption(
        f"fields.{path}.weights", parse, None, "How often each value comes beside the others, with ';' between them."
    )


def _choice(path: str, type_: LogicalType, values: OptionValues) -> Make:
    option = _values(path)
    if not values.has(option):
        raise BindError("missing-option", f"Could not find required property '{option.key}' for choice generator.")
    texts = values.get(option).split(";")
    try:
        chosen = pa.array(texts).cast(to_arrow(type_))
    except pa.ArrowInvalid as error:
        raise BindError(
            "invalid-option-value", f"'{option.key}' has a value that is no {type_}: {str(error).splitlines()[0]}"
        ) from None
    weights = values.get(_weights(path))
    if weights is not None and len(weights) != len(texts):
        raise BindError(
            "invalid-option-value", f"'{_weights(path).key}' has {len(weights)} weights for {len(texts)} values."
        )
    ends = _ends(np.ones(len(texts)) if weights is None else np.asarray(weights))
    return lambda rows, rng, now_ms: pc.take(chosen, pa.array(np.searchsorted(ends, rng.random(rows.count), "right")))


def _ends(weights: Any) -> Any:
    """Where the share of each value ends between 0 and 1; float64, as long as the weights."""
    ends = np.cumsum(weights, dtype=np.float64)
    ends /= ends[-1]
    # Rounding must not leave room behind the last value that comes at all.
    ends[np.flatnonzero(weights)[-1] :] = 1.0
    return ends


# zipf


def _integer(path: str, end: str, default: int) -> ConnectorOption[int]:
    return ConnectorOption(f"fields.{path}.{end}", int, default, f"The {end} of the keys.")


def _exponent(path: str) -> ConnectorOption[float]:
    def parse(text: str) -> float:
        exponent = float(text)
        if not 0 <= exponent <= 100:
            raise ValueError("expected an exponent between 0 (all keys alike) and 100")
        return exponent

    return ConnectorOption(f"fields.{path}.exponent", parse, 1.0, "Key number k comes 1 / k^exponent times as often.")


def _zipf(path: str, type_: LogicalType, values: OptionValues) -> Make:
    low, high = values.get(_integer(path, "min", 1)), values.get(_integer(path, "max", 1000))
    bits = type_.bits if isinstance(type_, IntegerType) else 64
    if low > high or not -(2 ** (bits - 1)) <= low <= high < 2 ** (bits - 1):
        raise BindError("invalid-option-value", f"Keys from {low} to {high} are none of column '{path}' ({type_}).")
    if high - low >= MAX_ZIPF_KEYS:
        raise BindError(
            "invalid-option-value",
            f"Column '{path}' has {high - low + 1:,} keys; the kind zipf has at most {MAX_ZIPF_KEYS:,}.",
        )
    ends = _ends(np.arange(1, high - low + 2, dtype=np.float64) ** -values.get(_exponent(path)))
    target = to_arrow(type_)
    return lambda rows, rng, now_ms: pa.array(low + np.searchsorted(ends, rng.random(rows.count), "right")).cast(target)


# normal


def _number(path: str, name: str, default: float) -> ConnectorOption[float]:
    def parse(text: str) -> float:
        number = float(text)
        if not np.isfinite(number) or (name == "stddev" and number < 0):
            raise ValueError("expected a number" if name == "mean" else "expected a number that is not negative")
        return number

    return ConnectorOption(f"fields.{path}.{name}", parse, default, f"The {name} of the values.")


def _normal(path: str, type_: LogicalType, values: OptionValues) -> Make:
    mean, deviation = values.get(_number(path, "mean", 0.0)), values.get(_number(path, "stddev", 1.0))
    target = to_arrow(type_)
    if isinstance(type_, IntegerType):
        low, high = -(2 ** (type_.bits - 1)), 2 ** (type_.bits - 1) - 1
        # Values beyond the type are its ends. Above 2^53 a double has no room for odd numbers.
        high = min(high, 2**63 - 1024)
        return lambda rows, rng, now_ms: pa.array(
            np.clip(np.rint(rng.normal(mean, deviation, rows.count)), low, high).astype(np.int64)
        ).cast(target)
    if isinstance(type_, DecimalType):
        largest = float(decimal.Decimal(10) ** (type_.precision - type_.scale))
        wide = pa.decimal256(min(76, type_.precision + 20), type_.scale)
        below = np.nextafter(largest, 0) if type_.scale == 0 else largest - 10.0**-type_.scale
        return lambda rows, rng, now_ms: (
            pc.round(pa.array(np.clip(rng.normal(mean, deviation, rows.count), -below, below)), type_.scale)
            .cast(wide, safe=False)
            .cast(target)
        )
    return lambda rows, rng, now_ms: pa.array(rng.normal(mean, deviation, rows.count)).cast(target)


# faker


def _provider(path: str) -> ConnectorOption[str]:
    return ConnectorOption(
        f"fields.{path}.provider", str, "", "What of the library Faker: name, email, city, ipv4, user_agent, ..."
    )


def _locale(path: str) -> ConnectorOption[str | None]:
    return ConnectorOption(f"fields.{path}.locale", optional(str), None, "Language and country, e.g. de_DE.")


def _distinct(path: str) -> ConnectorOption[int]:
    return ConnectorOption(
        f"fields.{path}.distinct", parse_positive, 1000, "Values that are made; rows choose among them."
    )


def _faker(path: str, type_: LogicalType, values: OptionValues) -> Make:
    option = _provider(path)
    if not values.has(option):
        raise BindError("missing-option", f"Could not find required property '{option.key}' for faker generator.")
    try:
        faker: Any = importlib.import_module("faker")
    except ImportError:
        raise BindError(
            "missing-package",
            f"The kind faker of column '{path}' needs the package Faker.",
            hint="pip install flowsql[faker]",
        ) from None
    try:
        made = faker.Faker(values.get(_locale(path)))
    except AttributeError:
        raise BindError(
            "invalid-option-value", f"'{_locale(path).key}': Faker knows no locale '{values.get(_locale(path))}'."
        ) from None
    name = values.get(option)
    provide = getattr(made, name, None) if not name.startswith("_") else None
    if not callable(provide):
        raise BindError("invalid-option-value", f"'{option.key}': Faker has no provider '{name}'.")
    pool = pa.array([str(provide()) for _ in range(values.get(_distinct(path)))])
    length = getattr(type_, "length", None)
    if length is not None:
        pool = pc.utf8_slice_codeunits(pool, 0, length)
    return lambda rows, rng, now_ms: pc.take(pool, pa.array(rng.integers(0, len(pool), rows.count)))


# clock


def _start(path: str) -> ConnectorOption[int | None]:
    def parse(text: str) -> int:
        moment = np.datetime64(text.strip().replace(" ", "T"), "ms")
        if np.isnat(moment):
            raise ValueError("expected a moment such as 2026-01-31 12:00:00")
        return int(moment.astype(np.int64))

    return ConnectorOption(f"fields.{path}.start", parse, None, "The time of the first row; without it, now.")


def _step(path: str) -> ConnectorOption[int]:
    return ConnectorOption(f"fields.{path}.step", parse_duration_ms, 1000, "Time between two rows, behind a start.")


def _disorder(path: str) -> ConnectorOption[float]:
    def parse(text: str) -> float:
        share = float(text)
        if not 0 <= share <= 1:
            raise ValueError("expected a share between 0 and 1")
        return share

    return ConnectorOption(f"fields.{path}.disorder", parse, 0.0, "The share of rows whose time lies back.")


def _max_delay(path: str) -> ConnectorOption[int]:
    return ConnectorOption(
        f"fields.{path}.max-delay", parse_duration_ms, 10_000, "How far the time of such rows lies back at most."
    )


def _clock(path: str, type_: LogicalType, values: OptionValues) -> Make:
    start, step = values.get(_start(path)), values.get(_step(path))
    disorder, max_delay = values.get(_disorder(path)), values.get(_max_delay(path))
    if start is None and values.has(_step(path)):
        raise BindError(
            "invalid-option-value", f"'{_step(path).key}' needs '{_start(path).key}': without one the time is now."
        )
    target = to_arrow(type_)

    def make(rows: RowRange, rng: np.random.Generator, now_ms: int) -> Any:
        if start is not None:
            times = start + rows.indexes() * step
        else:
            now = now_ms if isinstance(type_, TimestampLtzType) else local_ms(now_ms)
            times = np.full(rows.count, now, dtype=np.int64)
        if disorder and max_delay:
            late = rng.random(rows.count) < disorder
            times = times - np.where(late, rng.integers(1, max_delay, rows.count, endpoint=True), 0)
        return pa.array(times).cast(pa.timestamp("ms", target.tz)).cast(target)

    return make


def _is_scalar(type_: LogicalType) -> bool:
    scalars = CharacterType | BooleanType | IntegerType | ApproximateType | DecimalType | DateType | TimestampType
    return isinstance(type_, scalars)


KINDS: Final[dict[str, Kind]] = {
    "choice": Kind(
        "texts, numbers, BOOLEAN, DATE and TIMESTAMP", _is_scalar, lambda path: (_values(path), _weights(path)), _choice
    ),
    "zipf": Kind(
        "whole numbers",
        lambda type_: isinstance(type_, IntegerType),
        lambda path: (_integer(path, "min", 1), _integer(path, "max", 1000), _exponent(path)),
        _zipf,
    ),
    "normal": Kind(
        "numbers",
        lambda type_: isinstance(type_, IntegerType | ApproximateType | DecimalType),
        lambda path: (_number(path, "mean", 0.0), _number(path, "stddev", 1.0)),
        _normal,
    ),
    "faker": Kind(
        "texts",
        lambda type_: isinstance(type_, CharacterType),
        lambda path: (_provider(path), _locale(path), _distinct(path)),
        _faker,
    ),
    "clock": Kind(
        "TIMESTAMP and TIMESTAMP_LTZ",
        lambda type_: isinstance(type_, TimestampType | TimestampLtzType),
        lambda path: (_start(path), _step(path), _disorder(path), _max_delay(path)),
        _clock,
    ),
}
