"""Random expression trees, of the shapes the parser makes."""

from __future__ import annotations

from decimal import Decimal

from hypothesis import strategies as st

from tallybook.expressions.tree import Call, ColumnName, Literal, Named, Node, Over, Star

_BINARY = ("=", "<>", "<", "<=", ">", ">=", "+", "-", "*", "/", "%", "LIKE")
_NAMES = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,8}", fullmatch=True)
_ODD_NAMES = st.text(st.characters(blacklist_characters="`", blacklist_categories=["Cs"]), min_size=1, max_size=8)
_PARTS = st.one_of(_NAMES, _ODD_NAMES, st.sampled_from(["and", "Order Amount", "is", "NULL", "in_", "x.y"]))
_FUNCTIONS = st.sampled_from(["IF", "SUM", "CONCAT", "AND", "OR", "NO_SUCH_FUNCTION", "TODAY"])
_TEXTS = st.text(st.characters(blacklist_categories=["Cs"]), max_size=12) | st.text("\\\"'%a\n", max_size=8)


def _decimals() -> st.SearchStrategy[Decimal]:
    return st.builds(
        lambda digits, scale: Decimal(digits).scaleb(-scale).copy_abs(),
        st.integers(0, 10**20),
        st.integers(1, 6),
    )


def _signed(number: int | Decimal, negative: bool) -> int | Decimal:
    return (number.copy_negate() if isinstance(number, Decimal) else -number) if negative and number else number


_NUMBERS = st.builds(_signed, st.integers(0, 10**38 - 1) | _decimals(), st.booleans())
_COLUMNS = st.builds(lambda parts: ColumnName(tuple(parts)), st.lists(_PARTS, min_size=1, max_size=3))
LEAVES: st.SearchStrategy[Node] = st.one_of(
    st.builds(Literal, st.one_of(st.none(), st.booleans(), _NUMBERS, _TEXTS)),
    _COLUMNS,
    st.builds(Named, st.from_regex(r"[A-Za-z][A-Za-z0-9 _-]{0,6}[A-Za-z]", fullmatch=True)),
    st.builds(lambda name: Call(name, (Star(),)), st.sampled_from(["COUNT", "SUM"])),
)


def _is_number(node: Node) -> bool:
    return isinstance(node, Literal) and isinstance(node.value, int | Decimal) and not isinstance(node.value, bool)


def _branches(children: st.SearchStrategy[Node]) -> st.SearchStrategy[Node]:
    def operator(name: str, args: list[Node]) -> Call:
        return Call(name, tuple(args), operator=True)

    some = st.lists(children, min_size=2, max_size=4)
    return st.one_of(
        st.builds(operator, st.sampled_from(_BINARY), st.lists(children, min_size=2, max_size=2)),
        st.builds(operator, st.sampled_from(["AND", "OR", "IN"]), some),
        st.builds(operator, st.just("BETWEEN"), st.lists(children, min_size=3, max_size=3)),
        st.builds(lambda name, arg: operator(name, [arg]), st.sampled_from(["NOT", "IS NULL"]), children),
        st.builds(lambda arg: operator("NEGATE", [arg]), children.filter(lambda arg: not _is_number(arg))),
        st.builds(lambda name, args: Call(name, tuple(args)), _FUNCTIONS, st.lists(children, min_size=1, max_size=4)),
        st.builds(lambda arg, keys: Over(Call("SUM", (arg,)), tuple(keys)), children, st.lists(_COLUMNS, max_size=2)),
    )


TREES = st.recursive(LEAVES, _branches, max_leaves=15)
