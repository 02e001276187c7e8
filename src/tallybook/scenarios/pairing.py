"""Which expected row belongs to which actual one.

An expected row names some columns only, so it may fit several rows. As many as possible are matched exactly; those
left over are paired with the nearest that nobody else matched.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from tallybook.scenarios.values import same

Values = Mapping[str, object]
Pair = tuple[int, int | None]


def pair(expected: Sequence[Values], actual: Sequence[Values], keys: Collection[str]) -> tuple[list[Pair], list[int]]:
    """The expected rows that no row fits, each with the nearest one left if any, and the rows left after that."""
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
    """A largest matching, actual row → expected row: who comes later may move who came before to another row."""
    taken: dict[int, int] = {}

    def place(i: int, tried: set[int]) -> bool:
        for j in fitting[i]:
            if j in tried:
                continue
            tried.add(j)
            if j not in taken or place(taken[j], tried):
                taken[j] = i
                return True
        return False

    for i in range(len(fitting)):
        place(i, set())
    return taken


def _nearest(
    unmatched: Sequence[int],
    left: Sequence[int],
    expected: Sequence[Values],
    actual: Sequence[Values],
    keys: Collection[str],
) -> dict[int, int]:
    """Closest pairs first: those that agree on the key, then those with the fewest differing cells."""

    def distance(i: int, j: int) -> tuple[int, int]:
        wrong = [name for name, value in expected[i].items() if not same(value, actual[j][name])]
        return sum(1 for name in wrong if name in keys), len(wrong)

    ranked = sorted((*distance(i, j), i, j) for i in unmatched for j in left)
    found: dict[int, int] = {}
    used: set[int] = set()
    for _, _, i, j in ranked:
        if i not in found and j not in used:
            found[i] = j
            used.add(j)
    return found
