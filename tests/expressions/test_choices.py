"""IN with many choices, and other expressions that are very long."""

from __future__ import annotations

from decimal import Decimal

import pytest

from tallybook.errors import ProblemError
from tallybook.expressions.limits import MAX_CHOICES, MAX_PARTS
from tallybook.expressions.parse import parse
from tallybook.expressions.selectors import parse_selector
from tallybook.expressions.show import show
from tallybook.expressions.tree import Call, Literal
from tallybook.source import SourceText

WIDE = ", ".join(f"{number}.5" for number in range(300))
WHOLE = ", ".join(str(number) for number in range(-150, 150))
TEXTS = ", ".join(f"'{text}'" for text in [*(f"K{number}" for number in range(300)), "it''s", "😀", "\t", '"', ""])


def test_a_long_list_means_what_a_short_one_means(evaluate):
    evaluate.table(
        f"""
        "K299" IN ({TEXTS})             => true
        "k299" IN ({TEXTS})             => false
        "it's" IN ({TEXTS})             => true
        "" IN ({TEXTS})                 => true
        '"' IN ({TEXTS})                => true
        UPPER(smile) IN ({TEXTS})       => true
        smile NOT IN ({TEXTS})          => false
        smile IN ({TEXTS}, NULL)        => true
        "x" IN ({TEXTS}, NULL, NULL)    => NULL
        "x" NOT IN ({TEXTS}, NULL)      => NULL
        "x" IN ({TEXTS}, UPPER("x"))    => false
        "X" IN ({TEXTS}, UPPER("x"))    => true
        "x" IN ({TEXTS}, none)          => NULL
        none IN ({TEXTS})               => NULL
        NULL IN ({TEXTS})               => NULL
        5 IN ({WHOLE})                  => true
        -150 IN ({WHOLE})               => true
        150 IN ({WHOLE})                => false
        5.0 IN ({WHOLE})                => true
        5.5 IN ({WHOLE})                => false
        5 IN ({WIDE})                   => false
        5 IN ({WIDE}, 5)                => true
        5 IN ({WIDE}, 5.00)             => true
        amount IN ({WIDE})              => true
        -amount IN ({WIDE})             => false
        amount IN ({WHOLE}, 7.50000)    => true
        amount IN ({WHOLE}, 7.50001)    => false
        tiny IN ({WHOLE}, 0.00000000000000000000000000000000000001)  => true
        TRUE IN ({", ".join(["FALSE"] * 300)})  => false
        "1" IN ({WHOLE})                => TypeMismatch
        """,
        {
            "none": ("string", None),
            "smile": ("string", "😀"),
            "amount": ("decimal(10,2)", Decimal("7.50")),
            "tiny": ("decimal(38,38)", Decimal("1e-38")),
        },
    )


@pytest.mark.parametrize("count", [2_000, pytest.param(100_000, marks=pytest.mark.long)])
def test_many_choices(evaluate, count: int):
    """Read, checked, planned and run; one Spark literal each would take minutes."""
    choices = ", ".join(f'"K{number:06d}"' for number in range(count))
    numbers = ", ".join(map(str, range(0, 2 * count, 2)))
    rows = [("K000000", 0), (f"K{count - 1:06d}", 2 * count - 2), (f"K{count:06d}", 1), (None, None)]
    found = evaluate.over([f"x IN ({choices})", f"n NOT IN ({numbers})"], {"x": "string", "n": "integer"}, rows)
    assert found == [[True, False], [True, False], [False, True], [None, None]]


def test_the_tree_is_the_same():
    """A list long enough to be read at once has the nodes, places and print of a short one."""
    text = 'a NOT IN ( 1,-2 , 3.50, "x""y", \'it\\\'s\', -0.0, null, TRUE,\n' + ", ".join(["'z'"] * 20) + " )"
    long, short = parse(text), parse(text.replace("-2 ,", "-2 , b,"))
    assert isinstance(long, Call) and isinstance(long.args[0], Call) and isinstance(short, Call)
    same = [arg for arg in short.args[0].args if arg != parse("b")]
    assert list(long.args[0].args) == same
    assert [arg.span.text for arg in long.args[0].args] == [arg.span.text for arg in same]
    assert parse(show(long)) == long
    assert long.args[0].args[5] == Literal("it's")


@pytest.mark.parametrize(
    "text",
    [
        f"a IN ({'1, ' * 30}2",
        f"a IN ({'1, ' * 30}2) 3)",
        f"a IN ({'1, ' * 30})",
        f"a IN ({'1 ' * 30}2)",
        f"a IN ({'1, ' * 30}{'9' * 39})",
        f"a IN ({', '.join(['1'] * (MAX_CHOICES + 1))})",
        f"CONCAT({', '.join(['a'] * MAX_PARTS)})",
        " OR ".join(["a = 1"] * (MAX_PARTS // 3 + 1)),
    ],
    ids=["open", "more", "comma", "no commas", "digits", "choices", "arguments", "conditions"],
)
def test_what_is_wrong_or_too_long_is_a_problem(text):
    with pytest.raises(ProblemError) as caught:
        parse(text)
    assert caught.value.problem.type == "ExpressionParseError"


def test_selectors_share_the_limits():
    some = {"some": SourceText(f"a IN ({', '.join(['1'] * (MAX_CHOICES // 3))})"), "few": SourceText("a = 1")}
    parse_selector(SourceText("{{some}} OR {{some}} OR {{few}}"), some)
    with pytest.raises(ProblemError, match="the selector, with the selectors it uses, has more than 200,000 choices"):
        parse_selector(SourceText(" OR ".join(["{{some}}"] * 4)), some)
    with pytest.raises(ProblemError, match="the selector, with the selectors it uses, has more than 10,000 parts"):
        parse_selector(SourceText(" OR ".join(["{{few}}"] * 2_600)), some)


@pytest.mark.long
def test_long_expressions_end_in_a_value(evaluate):
    count = 1_000
    branches = ", ".join(f'"K{number}", {number}' for number in range(count))
    nested = "IF(x = 'K1', 1, " * 95 + "0" + ")" * 95
    values = evaluate.all(
        [
            f"SWITCH(x, {branches}, -1)",
            " OR ".join(f'x = "K{number}"' for number in range(count * 3)),
            " AND ".join(f'x <> "K{number}"' for number in range(count * 3)),
            f"LEN(CONCAT({', '.join(['x'] * count * 3)}))",
            f"COALESCE({', '.join(['none'] * count)}, x)",
            f"MAX({', '.join(['n'] * count)})",
            nested,
        ],
        {"x": ("string", "K999"), "none": ("string", None), "n": ("integer", 7)},
    )
    assert values == [999, True, False, 12_000, "K999", 7, 0]
