"""Write down the forms of statements, as the grammar has them: ``python docs/make_statements.py``. Needs lark."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from flowsql_grammar.build_tables import grammar_text

PAGE = Path(__file__).resolve().parent / "reference" / "statements.md"

#: Rules that readers know by their names: they are not taken apart.
KNOWN = {
    "path": "name",  # of up to three parts
    "_path": "name",
    "name": "name",
    "string": "'text'",
    "comment": "'text'",
    "file_name": "'file'",
    "number": "number",
    "expr": "expression",
    "additive": "expression",
    "niladic": "call",
    "limit_count": "number",
    "interval": "interval",
    "string_literal": "'text'",
    "query_statement": "query",
    "type": "type",
    "null_type": "type",
    "literal_value": "literal",
    "interval_literal": "interval",
    "timestamp_literal": "timestamp",
    "plain_call": "call",
    "query": "query",
    "q_np": "query",
}
_INTRODUCTION = """# Statements

Written by `docs/make_statements.py` from the grammar. Words in capitals are keywords; `[A]` may be left out, `A | B` is
one of both, braces keep together, `A, ...` repeats with commas between, `A ...` without. Words in small letters are
parts, which have sections of their own below, but for `name` (of up to three parts: catalog, database, object),
`'text'`, `number`, `literal`, `interval`, `timestamp`, `type` ([types.md](../types.md)), `expression` and `call`
([functions.md](../functions.md)). This is what can be read; what runs says [sql.md](../sql.md).
"""


class Forms:
    """The rules of the grammar as text."""

    def __init__(self) -> None:
        from lark.load_grammar import GrammarBuilder

        builder = GrammarBuilder()
        builder.load_grammar(grammar_text(), "sql")
        self._rules = builder._definitions
        self._open: list[str] = []
        #: Parts that need a section of their own, in the order of their first use.
        self.parts: dict[str, None] = {}

    def alternatives(self, rule: str) -> list[str]:
        """The forms of a rule, each as a line."""
        return list(dict.fromkeys(filter(None, (self._text(node) for node in self._rules[rule].tree.children))))

    def _text(self, node: Any) -> str:
        match getattr(node, "data", None):
            case "expansions":
                return self._one_of([self._text(child) for child in node.children])
            case "expansion":
                return " ".join(filter(None, map(self._text, node.children))).replace(" , ", ", ")
            case "alias" | "value":
                return self._text(node.children[0])
            case "literal":
                return str(node.children[0])[1:-1]
            case "expr":
                return self._repeated(self._text(node.children[0]), str(node.children[1]))
            case None:
                return self._named(node.name)
        raise AssertionError(f"the grammar has a form that has no text: {node}")

    def _is_short(self, rule: str) -> bool:
        """Whether a part is rather written where it is used: one form of a few words."""
        forms = self._rules[rule].tree.children
        return len(forms) == 1 and len(list(forms[0].find_data("value"))) <= 4

    @staticmethod
    def _one_of(forms: list[str]) -> str:
        shown = list(dict.fromkeys(filter(None, forms)))
        if shown[1:] == [f"..., {shown[0]}"]:
            shown = [f"{_grouped(shown[0])}, ..."]
        text = " | ".join(shown)
        if "" in forms:
            return f"[{text}]" if text else ""
        return f"{{{text}}}" if len(shown) > 1 else text

    @staticmethod
    def _repeated(inner: str, operator: str) -> str:
        if operator == "?":
            return f"[{_bare(inner)}]"
        if inner.startswith(", "):
            return ", ..."
        return f"[{_bare(inner)} ...]" if operator == "*" else f"{inner} ..."

    def _named(self, name: str) -> str:
        if name in KNOWN:
            return KNOWN[name]
        if name.isupper():
            return {"WHOLE_NUMBER": "number", "QUOTED_STRING": "'text'"}.get(name, name.replace("_", " "))
        if name.split("_")[0] in ("", "opt", "list", "flag", "words") or self._is_short(name):
            if name in self._open:  # a list that is written as what stands in front of its last item
                return "..."
            self._open.append(name)
            text = self._text(self._rules[name].tree)
            self._open.pop()
            return text
        self.parts[name] = None
        return name


def _grouped(text: str) -> str:
    """In braces, where it is several forms."""
    return f"{{{text}}}" if " | " in text and not text.startswith("{") else text


def _bare(text: str) -> str:
    """Without braces that stand around all of it."""
    return text[1:-1] if text.startswith("{") and text.find("}") == len(text) - 1 else text


def render() -> str:
    """The page of statements."""
    forms = Forms()
    lines = [_INTRODUCTION, "## statement\n", _block(forms.alternatives("statement"))]
    forms.parts["q_np"] = None  # what a query is made of
    done = {"statement"}
    while waiting := [name for name in forms.parts if name not in done]:
        for name in waiting:
            done.add(name)
            title = "query" if name == "q_np" else name
            lines.append(f"## {title}\n")
            lines.append(_block(forms.alternatives(name)))
    return "\n".join(lines)


def _block(alternatives: list[str]) -> str:
    return "```bnf\n" + "\n".join(alternatives) + "\n```\n"


if __name__ == "__main__":
    PAGE.write_text(render(), encoding="utf-8")
