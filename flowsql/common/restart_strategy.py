"""Restart strategies under PyFlink's names: what the options ``restart-strategy.*`` say, as objects."""

from __future__ import annotations

import datetime
from collections.abc import Mapping

_TYPE = "restart-strategy.type"


class RestartStrategyConfiguration:
    """What happens to a failed job. ``options``: what choosing the strategy sets; empty for that of the cluster."""

    def __init__(self, options: Mapping[str, str], description: str) -> None:
        self.options = dict(options)
        self._description = description

    def get_description(self) -> str:
        """In words."""
        return self._description

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and getattr(other, "options", None) == self.options

    def __hash__(self) -> int:
        return hash(tuple(sorted(self.options.items())))


class RestartStrategies:
    """Makes strategies for ``StreamExecutionEnvironment.set_restart_strategy``."""

    class NoRestartStrategyConfiguration(RestartStrategyConfiguration):
        """A failed job stays failed."""

        def __init__(self) -> None:
            super().__init__({_TYPE: "none"}, "Restart deactivated.")

    class FallbackRestartStrategyConfiguration(RestartStrategyConfiguration):
        """What the configuration says; without checkpoints a failed job stays failed."""

        def __init__(self) -> None:
            super().__init__({}, "Cluster level default restart strategy")

    class FixedDelayRestartStrategyConfiguration(RestartStrategyConfiguration):
        """So many restarts, the same wait before each.

        Args:
            restart_attempts: restarts before the job fails.
            delay_between_attempts_interval: the wait, a timedelta or milliseconds.
        """

        def __init__(self, restart_attempts: int, delay_between_attempts_interval: int | datetime.timedelta) -> None:
            self._attempts = restart_attempts
            self._delay = _interval(delay_between_attempts_interval, "delay_between_attempts_interval")
            prefix = "restart-strategy.fixed-delay"
            options = {
                _TYPE: "fixed-delay",
                f"{prefix}.attempts": str(restart_attempts),
                f"{prefix}.delay": _text(self._delay),
            }
            super().__init__(
                options, f"Restart with fixed delay ({_text(self._delay)}). #{restart_attempts} restart attempts."
            )

        def get_restart_attempts(self) -> int:
            """Restarts before the job fails."""
            return self._attempts

        def get_delay_between_attempts_interval(self) -> datetime.timedelta:
            """The wait before each."""
            return self._delay

    class FailureRateRestartStrategyConfiguration(RestartStrategyConfiguration):
        """Restarts as long as failures do not come too fast.

        Args:
            max_failure_rate: failures in an interval that are still followed by a restart.
            failure_interval: the interval, a timedelta or milliseconds.
            delay_between_attempts_interval: the wait before each restart.
        """

        def __init__(
            self,
            max_failure_rate: int,
            failure_interval: int | datetime.timedelta,
            delay_between_attempts_interval: int | datetime.timedelta,
        ) -> None:
            self._rate = max_failure_rate
            self._interval = _interval(failure_interval, "failure_interval")
            self._delay = _interval(delay_between_attempts_interval, "delay_between_attempts_interval")
            prefix = "restart-strategy.failure-rate"
            options = {
                _TYPE: "failure-rate",
                f"{prefix}.max-failures-per-interval": str(max_failure_rate),
                f"{prefix}.failure-rate-interval": _text(self._interval),
                f"{prefix}.delay": _text(self._delay),
            }
            super().__init__(
                options,
                f"Failure rate restart with maximum of {max_failure_rate} failures within interval "
                f"{_text(self._interval)} and fixed delay {_text(self._delay)}.",
            )

        def get_max_failure_rate(self) -> int:
            """Failures in an interval that are still followed by a restart."""
            return self._rate

        def get_failure_interval(self) -> datetime.timedelta:
            """The interval."""
            return self._interval

        def get_delay_between_attempts_interval(self) -> datetime.timedelta:
            """The wait before each restart."""
            return self._delay

    @staticmethod
    def no_restart() -> NoRestartStrategyConfiguration:
        """A failed job stays failed."""
        return RestartStrategies.NoRestartStrategyConfiguration()

    @staticmethod
    def fall_back_restart() -> FallbackRestartStrategyConfiguration:
        """What the configuration says."""
        return RestartStrategies.FallbackRestartStrategyConfiguration()

    @staticmethod
    def fixed_delay_restart(
        restart_attempts: int, delay_between_attempts: int | datetime.timedelta
    ) -> FixedDelayRestartStrategyConfiguration:
        """So many restarts, the same wait (a timedelta or milliseconds) before each."""
        return RestartStrategies.FixedDelayRestartStrategyConfiguration(restart_attempts, delay_between_attempts)

    @staticmethod
    def failure_rate_restart(
        failure_rate: int, failure_interval: int | datetime.timedelta, delay_interval: int | datetime.timedelta
    ) -> FailureRateRestartStrategyConfiguration:
        """Restarts as long as an interval sees no more than so many failures; times as timedelta or milliseconds."""
        return RestartStrategies.FailureRateRestartStrategyConfiguration(failure_rate, failure_interval, delay_interval)


def _interval(value: object, name: str) -> datetime.timedelta:
    if isinstance(value, datetime.timedelta):
        return value
    if isinstance(value, int):
        return datetime.timedelta(milliseconds=value)
    raise TypeError(
        f"The parameter '{name}' only supports integer and datetime.timedelta, current input type is {type(value)}."
    )


def _text(interval: datetime.timedelta) -> str:
    return f"{interval // datetime.timedelta(milliseconds=1)} ms"
