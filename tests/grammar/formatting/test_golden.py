from __future__ import annotations

import pytest

from flowsql_grammar.formatting import format_script

from .golden_files import Case, cases, write


@pytest.mark.parametrize("case", cases(), ids=lambda case: f"{case.file.stem}: {case.title}")
def test_layout(case: Case, request: pytest.FixtureRequest) -> None:
    made = format_script(case.input, case.width)
    if request.config.getoption("--update") and made != case.output:
        write(case, made)
        return
    assert made == case.output, "pytest --update writes what is made now: review the diff"
    assert format_script(made, case.width) == made
