"""Turns a syntax error of the parser into a problem with a message and a hint for the user."""

from __future__ import annotations

import re
from string import ascii_letters

from lark import Token, UnexpectedCharacters, UnexpectedInput, UnexpectedToken

from tallybook.errors import Problem
from tallybook.expressions.elsewhere import dotted_hint
from tallybook.expressions.tree import Span
from tallybook.source import SourceText

Finding = tuple[str, str | None]
"""A message and a hint."""

_QUOTES = "use straight quotes: \"text\" or 'text'"
_SELECTOR = "write a named selector as {{NAME}}"
_MINUS = "write the minus as a hyphen: a - b"
_CHOICES = 'put the choices of IN in parentheses: IN ("a", "b")'
_PLAIN_NUMBER = "write numbers with digits and a decimal point only: 1000.50"
_POWER = "there is no power operator; write POWER(x, 2)"
_CHARACTERS: dict[str, str] = {
    "&&": "combine conditions with AND",
    "||": "combine conditions with OR; join text with CONCAT(a, b)",
    "&": "join text with CONCAT(a, b); combine conditions with AND",
    "|": "combine conditions with OR",
    "^": _POWER,
    "!": "write NOT condition, or <> for 'not equal'",
    "~": "write NOT condition",
    ";": "separate arguments with a comma",
    "[": "write columns as table.column, and names with spaces in backquotes: `Order Amount`",
    "{": _SELECTOR,
    "}": _SELECTOR,
    "“": _QUOTES,
    "”": _QUOTES,
    "„": _QUOTES,
    "‘": _QUOTES,
    "’": _QUOTES,
    ".": "write a digit before the decimal point: 0.5",
    "::": "convert with TO_STRING(…), TO_INTEGER(…), TO_DECIMAL(…) or TO_DATE(…)",
    "−": _MINUS,
    "–": _MINUS,
    "—": _MINUS,
    "×": "multiply with *",
    "÷": "divide with /",
    "#": "for a missing value write NULL",
    "$": _PLAIN_NUMBER,
    "€": _PLAIN_NUMBER,
    "£": _PLAIN_NUMBER,
    "\\": 'use a backslash only inside quotes: "a \\" b"',
}
_KEYWORDS = {"or", "and", "not", "in", "between", "like", "is", "null", "true", "false"}
_CHOICE = "use IF(condition, value, otherwise) or SWITCH(subject, value, result, …)"
_WORDS = {
    **dict.fromkeys(("CASE", "WHEN", "THEN", "ELSE", "ELSEIF", "END"), _CHOICE),
    "AS": "convert with TO_STRING(…), TO_INTEGER(…), TO_DECIMAL(…) or TO_DATE(…)",
    "DISTINCT": "write COUNT_DISTINCT(value)",
    "DIV": "write TRUNC(a / b)",
    "FILTER": "write SUM_IF(value, condition), AVG_IF(value, condition) or COUNT_IF(condition)",
    "FROM": "write YEAR(date), QUARTER(date), MONTH(date), WEEK(date) or DAY(date)",
    "ILIKE": 'write UPPER(text) LIKE "A%"',
    "OVER": "OVER follows an aggregate function: SUM(amount) OVER (region)",
    "REGEXP": 'write MATCHES(text, "pattern")',
    "RLIKE": 'write MATCHES(text, "pattern")',
    "WITHIN": 'write STRING_AGG(text, "separator", order) or MEDIAN(value)',
}
"""Hints for words of other languages."""
_VALUE = ("NAME", "QUOTED", "INTEGER", "DECIMAL", "STRING", "SELECTOR", "_TRUE", "_FALSE", "_NULL", "LPAR")
_TEXTS = re.compile(r"\"(?:[^\"\\]|\\.|\"\")*(?:\"|\Z)|'(?:[^'\\]|\\.|'')*(?:'|\Z)|`(?:[^`]|``)*(?:`|\Z)", re.DOTALL)


