"""What sources and sinks of DataStreams have in common."""

from __future__ import annotations

import enum
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

from flowsql.common.typeinfo import TypeInformation


class Source(ABC):
    """A bounded source: its elements are known when the job is built."""

    @abstractmethod
    def elements(self) -> tuple[Sequence[Any], TypeInformation]:
        """The elements in order, and their type."""


class StreamTransformer(ABC):
    """Applies further operators to a stream."""

    @abstractmethod
    def apply(self, ds: Any) -> Any:
        """The stream behind them."""


class SupportsPreprocessing(ABC):
    """Of sinks that want a stream prepared."""

    @abstractmethod
    def get_transformer(self) -> StreamTransformer | None:
        """What prepares it; None for nothing."""


class Sink:
    """Base of sinks. Streams are written through tables: ``sink_to`` refuses them."""


class DeliveryGuarantee(enum.Enum):
    """What a sink promises."""

    EXACTLY_ONCE = 0
    AT_LEAST_ONCE = 1
    NONE = 2
