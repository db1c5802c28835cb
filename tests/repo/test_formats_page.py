"""The page of formats is what the formats say of themselves."""

from __future__ import annotations

import importlib.util

from .packages import ROOT


def test_page_of_formats_is_current() -> None:
    spec = importlib.util.spec_from_file_location("make_formats", ROOT / "docs" / "make_formats.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert module.PAGE.read_text() == module.render(), "run: python docs/make_formats.py"