_OVER_COLUMNS = "OVER takes columns: OVER (region, product); compute other values with an update first"
_AFTER_OVER = (
    (re.compile(r"\bOVER\s*\(\s*PARTITION$", re.IGNORECASE), "write the columns alone: OVER (region)"),
    (
        re.compile(r"\bOVER\s*\([^()]*ORDER$", re.IGNORECASE),
        "OVER takes only columns to group by; for a value of an earlier period join a source with `period`",
    ),
    (re.compile(r"\bOVER$", re.IGNORECASE), "put the columns of OVER in parentheses: OVER (region)"),
    (
        re.compile(r"\bOVER\s*\([^()]*$", re.IGNORECASE),
        _OVER_COLUMNS,
    ),
)
"""Hints for what follows OVER, by the text before the mistake."""


def syntax_problem(error: UnexpectedInput, source: SourceText) -> Problem:
    """Returns the problem for a syntax error of the parser."""
    text = source.text
    if isinstance(error, UnexpectedCharacters):
        start, length = error.pos_in_stream or 0, 1
        message, hint = _character(text, start)
    elif isinstance(error, UnexpectedToken) and error.token.type != "$END":
        start, length = error.token.start_pos or 0, len(error.token)
        message, hint = _token(error.token, text, start)
    else:
        start, length, message, hint = _end(text)
    return Problem("ExpressionParseError", message, hint, Span(source, start, start + length).place)


def _character(text: str, at: int) -> Finding:
    char = text[at]
    if char in "\"'":
        return "this quote is never closed", f"end the text with the same quote: {char}text{char}"
    if char == "`":
        return "this backquote is never closed", "end the column name with a backquote: `Order Amount`"
    if char == "[" and re.search(r"\bIN\s*$", text[:at], re.IGNORECASE):
        return "'[' is not expected here", _CHOICES
    if text.startswith("{{", at):
        return "unmatched '{{'", _SELECTOR
    return f"'{char}' is not expected here", _CHARACTERS.get(text[at : at + 2]) or _CHARACTERS.get(char)


def _end(text: str) -> tuple[int, int, str, str | None]:
    """Describes an expression that ends too early: start, length, message and hint."""
    end = len(text.rstrip())
    last = _last_word(text[:end])
    at = end - len(last)
    if _AFTER_PERCENT.search(text[:end]):
        return at, 1, "a value is missing after '%'", _PERCENT
    pairs = re.findall(r"\b(?:BETWEEN|AND)\b", text, re.IGNORECASE)
    if pairs and pairs[-1].upper() == "BETWEEN" != last.upper():
        return max(0, end - 1), 1, "BETWEEN needs a second value", "write value BETWEEN low AND high"
    if last in ("+", "-", "*", "/", "%", "=", "==", "<>", "!=", "<", "<=", ">", ">=", ",") or last.lower() in _KEYWORDS:
        return at, len(last), f"the expression ends after '{last}'", "add what is missing after it, or remove it"
    opened = _unclosed(text)
    if opened:
        more = "" if len(opened) == 1 else f" (and {len(opened) - 1} more)"
        return opened[-1], 1, f"this parenthesis is never closed{more}", "add the missing )"
    return max(0, end - 1), 1, "the expression is incomplete", None


_AFTER_PERCENT = re.compile(r"[0-9]\s*%$")
_PERCENT = "% computes the remainder of a division; for ten percent write 0.10"


def _last_word(text: str) -> str:
    """Returns the last word or symbols of a text. Reads backwards: a search would restart at every character."""
    word = re.match(r"\w+|[^\w\s]+", text[::-1])
    return word[0][::-1] if word else ""


def _unclosed(text: str) -> list[int]:
    """Returns the positions of parentheses that are never closed, ignoring quoted text."""
    bare = _TEXTS.sub(lambda quoted: " " * len(quoted[0]), text)
    opened: list[int] = []
    for at, char in enumerate(bare):
        if char == "(":
            opened.append(at)
        elif char == ")" and opened:
            opened.pop()
    return opened


