"""What stands in the place of PyFlink's handles on Java objects: a sentence."""

from __future__ import annotations


class WithoutJava:
    """Refuses PyFlink's handles on Java objects, in one sentence."""

    def __getattr__(self, name: str) -> object:
        if name.startswith(("_j_", "get_j_", "get_java_")):
            raise AttributeError(f"'{name}' does not exist: there is no JVM behind FlowSQL, functions are Python's")
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")
