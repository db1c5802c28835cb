"""Names, numbers and strings. Contents are checked here: a broken escape is an error of the text, with a place."""

from __future__ import annotations

import re

from flowsql_core.errors import ParseError
from flowsql_core.span import Span
from flowsql_grammar import ast
from flowsql_grammar.lexer import Token

# What may stand in E'...': C's escapes, and the doubled quote.
_C_ESCAPE = r"(?s)''|\\(?:x([0-9a-fA-F]{1,2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([0-7]{1,3})|(.))"
_C_LETTERS = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}


def _bad(code: str, message: str, span: Span) -> ParseError:
    return ParseError(code, "SQL parse failed. " + message, span)


class LiteralBuilder:
    """Methods of the rules of names and literals."""

    def name(self, span: Span, token: Token | ast.Name) -> ast.Name:
        """A plain name, or one of the words that are not reserved."""
        return ast.Name(token.text, span=span)

    def quoted_name(self, span: Span, token: Token) -> ast.Name:
        """A name between back-ticks, of which two stand for one."""
        return ast.Name(token.text[1:-1].replace("``", "`"), quoted=True, span=span)

    def non_reserved(self, span: Span, token: Token) -> ast.Name:
        """A keyword used as a name."""
        return ast.Name(token.text, span=span)

    def reserved_function(self, span: Span, token: Token) -> ast.Identifier:
        """A reserved word used as the name of a function."""
        return ast.Identifier((ast.Name(token.text, span=span),), span=span)

    def path(self, span: Span, *parts: ast.Name) -> ast.Identifier:
        """Names with dots between."""
        return ast.Identifier(parts, span=span)

    def file_name(self, span: Span, text: str) -> ast.FileName:
        """A file where the name of a table may stand."""
        return ast.FileName((ast.Name(text, span=span, quoted=True),), span=span)

    def number(self, span: Span, token: Token) -> ast.NumberLiteral:
        """A number as written."""
        return ast.NumberLiteral(token.text, span=span)

    def signed_number(self, span: Span, sign: Token, number: ast.NumberLiteral) -> ast.NumberLiteral:
        """A number of a partition, where no expression may stand."""
        return ast.NumberLiteral(("-" if sign.text == "-" else "") + number.text, span=span)

    def string(self, span: Span, *children: Token | str | None) -> str:
        """The content of a string where only a string may stand."""
        return self.string_literal(span, *children).value

    def comment(self, span: Span, token: Token) -> str:
        """A comment: one plain string."""
        return token.text[1:-1].replace("''", "'")

    def string_literal(self, span: Span, *children: Token | str | None) -> ast.StringLiteral:
        """Adjacent pieces joined; the last child is the Token of UESCAPE or None."""
        *pieces, escape = children
        value, charset = "", None
        for piece in pieces:
            assert isinstance(piece, Token)
            text = piece.text
            quote = text.index("'")
            content = text[quote + 1 : -1].replace("''", "'")
            prefix = text[:quote]
            if prefix.startswith("_"):
                charset = prefix[1:].upper()
            elif prefix in ("N", "n"):
                charset = "ISO-8859-1"
                if not all(character < "\u0100" for character in content):
                    message = f"Failed to encode '{content}' in character set 'ISO-8859-1'"
                    raise _bad("bad-character-set", message, piece.span)
            elif prefix in ("E", "e"):
                content = re.sub(_C_ESCAPE, _c_escape, text[quote + 1 : -1])
            elif prefix:
                content = self._unescape(content, piece, escape if isinstance(escape, Token) else None)
                charset = "UTF16"
            value += content
        if isinstance(escape, Token) and charset != "UTF16":
            raise _bad("bad-unicode-escape", "UESCAPE belongs behind U&'...' only.", escape.span)
        return ast.StringLiteral(value, charset, span=span)

    def _unescape(self, content: str, token: Token, escape: Token | None) -> str:
        mark = "\\"
        if escape is not None:
            mark = escape.text[1:-1].replace("''", "'")
            if len(mark) != 1 or mark in "0123456789abcdefABCDEF+'\" \t\n":
                raise _bad("bad-unicode-escape", f"UESCAPE '{mark}' is not a usable escape character.", escape.span)
        out, at = [], 0
        while at < len(content):
            if content[at] != mark:
                out.append(content[at])
                at += 1
            elif content[at + 1 : at + 2] == mark:
                out.append(mark)
                at += 2
            # Java's number may have a sign: four places all the same.
            elif re.fullmatch(r"[+0-9a-fA-F][0-9a-fA-F]{3}", digits := content[at + 1 : at + 5]):
                out.append(chr(int(digits, 16)))
                at += 5
            else:
                raise _bad("bad-unicode-escape", f"'{mark}' is not followed by 4 hexadecimal digits.", token.span)
        try:
            return "".join(out).encode("utf-16-le", "surrogatepass").decode("utf-16-le")
        except UnicodeDecodeError:
            raise _bad("bad-unicode-escape", "Half of a surrogate pair stands alone.", token.span) from None

    def binary_literal(self, span: Span, token: Token) -> ast.BinaryLiteral:
        """``X'0F'``."""
        digits = token.text[2:-1]
        if not re.fullmatch("[0-9a-fA-F]*", digits):
            raise _bad("bad-binary-literal", f"Binary literal '{digits}' holds other than hexadecimal digits.", span)
        if len(digits) % 2:
            raise _bad("bad-binary-literal", "Binary literal string must contain an even number of hexits.", span)
        return ast.BinaryLiteral(bytes.fromhex(digits), span=span)

    def true_literal(self, span: Span) -> ast.BooleanLiteral:
        """TRUE."""
        return ast.BooleanLiteral(True, span=span)

    def false_literal(self, span: Span) -> ast.BooleanLiteral:
        """FALSE."""
        return ast.BooleanLiteral(False, span=span)

    def unknown_literal(self, span: Span) -> ast.BooleanLiteral:
        """UNKNOWN."""
        return ast.BooleanLiteral(None, span=span)

    def null_literal(self, span: Span) -> ast.NullLiteral:
        """NULL."""
        return ast.NullLiteral(span=span)

    def decimal_literal(self, span: Span, text: str) -> ast.NumberLiteral | ast.UnaryOp:
        """``DECIMAL '1.5'``: the number itself."""
        found = re.fullmatch(r"\s*([+-]?)(\d+\.?\d*|\.\d+)\s*", text)
        if found is None:
            raise _bad("bad-literal", f"Literal '{text}' can not be parsed to type 'DECIMAL'.", span)
        number = ast.NumberLiteral(found[2], span=span)
        return ast.UnaryOp(ast.UnaryOperator.MINUS, number, span=span) if found[1] == "-" else number

    def one_precision(self, span: Span, token: Token) -> tuple[int, ...]:
        """``(p)``."""
        return (int(token.text),)

    def two_precisions(self, span: Span, first: Token, second: Token) -> tuple[int, ...]:
        """``(p, s)``."""
        return int(first.text), int(second.text)


def _c_escape(found: re.Match[str]) -> str:
    if found.group() == "''":
        return "'"
    hexadecimal = found[1] or found[2] or found[3]
    if hexadecimal:
        return chr(min(int(hexadecimal, 16), 0x10FFFF))
    return chr(int(found[4], 8)) if found[4] else _C_LETTERS.get(found[5], found[5])
