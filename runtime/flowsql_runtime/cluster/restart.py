"""Restart strategies: whether and when a job that failed is started again; the failover strategy: how much of it.

Source: Flink 2.3, ``RestartStrategyOptions``, the classes ``...RestartBackoffTimeStrategy``, and ``JobManagerOptions``.
"""

from __future__ import annotations

import enum
import random
from collections import deque
from typing import Protocol, assert_never

from flowsql_core.config import ConfigOption, Configuration, option, parse_duration_ms, parse_enum
from flowsql_core.errors import BindError, ConnectorError, ExecutionError, FlowSqlError


class StrategyKind(enum.Enum):
    """``restart-strategy.type``."""

    NONE = "none"
    FIXED_DELAY = "fixed-delay"
    FAILURE_RATE = "failure-rate"
    EXPONENTIAL_DELAY = "exponential-delay"


class FailoverStrategy(enum.Enum):
    """``jobmanager.execution.failover-strategy``."""

    REGION = "region"
    FULL = "full"


FAILOVER_STRATEGY = option(
    "jobmanager.execution.failover-strategy",
    parse_enum(FailoverStrategy),
    FailoverStrategy.REGION,
    "What starts again when a task fails: 'region' the tasks that are connected with it by exchanges, 'full' all of "
    "the job.",
)


_SPELLINGS = {"off": "none", "disable": "none", "disabled": "none", "fixeddelay": "fixed-delay",
              "failurerate": "failure-rate", "exponentialdelay": "exponential-delay"}  # fmt: skip


def _parse_kind(text: str) -> StrategyKind:
    name = text.strip().lower()
    name = _SPELLINGS.get(name, name)
    for kind in StrategyKind:
        if kind.value == name:
            return kind
    raise ValueError("expected one of " + ", ".join(kind.value for kind in StrategyKind))


TYPE = option(
    "restart-strategy.type",
    _parse_kind,
    StrategyKind.NONE,
    "none, fixed-delay, failure-rate or exponential-delay. Not set: none without checkpoints; with checkpoints "
    "exponential-delay, but not for failures that would come again with the same row.",
)
FIXED_ATTEMPTS = option("restart-strategy.fixed-delay.attempts", int, 1, "Restarts before the job fails.")
FIXED_DELAY_MS = option("restart-strategy.fixed-delay.delay", parse_duration_ms, 1_000, "Wait before each restart.")
RATE_FAILURES = option(
    "restart-strategy.failure-rate.max-failures-per-interval", int, 1, "Failures in an interval before the job fails."
)
RATE_INTERVAL_MS = option(
    "restart-strategy.failure-rate.failure-rate-interval", parse_duration_ms, 60_000, "The interval of failures."
)
RATE_DELAY_MS = option("restart-strategy.failure-rate.delay", parse_duration_ms, 1_000, "Wait before each restart.")
EXPONENTIAL_INITIAL_MS = option(
    "restart-strategy.exponential-delay.initial-backoff", parse_duration_ms, 1_000, "First wait before a restart."
)
EXPONENTIAL_MAX_MS = option(
    "restart-strategy.exponential-delay.max-backoff", parse_duration_ms, 60_000, "Longest wait before a restart."
)
EXPONENTIAL_FACTOR = option(
    "restart-strategy.exponential-delay.backoff-multiplier", float, 1.5, "By how much each wait is longer."
)
EXPONENTIAL_RESET_MS = option(
    "restart-strategy.exponential-delay.reset-backoff-threshold",
    parse_duration_ms,
    3_600_000,
    "Time without a failure after which waits start from the first again.",
)
EXPONENTIAL_JITTER = option(
    "restart-strategy.exponential-delay.jitter-factor", float, 0.1, "Share of a wait that chance adds or takes."
)


def _parse_attempts(text: str) -> int | None:
    return None if text.strip().lower() in ("infinite", str(2**31 - 1)) else int(text)


EXPONENTIAL_ATTEMPTS: ConfigOption[int | None] = option(
    "restart-strategy.exponential-delay.attempts-before-reset-backoff",
    _parse_attempts,
    None,
    "Restarts before the job fails, unless waits were reset; 'infinite' for no limit.",
)


class RestartStrategy(Protocol):
    """Asked once for each failure, in order."""

    def delay_ms(self, now_ms: int, error: BaseException) -> int | None:
        """Wait before the restart, milliseconds; None: the job fails."""
        ...


class NoRestart:
    """The first failure is the last."""

    def delay_ms(self, now_ms: int, error: BaseException) -> int | None:
        """Never."""
        return None


class FixedDelay:
    """So many restarts, the same wait before each."""

    def __init__(self, attempts: int, delay_ms: int) -> None:
        self._left = attempts
        self._delay_ms = delay_ms

    def delay_ms(self, now_ms: int, error: BaseException) -> int | None:
        """The wait, until all attempts are used."""
        self._left -= 1
        return self._delay_ms if self._left >= 0 else None


