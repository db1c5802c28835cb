"""Restart strategies under PyFlink's names. Without checkpoints a job is never restarted."""

from __future__ import annotations

import datetime

from flowsql_core.errors import NotSupportedYetError


class RestartStrategyConfiguration:
    """What happens to a failed job."""

    def get_description(self) -> str:
        """In words."""
        raise NotImplementedError(type(self).__name__)


class RestartStrategies:
    """Makes strategies."""

    class NoRestartStrategyConfiguration(RestartStrategyConfiguration):
        """A failed job stays failed."""

        def get_description(self) -> str:
            """In words."""
            return "Restart deactivated."

    @staticmethod
    def no_restart() -> RestartStrategies.NoRestartStrategyConfiguration:
        """A failed job stays failed."""
        return RestartStrategies.NoRestartStrategyConfiguration()

    @staticmethod
    def fall_back_restart() -> RestartStrategies.NoRestartStrategyConfiguration:
        """What the cluster does: a failed job stays failed."""
        return RestartStrategies.NoRestartStrategyConfiguration()

    @staticmethod
    def fixed_delay_restart(
        restart_attempts: int, delay_between_attempts: int | datetime.timedelta
    ) -> RestartStrategyConfiguration:
        """Refused: nothing restarts jobs yet."""
        raise NotSupportedYetError("restarting failed jobs")

    @staticmethod
    def failure_rate_restart(
        failure_rate: int, failure_interval: int, delay_interval: int
    ) -> RestartStrategyConfiguration:
        """Refused: nothing restarts jobs yet."""
        raise NotSupportedYetError("restarting failed jobs")
