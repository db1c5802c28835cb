"""Canonical bytes of Python keys: what rows are hashed by on keyed edges, equal exactly for equal keys.

Each value is a tag and a self-delimiting body, so that tuples of values cannot be confused: None ``N``, bool ``T`` or
``F``, int ``i<decimal>;``, str ``s<length>:<UTF-8>``, bytes ``b<length>:<bytes>``, float ``f<8 bytes>`` (-0.0 as 0.0,
one NaN), Decimal ``d<normalised>;``, date, time, datetime and timedelta, tuple, list and row with their length, dict
and sets sorted by encoded key; anything else ``p<length>:<pickle>``. NumPy scalars count as Python values.

A *token* is the same in memory: a ``str`` or ``int`` itself, else the bytes. Tokens are equal where the bytes are,
hashable, and cost nothing for the usual keys.
"""

from __future__ import annotations

import datetime as dt
import enum
import pickle
import struct
from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal
from io import BytesIO
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

_NAN: Final = struct.pack(">d", float("nan"))
_EPOCH: Final = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_MICROSECOND: Final = dt.timedelta(microseconds=1)

#: The class of rows stands in the roof, where programs import it: the floors know it by its name.
ROW_CLASS: Final = ("flowsql.common.row", "Row")

#: Encoded keys that one call remembers.
_REMEMBERED: Final = 65_536

#: Types whose values are their own tokens: they never equal each other, nor bytes.
_OWN_TOKENS: Final = frozenset({str, int})


def encode_key(key: Any) -> bytes:
    """Canonical bytes of a key."""
    found = _ENCODERS.get(type(key))
    return found(key) if found is not None else _encode_other(key)


def key_token(key: Any) -> Any:
    """What stands for a key in memory: see the module docstring."""
    if type(key) in _OWN_TOKENS:
        return key
    # Subclasses and NumPy scalars are the same key as the plain value.
    plain = _plain(key)
    return plain if type(plain) in _OWN_TOKENS else encode_key(plain)


def key_tokens(keys: Sequence[Any]) -> Sequence[Any]:
    """Tokens of many keys; the sequence itself where every key is its own token."""
    if _OWN_TOKENS.issuperset(map(type, keys)):
        return keys
    return [key if type(key) in _OWN_TOKENS else key_token(key) for key in keys]


def token_bytes(token: Any) -> bytes:
    """Canonical bytes of a key from its token."""
    return token if type(token) is bytes else encode_key(token)


def token_type(token: Any) -> str:
    """The type of the key that a token stands for, for messages."""
    if type(token) is not bytes:
        return type(token).__name__
    return _TYPE_OF_TAG.get(token[:1]) or type(pickle.loads(token[token.index(b":") + 1 :])).__qualname__


def register_key_type(type_: type, fields: Callable[[Any], Iterable[Any]]) -> None:
    """Let instances of a class (rows) be keys by their fields."""
    _ENCODERS[type_] = lambda key: _encode_items(b"r", tuple(fields(key)))


def encoded_keys(keys: npt.NDArray[np.object_]) -> Any:
    """Canonical bytes of a column of keys, an Arrow binary array (n,): what a hash exchange partitions by."""
    known: dict[Any, bytes] = {}
    encoded: list[bytes] = []
    for token in key_tokens(keys.tolist()):
        found = known.get(token)
        if found is None:
            if len(known) >= _REMEMBERED:
                known.clear()
            found = known[token] = token_bytes(token)
        encoded.append(found)
    return pa.array(encoded, pa.binary())


def _plain(key: Any) -> Any:
    if isinstance(key, enum.Enum) or type(key) in _ENCODERS:
        return key
    if isinstance(key, np.generic):
        return key.item()
    if isinstance(key, str):
        return str.__str__(key)
    if isinstance(key, int):
        return int(key)
    return key


def _encode_str(key: str) -> bytes:
    raw = key.encode("utf-8", "surrogatepass")
    return b"s%d:%b" % (len(raw), raw)


def _encode_bytes(key: bytes | bytearray) -> bytes:
    return b"b%d:%b" % (len(key), bytes(key))


def _encode_float(key: float) -> bytes:
    # Adding 0.0 turns -0.0 into 0.0.
    return b"f" + (struct.pack(">d", key + 0.0) if key == key else _NAN)


def _encode_decimal(key: Decimal) -> bytes:
    normal = key.normalize()
    return b"d%b;" % str(normal if normal else Decimal(0)).encode()


def _encode_moment(key: dt.datetime) -> bytes:
    if key.tzinfo is None:
        return b"m%b;" % key.isoformat().encode()
    return b"z%d;" % ((key - _EPOCH) // _MICROSECOND)


def _encode_items(tag: bytes, items: Sequence[Any]) -> bytes:
    return b"%b%d:%b" % (tag, len(items), b"".join(map(encode_key, items)))


def _encode_dict(key: dict[Any, Any]) -> bytes:
    pairs = sorted((encode_key(name), encode_key(value)) for name, value in key.items())
    return b"e%d:%b" % (len(pairs), b"".join(name + value for name, value in pairs))


def _encode_set(key: set[Any] | frozenset[Any]) -> bytes:
    return b"u%d:%b" % (len(key), b"".join(sorted(map(encode_key, key))))


_ENCODERS: Final[dict[type, Callable[[Any], bytes]]] = {
    type(None): lambda key: b"N",
    bool: lambda key: b"T" if key else b"F",
    int: lambda key: b"i%d;" % key,
    str: _encode_str,
    bytes: _encode_bytes,
    bytearray: _encode_bytes,
    float: _encode_float,
    Decimal: _encode_decimal,
    dt.datetime: _encode_moment,
    dt.date: lambda key: b"y%d;" % key.toordinal(),
    dt.time: lambda key: b"h%b;" % key.isoformat().encode(),
    dt.timedelta: lambda key: b"w%d;" % (key // _MICROSECOND),
    tuple: lambda key: _encode_items(b"t", key),
    list: lambda key: _encode_items(b"l", key),
    dict: _encode_dict,
    set: _encode_set,
    frozenset: _encode_set,
}


#: What the first byte of an encoded key says; ``p`` is a pickled object.
_TYPE_OF_TAG: Final = {
    b"N": "None",
    b"T": "bool",
    b"F": "bool",
    b"i": "int",
    b"s": "str",
    b"b": "bytes",
    b"f": "float",
    b"d": "Decimal",
    b"m": "datetime",
    b"z": "datetime",
    b"y": "date",
    b"h": "time",
    b"w": "timedelta",
    b"t": "tuple",
    b"l": "list",
    b"e": "dict",
    b"u": "set",
    b"r": "Row",
}


def _encode_other(key: Any) -> bytes:
    type_ = type(key)
    if (type_.__module__, type_.__qualname__) == ROW_CLASS:
        register_key_type(type_, tuple)
        return encode_key(key)
    plain = _plain(key)
    if plain is not key and type(plain) in _ENCODERS:
        return _ENCODERS[type(plain)](plain)
    if isinstance(key, tuple) and not isinstance(key, enum.Enum):
        return _encode_items(b"t", key)  # a named tuple equals its values
    written = BytesIO()
    pickler = pickle.Pickler(written, protocol=4)
    # Without a memo equal values make equal bytes, whether they share objects or not.
    pickler.fast = True
    try:
        pickler.dump(key)
        raw = written.getvalue()
    except Exception:  # pickle raises many kinds where a class is not importable
        import cloudpickle

        raw = cloudpickle.dumps(key)
    return b"p%d:%b" % (len(raw), raw)
