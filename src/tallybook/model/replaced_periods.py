"""The periods whose rows an output with `mode: replace_period` replaces."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from tallybook.errors import fail
from tallybook.model.columns import PERIOD
from tallybook.model.nested_period import NestedPeriod


@dataclass(frozen=True)
class ReplacedPeriods:
    """The periods that an output replaces: the period of its run, and the shorter ones that its rows belong to.

    The run of a quarter that writes rows of months replaces all months of the quarter, also those it has no rows for.
    If it writes rows of the quarter only, rows of its months stay: they are the rows of another project.
    """

    period: str
    """The period of the run."""
    inside: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The shorter periods inside it, by their level."""
    levels: frozenset[str] = frozenset()
    """The levels that are replaced in any case, because the run reads rows of them."""
    column: str = PERIOD
    """The written column with the period of a row."""

    @classmethod
    def of_run(cls, nested: NestedPeriod, read: Iterable[str]) -> ReplacedPeriods:
        """Returns what a run replaces. `read` are the periods whose rows become rows of the run."""
        names = set(read)
        levels = (level for level, inside in nested.inside.items() if names.intersection(inside))
        return cls(nested.period.identifier, nested.inside, frozenset(levels))

    @property
    def planned(self) -> tuple[str, ...]:
        """The periods that are replaced whatever rows the run has."""
        return self.given(())

    def given(self, written: Iterable[str | None]) -> tuple[str, ...]:
        """Returns the periods to replace. `written` are the periods of the rows that the output has written.

        Raises WriteFailed if one of them is neither the period of the run nor inside it.
        """
        names = set(written)
        outside = names - {self.period}.union(*self.inside.values())
        if outside:
            message, hint = outside_period(min(outside, key=str), self.period)
            raise fail("WriteFailed", message, hint=hint)
        levels = (
            names_of_level
            for level, names_of_level in self.inside.items()
            if level in self.levels or names.intersection(names_of_level)
        )
        return (self.period, *(name for of_level in levels for name in of_level))


def outside_period(name: str | None, period: str) -> tuple[str, str]:
    """Returns the message and the hint for a row that an output may not write, because of its period."""
    rows = "rows without a `_period`" if name is None else f"rows of the period '{name}'"
    hint = (
        "group by `_period` in the operation that makes these rows, or leave them out with a `selector` of the output"
        if name is None
        else "leave these rows out with a `selector` of the output, such as `_period = PERIOD()`"
    )
    return (
        f"the output has {rows}, but with `mode: replace_period` it may write only rows of {period} and of the "
        "periods inside it",
        hint,
    )
