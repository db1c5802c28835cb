"""``PlanReference``: where a compiled plan stands."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from flowsql.common.public_api import public_api
from flowsql.common.refused import Refused
from flowsql_core.errors import NotSupportedYetError


@public_api
class PlanReference:
    """A file or a text with a compiled plan."""

    def __init__(self, content: str | Path) -> None:
        self._content = content

    @staticmethod
    def from_file(path: str | Path) -> FilePlanReference:
        """A plan in a file."""
        return FilePlanReference(Path(path))

    @staticmethod
    def from_json_string(json_string: str) -> JsonContentPlanReference:
        """A plan as text."""
        return JsonContentPlanReference(json_string)

    @staticmethod
    def from_smile_bytes(smile_bytes: bytes) -> PlanReference:
        """Not there: plans are JSON."""
        raise NotSupportedYetError("PlanReference.from_smile_bytes", hint="plans are JSON: from_json_string(text)")

    def read(self) -> Any:
        """The plan; BindError when there is none."""
        raise NotImplementedError

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and isinstance(other, PlanReference) and self._content == other._content

    def __hash__(self) -> int:
        return hash((type(self), self._content))

    def __str__(self) -> str:
        return f"{type(self).__name__}({self._content})"


class FilePlanReference(PlanReference):
    """A plan in a file."""

    def get_file(self) -> Path:
        """The file."""
        return Path(self._content)

    def read(self) -> Any:
        """The plan of the file."""
        from flowsql.table.session.plan_files import load_plan

        return load_plan(str(self._content), None)


class JsonContentPlanReference(PlanReference):
    """A plan as text."""

    def get_content(self) -> str:
        """The text."""
        return str(self._content)

    def read(self) -> Any:
        """The plan of the text."""
        from flowsql_planner.compiled_plan import read_plan

        return read_plan(str(self._content))


class BytesContentPlanReference(metaclass=Refused, construct="plans in Smile", hint="plans are JSON"):
    """A plan as bytes of the binary JSON that Java knows."""
