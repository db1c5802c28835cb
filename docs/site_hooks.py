"""What mkdocs does beside its own: examples become pages of the site, and tables look as they do on GitHub."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
#: Their languages, by the ends of their names.
LANGUAGES = {".py": "python", ".sql": "sql"}
#: A link that leaves the folder of the documents for an example.
_LINK = re.compile(r"\]\((?P<up>(?:\.\./)+)examples/(?P<path>[\w./]+)\)")

_CELL = re.compile(r"<td.*?</td>", re.DOTALL)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add a page for each example."""
    from mkdocs.structure.files import File

    for path in sorted(EXAMPLES.rglob("*")):
        if path.suffix in LANGUAGES:
            name = path.relative_to(EXAMPLES).as_posix()
            content = f"# examples/{name}\n\n```{LANGUAGES[path.suffix]}\n{path.read_text(encoding='utf-8')}```\n"
            files.append(File.generated(config, f"examples/{name}.md", content=content))
    return files


def on_page_markdown(markdown: str, *, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Let links to examples lead to their pages."""
    return _LINK.sub(lambda link: f"]({link['up'][len('../') :]}examples/{link['path']}.md)", markdown)


def on_page_content(html: str, *, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Take the backslash from bars in code of tables, where GitHub needs it and shows none."""
    return _CELL.sub(lambda cell: cell[0].replace("\\|", "|"), html)
