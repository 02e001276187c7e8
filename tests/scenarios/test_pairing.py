"""Expected rows find their actual ones, whatever the order, and the nearest where none fits."""

from __future__ import annotations

from itertools import permutations

from hypothesis import given
from hypothesis import strategies as st

from tallybook.scenarios.pairing import _cheapest, pair

ROW = st.fixed_dictionaries({"x": st.integers(0, 2), "y": st.integers(0, 2)})
PART = st.fixed_dictionaries({}, optional={"x": st.integers(0, 2), "y": st.integers(0, 2)})


def fits(wanted: dict[str, int], row: dict[str, int]) -> bool:
    return all(row[name] == value for name, value in wanted.items())


def most_matches(expected: list[dict[str, int]], actual: list[dict[str, int]]) -> int:
    """By trying every order."""
    places: list[dict[str, int] | None] = [*actual, *[None] * len(expected)]
    return max(
        sum(1 for wanted, row in zip(expected, order, strict=False) if row is not None and fits(wanted, row))
        for order in permutations(places, len(expected))
    )


@given(st.lists(PART, max_size=4), st.lists(ROW, max_size=3))
def test_as_many_rows_as_possible_are_matched(expected: list[dict[str, int]], actual: list[dict[str, int]]) -> None:
    unmatched, spare = pair(expected, actual, ())
    assert len(expected) - len(unmatched) == most_matches(expected, actual)
    paired = [j for _, j in unmatched if j is not None]
    assert len({*paired, *spare}) == len(paired) + len(spare)
    assert len(paired) + len(spare) == len(actual) - (len(expected) - len(unmatched))


def test_a_wide_row_gives_way_to_a_narrow_one() -> None:
    assert pair([{"x": 1}, {"x": 1, "y": 2}], [{"x": 1, "y": 2}, {"x": 1, "y": 3}], ()) == ([], [])


def test_equal_rows_are_counted() -> None:
    unmatched, spare = pair([{"x": 1}, {"x": 1}], [{"x": 1}], ())
    assert (unmatched, spare) == ([(1, None)], [])


def test_the_nearest_row_is_the_one_with_the_same_key() -> None:
    expected = [{"id": "A", "x": 1, "y": 1}]
    actual = [{"id": "B", "x": 1, "y": 1}, {"id": "A", "x": 2, "y": 2}]
    assert pair(expected, actual, ["id"]) == ([(0, 1)], [0])
    assert pair(expected, actual, ()) == ([(0, 0)], [1])


def test_rows_that_share_nothing_are_not_paired() -> None:
    assert pair([{"x": 1, "y": 1}], [{"x": 2, "y": 2}], ()) == ([(0, None)], [0])


def test_pairs_are_chosen_together() -> None:
    """The first row alone would be nearest to the second expectation, and leave the first without its own."""
    expected = [{"id": "A", "x": 9, "y": 9, "paid": False}, {"paid": True, "x": 8}]
    actual = [{"id": "A", "x": 1, "y": 1, "paid": True}, {"id": None, "x": 1, "y": None, "paid": True}]
    assert pair(expected, actual, ["id"]) == ([(0, 0), (1, 1)], [])


@given(st.lists(st.lists(st.integers(0, 9), min_size=4, max_size=4), max_size=4))
def test_the_choice_is_the_cheapest(costs: list[list[int]]) -> None:
    chosen = _cheapest(costs)
    assert len(set(chosen)) == len(costs)
    least = min(sum(costs[i][j] for i, j in enumerate(order)) for order in permutations(range(4), len(costs)))
    assert sum(costs[i][j] for i, j in enumerate(chosen)) == least


def test_many_equal_rows() -> None:
    rows = [{"x": 1}] * 1200
    assert pair(rows, rows, ()) == ([], [])


def test_one_newcomer_moves_all_the_others() -> None:
    actual = [{"x": i, "y": i + 1} for i in range(1200)]
    expected = [{"y": i + 1} if i % 2 else {"x": i} for i in range(1200)]
    assert pair(expected, actual, ()) == ([], [])