class FailureRate:
    """Restarts as long as an interval sees no more than so many failures."""

    def __init__(self, failures: int, interval_ms: int, delay_ms: int) -> None:
        self._interval_ms = interval_ms
        self._delay_ms = delay_ms
        self._most = failures
        self._at: deque[int] = deque()

    def delay_ms(self, now_ms: int, error: BaseException) -> int | None:
        """The wait, unless failures come too fast."""
        while self._at and self._at[0] <= now_ms - self._interval_ms:
            self._at.popleft()
        self._at.append(now_ms)
        return self._delay_ms if len(self._at) <= self._most else None


class ExponentialDelay:
    """Longer and longer waits, from the first again after a time without failures.

    ``transient_only``: failures that the same row would make again are not restarted.
    """

    def __init__(
        self,
        initial_ms: int,
        max_ms: int,
        factor: float,
        reset_ms: int,
        jitter: float,
        attempts: int | None,
        transient_only: bool,
        rng: random.Random,
    ) -> None:
        self._initial_ms = initial_ms
        self._max_ms = max_ms
        self._factor = factor
        self._reset_ms = reset_ms
        self._jitter = jitter
        self._attempts = attempts
        self._transient_only = transient_only
        self._rng = rng
        self._next_ms = float(initial_ms)
        self._made = 0
        self._running_since_ms: int | None = None

    def delay_ms(self, now_ms: int, error: BaseException) -> int | None:
        """The next wait."""
        if self._transient_only and not may_pass(error):
            return None
        if self._running_since_ms is not None and now_ms - self._running_since_ms >= self._reset_ms:
            self._next_ms, self._made = float(self._initial_ms), 0
        if self._attempts is not None and self._made >= self._attempts:
            return None
        self._made += 1
        wait_ms = self._next_ms
        self._next_ms = min(self._next_ms * self._factor, float(self._max_ms))
        wait_ms += wait_ms * self._jitter * self._rng.uniform(-1, 1)
        waited = max(0, min(int(wait_ms), self._max_ms))
        self._running_since_ms = now_ms + waited
        return waited


def may_pass(error: BaseException) -> bool:
    """Whether a failure may be gone when the same rows come again.

    A row that breaks a rule of SQL, a plan that does not fit or a bug of ours does so each time. The outside world
    may come back, and a user's function may have met it too.
    """
    if isinstance(error, ConnectorError):
        return error.retryable
    if isinstance(error, ExecutionError):
        return error.code in ("user-function", "checkpoint-failed", "spill-failed")
    return not isinstance(error, FlowSqlError)


def strategy_of(configuration: Configuration, checkpoints: bool, rng: random.Random) -> RestartStrategy:
    """The strategy of a job.

    Args:
        checkpoints: whether the job takes them, which decides what no value means.

    Raises:
        BindError: a value that is out of range.
    """
    named = configuration.text(TYPE.key)
    kind = configuration.get(TYPE)
    if named is None:
        kind = StrategyKind.EXPONENTIAL_DELAY if checkpoints else StrategyKind.NONE
    match kind:
        case StrategyKind.NONE:
            return NoRestart()
        case StrategyKind.FIXED_DELAY:
            return FixedDelay(configuration.get(FIXED_ATTEMPTS), configuration.get(FIXED_DELAY_MS))
        case StrategyKind.FAILURE_RATE:
            return FailureRate(
                configuration.get(RATE_FAILURES), configuration.get(RATE_INTERVAL_MS), configuration.get(RATE_DELAY_MS)
            )
        case StrategyKind.EXPONENTIAL_DELAY:
            factor, jitter = configuration.get(EXPONENTIAL_FACTOR), configuration.get(EXPONENTIAL_JITTER)
            if factor < 1:
                raise _out_of_range(EXPONENTIAL_FACTOR.key, factor, "at least 1.0")
            if not 0 <= jitter <= 1:
                raise _out_of_range(EXPONENTIAL_JITTER.key, jitter, "from 0.0 to 1.0")
            return ExponentialDelay(
                configuration.get(EXPONENTIAL_INITIAL_MS),
                configuration.get(EXPONENTIAL_MAX_MS),
                factor,
                configuration.get(EXPONENTIAL_RESET_MS),
                jitter,
                configuration.get(EXPONENTIAL_ATTEMPTS),
                transient_only=named is None,
                rng=rng,
            )
        case _:
            assert_never(kind)


def _out_of_range(key: str, value: object, right: str) -> BindError:
    return BindError("invalid-option-value", f"Could not parse value '{value}' for key '{key}'.", hint=right)