def _token(token: Token, text: str, start: int) -> Finding:
    before = text[:start].rstrip()
    word = _word(token)
    if token.type == "COMPARISON" and not before:
        return f"an expression cannot begin with '{token}'", f"remove the '{token}'"
    if _wants_value(before):
        return f"a value is missing before '{word}'", _missing_hint(token, before)
    if word.lower() in _KEYWORDS:
        return f"the word {word.upper()} is not expected here", _keyword_hint(word, before)
    return f"'{word}' is not expected here", _token_hint(token, before)


def _word(token: Token) -> str:
    """Returns the text of a token without the parenthesis that belongs to some of them."""
    return token.rstrip("( \t\r\n") or str(token)


def _dotted(token: Token, before: str) -> str | None:
    """Returns the hint for a spreadsheet function with a dot in its name, such as STDEV.S."""
    name = before[len(before.rstrip(f"{ascii_letters}_.")) :]
    return dotted_hint(name.upper()) if "." in name and token == "(" else None


def _wants_value(before: str) -> bool:
    """True if a value must follow the text."""
    ends_open = not before or before[-1] in "(,+-*/%=<>"
    return ends_open or bool(re.search(r"\b(?:AND|OR|NOT|LIKE|BETWEEN)$", before, re.IGNORECASE))


def _missing_hint(token: Token, before: str) -> str | None:
    if token.type == "COMPARISON" and before.endswith("="):
        return f"write {token}=" if token in ("<", ">") else "write a single =, as in a = b"
    if token == ")" and before.endswith(","):
        return "remove the extra comma"
    if _AFTER_PERCENT.search(before):
        return _PERCENT
    if token.type == "STAR":
        return _POWER if before.endswith("*") else "only COUNT(*) takes a star"
    if re.search(r"\bOVER\s*\([^()]*$", before, re.IGNORECASE):
        return _OVER_COLUMNS
    return _CHARACTERS["."] if token == "." else _INFIX.get(token.rstrip("( \t\r\n").upper())


_INFIX = {
    "IN": 'write the value first: region IN ("EMEA", "APAC")',
    "LIKE": 'write the value first: name LIKE "A%"',
    "BETWEEN": "write the value first: amount BETWEEN 1 AND 10",
}
"""Hints for words that stand between values, where they are written like functions."""


def _keyword_hint(word: str, before: str) -> str:
    if re.search(r"\bIS$", before, re.IGNORECASE):
        return "write IS NULL or IS NOT NULL; compare other values with ="
    if word.lower() == "is":
        return "write value IS NULL, or value IS NOT NULL"
    return "combine conditions with AND or OR; put a column of that name in backquotes"


def _token_hint(token: Token, before: str) -> str | None:
    if re.search(r"\bIS$", before, re.IGNORECASE):
        return "write IS NULL or IS NOT NULL; compare other values with ="
    over = next((hint for pattern, hint in _AFTER_OVER if pattern.search(before)), None)
    hint = over or _WORDS.get(_word(token).upper()) or _WORDS.get(_last_word(before).upper()) or _dotted(token, before)
    if hint is not None:
        return hint
    if re.search(r"\bIN$", before, re.IGNORECASE):
        return _CHOICES
    if token == ")":
        return "remove the extra )"
    if token == ",":
        opened = _unclosed(before)
        if opened and not re.search(r"\w\s*$", before[: opened[-1]]):
            return "close the parenthesis before the comma"
        return f"commas separate the arguments of a function; {_PLAIN_NUMBER}"
    if token.type == "NAME" and re.fullmatch(r"[eE][0-9]*", token) and before[-1:].isdigit():
        return _PLAIN_NUMBER
    if re.search(r"\bCOUNT\s*\(\s*DISTINCT$", before, re.IGNORECASE):
        return "write COUNT_DISTINCT(value)"
    if token.type in ("INTEGER", "DECIMAL") and before[-1:].isdigit():
        return _PLAIN_NUMBER
    if token.type in _VALUE:
        return "add an operator or a comma before it"
    if token.type == "COMPARISON":
        return "combine comparisons with AND: a < b AND b < c, or use BETWEEN"
    return None
