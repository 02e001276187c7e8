"""Pairs expected rows with actual rows.

An expected row can leave out columns, so it can match several rows. As many rows as possible are matched exactly; the
rest are paired with the nearest unmatched rows.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence

from tallybook.scenarios.values import same

Values = Mapping[str, object]
Pair = tuple[int, int | None]

_KEY = 1000
"""A differing cell of the key counts as much as this many other cells."""
_APART = 10**6
"""The distance of two rows that have nothing in common."""
_CONSIDERED = 100
"""The nearest row is searched for at most this many rows; nobody reads more differences."""


def pair(expected: Sequence[Values], actual: Sequence[Values], keys: Collection[str]) -> tuple[list[Pair], list[int]]:
    """Returns the unmatched expected rows, each with its nearest unmatched row, and the actual rows left over."""
    fitting = [[j for j, row in enumerate(actual) if _fits(wanted, row)] for wanted in expected]
    taken = _match(fitting)
    left = [j for j in range(len(actual)) if j not in taken]
    matched = set(taken.values())
    unmatched = [i for i in range(len(expected)) if i not in matched]
    nearest = _nearest(unmatched, left, expected, actual, keys)
    paired = set(nearest.values())
    return [(i, nearest.get(i)) for i in unmatched], [j for j in left if j not in paired]


def _fits(wanted: Values, row: Values) -> bool:
    return all(same(value, row[name]) for name, value in wanted.items())


def _match(fitting: Sequence[Sequence[int]]) -> dict[int, int]:
    """Returns a largest matching, actual row → expected row; a later row can move an earlier one to another partner."""
    taken: dict[int, int] = {}
    has: dict[int, int] = {}
    for first in range(len(fitting)):
        wanted_by: dict[int, int] = {}
        free: int | None = None
        waiting = [first]
        while waiting and free is None:
            i = waiting.pop()
            for j in (j for j in fitting[i] if j not in wanted_by):
                wanted_by[j] = i
                if j not in taken:
                    free = j
                    break
                waiting.append(taken[j])
        while free is not None:
            i = wanted_by[free]
            given_up = has.get(i)
            taken[free], has[i], free = i, free, given_up
    return taken


def _nearest(
    unmatched: Sequence[int],
    left: Sequence[int],
    expected: Sequence[Values],
    actual: Sequence[Values],
    keys: Collection[str],
) -> dict[int, int]:
    """Returns pairs of rows that have something in common, with the least total distance."""

    def distance(i: int, j: int) -> int:
        wrong = [name for name, value in expected[i].items() if not same(value, actual[j][name])]
        shared = len(wrong) < len(expected[i])
        return len(wrong) + _KEY * sum(1 for name in wrong if name in keys) if shared else _APART

    some, others = unmatched[:_CONSIDERED], left[:_CONSIDERED]
    spare = [_APART] * max(0, len(some) - len(others))
    costs = [[*(distance(i, j) for j in others), *spare] for i in some]
    chosen = zip(some, _cheapest(costs), strict=True)
    return {i: others[at] for row, (i, at) in enumerate(chosen) if costs[row][at] < _APART}


def _cheapest(costs: Sequence[Sequence[int]]) -> list[int]:
    """Assigns each row its own column with the least total cost: the Hungarian method, row by row.

    `of_row` and `of_column` are prices at which every chosen pair costs nothing and no pair less than that.
    """
    width = len(costs[0]) if costs else 0
    of_row, of_column = [0] * len(costs), [0] * (width + 1)
    owner: list[int | None] = [None] * (width + 1)
    for row in range(len(costs)):
        owner[width], at = row, width
        least, before, seen = [math.inf] * width, [width] * width, [False] * (width + 1)
        while (holder := owner[at]) is not None:
            seen[at] = True
            for column in (c for c in range(width) if not seen[c]):
                price = costs[holder][column] - of_row[holder] - of_column[column]
                if price < least[column]:
                    least[column], before[column] = price, at
            nearest = min((c for c in range(width) if not seen[c]), key=least.__getitem__)
            step = int(least[nearest])
            for column in range(width + 1):
                held = owner[column]
                if seen[column] and held is not None:
                    of_row[held] += step
                    of_column[column] -= step
                elif column < width:
                    least[column] -= step
            at = nearest
        while at != width:
            owner[at], at = owner[before[at]], before[at]
    return [owner.index(row, 0, width) for row in range(len(costs))]
