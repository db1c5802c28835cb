"""What happens to a run when one of its processes dies: its test has failed, and the others go on to the end."""

from __future__ import annotations

from typing import Any

from xdist.scheduler import LoadGroupScheduling


class EndingScheduling(LoadGroupScheduling):
    """Hands a dead process's tests to the others.

    A process runs a test only once it knows of the next one. xdist's own scheduling puts what a dead process has done
    back into the queue; who is given such a unit, without a test to run, waits for ever.
    """

    def remove_node(self, node: Any) -> str | None:
        """Take a process off; the test that it died in, which is not run again, or None."""
        units = self.assigned_work.pop(node)
        left = [(scope, [test for test, done in unit.items() if not done]) for scope, unit in units.items()]
        crashed = next((tests.pop(0) for _, tests in left if tests), None)
        self.workqueue.update({scope: dict.fromkeys(tests, False) for scope, tests in left if tests})
        for other in self.assigned_work:
            self._reschedule(other)
        return crashed

    def _reschedule(self, node: Any) -> None:
        # A process that has not told its tests yet is given some when it does.
        if node not in self.registered_collections:
            return
        super()._reschedule(node)
        # The process that takes a dead one's place begins with two units, as the first ones do.
        if self.workqueue and not node.shutting_down and self._pending_of(self.assigned_work[node]) < 2:
            super()._reschedule(node)
