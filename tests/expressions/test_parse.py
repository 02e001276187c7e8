"""Text to tree: precedence, literals, places, limits and named selectors."""

from __future__ import annotations

from decimal import Decimal

import pytest

from tallybook.errors import ProblemError
from tallybook.expressions.limits import MAX_DEPTH
from tallybook.expressions.parse import parse
from tallybook.expressions.selectors import parse_selector
from tallybook.expressions.show import show
from tallybook.expressions.tree import Call, ColumnName, Literal, Named, walk
from tallybook.source import SourceText


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a or b and not c = d + e * -f", "a OR b AND NOT c = d + e * -f"),
        ("((a or b)) and c", "(a OR b) AND c"),
        ("a and (b and c)", "a AND (b AND c)"),
        ("not (a and b)", "NOT (a AND b)"),
        ("(not a) = b", "(NOT a) = b"),
        ("a - (b - c)", "a - (b - c)"),
        ("(a - b) - c", "a - b - c"),
        ("a / (b * c)", "a / (b * c)"),
        ("-(a + b)", "-(a + b)"),
        ("(-a) * b", "-a * b"),
        ("a - -5", "a - -5"),
        ("-(5)", "-5"),
        ("--5", "5"),
        ("a == b", "a = b"),
        ("a != b", "a <> b"),
        ("not a in (1, 2)", "a NOT IN (1, 2)"),
        ("a not between 1 and 2 and b", "a NOT BETWEEN 1 AND 2 AND b"),
        ("a is not null", "a IS NOT NULL"),
        ("a not like 'x%'", 'a NOT LIKE "x%"'),
        ("and(a, b) and or(c)", "AND(a, b) AND OR(c)"),
        ("a and (b)", "a AND b"),
        ("a between 1 and (2)", "a BETWEEN 1 AND 2"),
        ("count(*) + Sum( x )", "COUNT(*) + SUM(x)"),
        ("`Order Amount` + t.`and`", "`Order Amount` + t.`and`"),
        ("`plain` + order_id + nothing + isnull", "plain + order_id + nothing + isnull"),
        ("{{ ACTIVE }} and a", "{{ACTIVE}} AND a"),
        (r"'100\%' = 'a\\b'", '"100\\%" = "a\\b"'),
        (""" 'say "hi"' """, '"say ""hi"""'),
        ("007 + 1.50", "7 + 1.50"),
        ("If(TRUE,null,False)", "IF(TRUE, NULL, FALSE)"),
    ],
)
def test_reading_and_printing(text, shown):
    assert show(parse(text)) == shown


def test_literals_of_different_kinds_are_different():
    one, true, decimal = parse("1"), parse("TRUE"), parse("1.0")
    assert len({one, true, decimal}) == 3
    assert parse("1.50") != parse("1.5")
    assert parse("-0.00") == Literal(Decimal("0.00"))
    assert parse("-" + "9" * 38) == Literal(-(10**38 - 1))


def test_zeros_before_the_point_are_no_digits():
    smallest = f"0.{'0' * 37}1"
    assert parse(smallest) == Literal(Decimal(smallest))
    for text in (f"0.{'0' * 38}1", f"1.{'0' * 38}", "9" * 39):
        with pytest.raises(ProblemError, match="has 39 digits"):
            parse(text)


@pytest.mark.parametrize("text", ["５ + 1", "1.", "a.b.", "a..b", "\x00", "a b", "1 2", "a\u00b2"])
def test_what_is_no_expression(text):
    with pytest.raises(ProblemError) as caught:
        parse(text)
    assert caught.value.problem.type == "ExpressionParseError"


def test_every_node_knows_its_place():
    text = "IF(amount > 1.5,\n   -quantity, `Order Amount`)"
    spans = {node.span.text for node in walk(parse(text))}
    assert spans == {text, "amount > 1.5", "amount", "1.5", "-quantity", "quantity", "`Order Amount`"}
    column = next(node for node in walk(parse(text)) if isinstance(node, ColumnName) and node.parts == ("quantity",))
    assert str(column.span.place) == "<expression>:2:5"


@pytest.mark.parametrize(
    "text",
    [
        "(" * 1_000 + "1" + ")" * 1_000,
        "(" * 10_000 + "1" + ")" * 10_000,
        "ABS(" * 1_000 + "1" + ")" * 1_000,
        "NOT " * 1_000 + "a",
        "-" * 1_000 + "a",
        " + ".join(["1"] * 1_000),
        "IF(a, 1, " * 200 + "2" + ")" * 200,
    ],
)
def test_depth_has_a_limit(text):
    with pytest.raises(ProblemError, match=f"nested more than {MAX_DEPTH} levels"):
        parse(text)


def test_long_and_flat_is_fine():
    assert isinstance(parse(" OR ".join(["a"] * 5_000)), Call)
    assert isinstance(parse(f"a IN ({', '.join(['1'] * 5_000)})"), Call)
    assert parse("-" * 60 + "a").depth <= MAX_DEPTH


def _selectors(**texts: str) -> dict[str, SourceText]:
    return {name: SourceText(text) for name, text in texts.items()}


def test_selectors_are_replaced_as_a_whole():
    tree = parse_selector(SourceText("NOT {{BOTH}} AND d"), _selectors(BOTH="a OR {{C}}", C="c"))
    both = next(node for node in walk(tree) if isinstance(node, Named))
    assert both.body == Call("OR", (ColumnName(("a",)), Named("C", ColumnName(("c",)))), operator=True)
    assert show(tree) == "NOT {{BOTH}} AND d"


@pytest.mark.parametrize(
    ("text", "selectors", "type"),
    [
        ("{{X}}", {"Y": "a"}, "UnknownSelector"),
        ("{{X}}", {"X": "{{X}}"}, "SelectorCycle"),
        ("{{A}}", {"A": "NOT {{B}}", "B": "a AND {{C}}", "C": "{{A}}"}, "SelectorCycle"),
        ("{{X}}", {"X": "a >"}, "ExpressionParseError"),
        ("{{ }}", {}, "ExpressionParseError"),
        ("{{X", {"X": "a"}, "ExpressionParseError"),
        ("{{S500}}", {f"S{i + 1}": f"{{{{S{i}}}}}" for i in range(500)} | {"S0": "a"}, "ExpressionParseError"),
        ("{{S90}}", {f"S{i + 1}": f"NOT {{{{S{i}}}}}" for i in range(90)} | {"S0": "a"}, "ExpressionParseError"),
        (
            "{{S60}}",
            {f"S{i + 1}": f"{{{{S{i}}}}} AND {{{{S{i}}}}}" for i in range(40)} | {"S0": "a", "S60": "{{S40}}"},
            "ExpressionParseError",
        ),
    ],
    ids=["unknown", "self", "circle", "broken", "blank", "unclosed", "long chain", "deep chain", "doubling"],
)
def test_selectors_that_cannot_be_used(text, selectors, type):
    with pytest.raises(ProblemError) as caught:
        parse_selector(SourceText(text), _selectors(**selectors))
    assert caught.value.problem.type == type
