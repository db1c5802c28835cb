"""The forms in which lineage is told, by the names under which the command and programs ask for them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from flowsql_core.errors import BindError
from flowsql_planner.lineage.mermaid import lineage_mermaid
from flowsql_planner.lineage.model import Lineage
from flowsql_planner.lineage.openlineage import lineage_json
from flowsql_planner.lineage.text import lineage_text

_FORMATS: Final[Mapping[str, Callable[[Sequence[Lineage]], str]]] = {
    "text": lineage_text,
    "json": lineage_json,
    "mermaid": lineage_mermaid,
}


def render_lineage(found: Sequence[Lineage], form: str) -> str:
    """Lineage in a form: ``text``, ``json`` or ``mermaid``.

    Raises:
        BindError: there is no such form.
    """
    render = _FORMATS.get(form)
    if render is None:
        raise BindError("lineage-format", f"Lineage has no format '{form}'.", hint=f"one of {', '.join(_FORMATS)}")
    return render(found)
