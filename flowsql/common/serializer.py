"""``TypeSerializer``, under the name of PyFlink's module: what programs say about their own kinds of windows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from io import BytesIO
from typing import Generic, TypeVar

T = TypeVar("T")


class TypeSerializer(ABC, Generic[T]):
    """Writes values into bytes and reads them again."""

    @abstractmethod
    def serialize(self, element: T, stream: BytesIO) -> None:
        """Append the bytes of a value."""

    @abstractmethod
    def deserialize(self, stream: BytesIO) -> T:
        """Read one value."""
