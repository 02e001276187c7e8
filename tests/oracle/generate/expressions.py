"""Expression texts of a wanted kind over the columns in sight, built from the language's functions by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random

from .cells import PATTERNS, TEXTS, many_literals, quoted
from .patterns import DATE_FORMS, NUMBER_FORMS, REGEXES, WRITTEN_DATES

ORDERED = ("integer", "decimal", "string", "date", "timestamp")
KINDS = (*ORDERED, "boolean")
MAX_DEPTH = 3


@dataclass
class Writer:
    """Writes expressions; `columns` are the texts that read a column, by kind, or by name if its text is special."""

    random: Random
    columns: Mapping[str, Sequence[str]]
    calls: list[str] = field(default_factory=list)

    def of(self, kind: str, depth: int = 0) -> str:
        """An expression of a kind; the deeper, the likelier a column or literal."""
        if depth >= MAX_DEPTH or self.random.random() < 0.25 + 0.2 * depth:
            return self.leaf(kind)
        return str(self.random.choice(RECIPES[kind])(self, depth + 1))

    def plain(self, kind: str) -> str:
        """One function of columns and literals: nothing around it hides what it gives."""
        return str(self.random.choice(RECIPES[kind])(self, MAX_DEPTH))

    def leaf(self, kind: str) -> str:
        known = self.columns.get(kind, ())
        if known and self.random.random() < 0.75:
            return self.random.choice(known)
        return self.literal(kind)

    def literal(self, kind: str) -> str:
        pick = self.random.choice
        if kind == "string":
            return quoted(pick(TEXTS))
        if kind == "integer":
            return pick(("0", "1", "2", "-3", "7", "10", "100", "12"))
        if kind == "decimal":
            long = ("9223372036854775808", "-12345678901234567890", "9" * 38)
            return pick(("0.5", "1.10", "-2.345", "0.005", "100.00", "0.1", "3.0", "0.000001", "12.25", pick(long)))
        if kind == "boolean":
            return pick(("TRUE", "FALSE"))
        if kind == "date":
            return pick(('DATE("2026-01-31")', 'DATE("2024-02-29")', "TODAY()", "DATE(2025, 12, 31)"))
        return pick(('TIMESTAMP("2026-01-31T12:00:00Z")', "NOW()", 'TIMESTAMP("2025-12-31T23:59:59.5+01:00")'))

    def number(self, depth: int) -> str:
        return self.of(self.random.choice(("integer", "decimal")), depth)

    def any_of(self, depth: int, kinds: Sequence[str] = KINDS) -> tuple[str, str]:
        kind = self.random.choice(kinds)
        return kind, self.of(kind, depth)

    def alike(self, kind: str, depth: int) -> str:
        """A value that can stand beside one of the kind: now and then one that is widened, or NULL."""
        if self.random.random() < 0.08:
            return "NULL"
        wider = {"integer": "decimal", "decimal": "integer", "date": "timestamp", "timestamp": "date"}
        return self.of(wider.get(kind, kind) if self.random.random() < 0.2 else kind, depth)

    def narrower(self, kind: str, depth: int) -> str:
        """A value that fits where the result must be of the kind."""
        if self.random.random() < 0.08:
            return "NULL"
        slim = {"decimal": "integer", "timestamp": "date"}
        return self.of(slim.get(kind, kind) if self.random.random() < 0.2 else kind, depth)

    def text(self, name: str, default: str) -> str:
        """A column of such texts, or the literal."""
        known = self.columns.get(name, ())
        return self.random.choice(known) if known else default

    def few_days(self) -> str:
        return self.random.choice(("1", "-1", "31", "-366", "59", 'LEN("abc")'))


Recipe = Callable[[Writer, int], str]


def _compared(w: Writer, d: int) -> str:
    kind, left = w.any_of(d, ORDERED)
    return f"{left} {w.random.choice(('=', '<>', '<', '<=', '>', '>=', '==', '!='))} {_operand(w.alike(kind, d))}"


def _operand(text: str) -> str:
    return f"({text})" if " " in text else text


def _in(w: Writer, d: int) -> str:
    kind, left = w.any_of(d)
    choices = [w.alike(kind, d + 1) for _ in range(w.random.randint(1, 3))]
    if kind != "boolean" and w.random.random() < 0.2:
        choices = [*many_literals(w.random, kind), *choices[: w.random.randint(0, 1)]]
    return f"{_operand(left)} {w.random.choice(('IN', 'NOT IN', 'in'))} ({', '.join(choices)})"


def _between(w: Writer, d: int) -> str:
    kind, left = w.any_of(d, ORDERED)
    word = w.random.choice(("BETWEEN", "NOT BETWEEN"))
    return f"{_operand(left)} {word} {_operand(w.alike(kind, d))} AND {_operand(w.alike(kind, d))}"


def _like(w: Writer, d: int) -> str:
    literal = quoted(w.random.choice(PATTERNS))
    pattern = w.text("pattern", literal) if w.random.random() < 0.6 else literal
    return f"{_operand(w.of('string', d))} {w.random.choice(('LIKE', 'NOT LIKE'))} {pattern}"


def _is_null(w: Writer, d: int) -> str:
    value = _operand(w.any_of(d)[1])
    return w.random.choice((f"{value} IS NULL", f"{value} IS NOT NULL", f"ISNULL({value})", f"IS_NULL({value})"))


def _junction(w: Writer, d: int) -> str:
    a, b = f"({w.of('boolean', d)})", f"({w.of('boolean', d)})"
    return w.random.choice((f"{a} AND {b}", f"{a} OR {b}", f"AND({a}, {b})", f"OR({a}, {b}, FALSE)", f"NOT {a}"))


def _test(name: str) -> Recipe:
    return lambda w, d: f"{name}({w.of('string', d)}, {w.of('string', d)})"


def _infix(kind: str, operators: Sequence[str]) -> Recipe:
    def write(w: Writer, d: int) -> str:
        other = kind if kind == "integer" or w.random.random() < 0.6 else "integer"
        parts = [w.of(kind, d), w.of(other, d)]
        w.random.shuffle(parts)
        return f"({parts[0]} {w.random.choice(operators)} {parts[1]})"

    return write


def _quotient(w: Writer, d: int) -> str:
    return f"({w.number(d)} / {w.number(d)})"


ROUNDINGS = ("ROUND", "ROUND", "ROUND", "ROUND_HALF_EVEN", "ROUNDUP", "ROUNDDOWN", "TRUNC")


def _round(w: Writer, d: int) -> str:
    """Often of a half, which is where roundings differ."""
    name = w.random.choice(ROUNDINGS)
    if w.random.random() < 0.5:
        return f"{name}({w.leaf('integer')} / {w.random.choice(('20', '200', '8'))}, {w.random.choice('12')})"
    return f"{name}({w.of('decimal', d)}, {w.random.choice(('1', '2', '3', '6'))})"


def _round_whole(w: Writer, d: int) -> str:
    name = w.random.choice(ROUNDINGS)
    if w.random.random() < 0.5:
        return w.random.choice((f"{name}({w.leaf('integer')} / 2)", f"{name}({w.leaf('integer')} * 5, -1)"))
    return f"{name}({w.number(d)}{w.random.choice(('', ', 0', ', -1', ', -2'))})"


def _power(kind: str) -> Recipe:
    exponents = ("2", "3", "1") if kind == "integer" else ("2", "3", "5", "-1", "-2")
    return lambda w, d: f"POWER({w.of(kind, d)}, {w.random.choice(exponents)})"


def _extreme(kind: str) -> Recipe:
    def write(w: Writer, d: int) -> str:
        rest = ", ".join(w.narrower(kind, d) for _ in range(w.random.randint(0, 2)))
        name = w.random.choice(("MIN", "MAX", "max"))
        return f"{name}({w.of(kind, d)}{', ' + rest if rest else ''})"

    return write


def _if(kind: str) -> Recipe:
    def write(w: Writer, d: int) -> str:
        parts = [w.of(kind, d), w.narrower(kind, d)]
        w.random.shuffle(parts)
        if w.random.random() < 0.15:
            return f"IF({w.of('boolean', d)}, {w.of(kind, d)})"
        return f"IF({w.of('boolean', d)}, {parts[0]}, {parts[1]})"

    return write


def _ifs(kind: str) -> Recipe:
    def write(w: Writer, d: int) -> str:
        pairs = [f"{w.of('boolean', d)}, {w.narrower(kind, d)}" for _ in range(w.random.randint(0, 2))]
        default = [w.of(kind, d)] if w.random.random() < 0.7 else []
        return f"IFS({', '.join([w.of('boolean', d), w.of(kind, d), *pairs, *default])})"

    return write


def _coalesce(kind: str) -> Recipe:
    return lambda w, d: f"COALESCE({w.of(kind, d)}, {w.narrower(kind, d)}, {w.leaf(kind)})"


def _switch(kind: str) -> Recipe:
    def write(w: Writer, d: int) -> str:
        subject, value = w.any_of(d)
        pairs = [f"{w.alike(subject, d + 1)}, {w.narrower(kind, d)}" for _ in range(w.random.randint(1, 2))]
        default = [w.of(kind, d)] if w.random.random() < 0.7 else []
        first = f"{w.alike(subject, d + 1)}, {w.of(kind, d)}"
        return f"SWITCH({', '.join([value, first, *pairs, *default])})"

    return write


def _call(name: str, *kinds: str) -> Recipe:
    return lambda w, d: f"{name}({', '.join(w.of(kind, d) for kind in kinds)})"


def _cut(w: Writer, d: int) -> str:
    text, n = w.of("string", d), w.random.choice(("0", "1", "2", "-1", "5", w.leaf("integer")))
    return w.random.choice(
        (f"LEFT({text}, {n})", f"RIGHT({text}, {n})", f"SUBSTRING({text}, {n})", f"SUBSTRING({text}, {n}, 2)")
    )


def _padded(w: Writer, d: int) -> str:
    length = w.random.choice(("0", "1", "5", "-1", "12", w.leaf("integer")))
    return f"{w.random.choice(('LPAD', 'RPAD'))}({w.of('string', d)}, {length}, {w.leaf('string')})"


def _part_of(w: Writer, d: int) -> str:
    separator = w.random.choice((quoted("a"), quoted("-"), quoted(" "), w.leaf("string")))
    return f"SPLIT_PART({w.of('string', d)}, {separator}, {w.random.choice(('1', '2', '3', '0', w.leaf('integer')))})"


def _matches(w: Writer, d: int) -> str:
    return f"MATCHES({w.of('string', d)}, {quoted(w.random.choice(REGEXES))})"


def _extract(w: Writer, d: int) -> str:
    regex = w.random.choice(REGEXES)
    group = w.random.choice(("", ", 0"))
    return f"REGEX_EXTRACT({w.of('string', d)}, {quoted(regex)}{group})"


def _formatted(w: Writer, d: int) -> str:
    if w.random.random() < 0.5:
        return f"TEXT({w.number(d)}, {quoted(w.random.choice(NUMBER_FORMS))})"
    return f"TEXT({w.of(w.random.choice(('date', 'timestamp')), d)}, {quoted(w.random.choice(DATE_FORMS))})"


def _read_day(w: Writer, d: int) -> str:
    """Written days are read, and days that were written before."""
    pattern, texts = w.random.choice(list(WRITTEN_DATES.items()))
    written = quoted(w.random.choice(texts))
    name = w.random.choice(("TO_DATE", "TRY_TO_DATE", "TRY_TO_DATE"))
    if w.random.random() < 0.5:
        written = f"TEXT({w.of('date', d)}, {quoted(pattern)})"
    return f"{name}({written}, {quoted(pattern)})"


def _day(w: Writer, d: int) -> str:
    day, text = w.of("date", d), w.text("day_text", '"2026-02-28"')
    return w.random.choice(
        (
            f"DATEADD({day}, {w.few_days()})",
            f"ADD_MONTHS({day}, {w.random.choice(('1', '-1', '12', '13', '-25'))})",
            f"{w.random.choice(('MONTH_END', 'EOMONTH'))}({day})",
            _read_day(w, d),
            f"TRY_TO_DATE({w.of('string', d)})",
            f"({day} + {w.few_days()})",
            f"({day} - {w.few_days()})",
            f"TO_DATE({w.of('timestamp', d)})",
            f"TO_DATE({text})",
            f"DATE(2026, {w.random.choice(('1', '12'))}, 28)",
            f"DATE(2000 + {w.leaf('integer')}, ABS({w.leaf('integer')} % 12) + 1, 28)",
            f"DATE(YEAR({day}), MONTH({w.leaf('date')}), {w.random.choice(('1', '29'))})",
        )
    )


def _part(w: Writer, d: int) -> str:
    moment = w.of(w.random.choice(("date", "timestamp")), d)
    other = w.of(w.random.choice(("date", "timestamp")), d)
    return w.random.choice(
        (
            *(f"{name}({moment})" for name in ("YEAR", "MONTH", "DAY", "QUARTER", "WEEK", "WEEKDAY")),
            *(f"{name}({moment}, {other})" for name in ("DATEDIFF", "MONTHS_BETWEEN", "MONTHS_BETWEEN")),
        )
    )


def _year_fraction(w: Writer, d: int) -> str:
    basis = w.random.choice(("30/360", "act/360", "act/365", "act/act"))
    return f"YEARFRAC({w.of('date', d)}, {w.of(w.random.choice(('date', 'timestamp')), d)}, {quoted(basis)})"


def _to_integer(w: Writer, d: int) -> str:
    text = w.text("numeral", '" 42 "')
    return w.random.choice(
        (
            *(f"TO_INTEGER({w.number(d)})", f"TO_INTEGER({text})", f"TO_INTEGER(TO_STRING({w.of('integer', d)}))"),
            *(f"TRY_TO_INTEGER({text})", f"TRY_TO_INTEGER({w.of('string', d)})", f"TRY_TO_INTEGER({w.number(d)})"),
        )
    )


def _to_decimal(w: Writer, d: int) -> str:
    digits = w.random.choice(("", ", 18, 2", ", 38, 6", ", 30, 12"))
    text = w.text("amount_text", '"-1.005"')
    name = w.random.choice(("TO_DECIMAL", "TRY_TO_DECIMAL"))
    value = w.random.choice((w.number(d), text, w.of("string", d) if name == "TRY_TO_DECIMAL" else text))
    return f"{name}({value}{digits})"


def _to_string(w: Writer, d: int) -> str:
    return f"TO_STRING({w.any_of(d)[1]})"


def _period(w: Writer, _d: int) -> str:
    return w.random.choice(("PERIOD()", "PERIOD()", "PERIOD(-1)", "PERIOD(14)"))


def _period_day(w: Writer, _d: int) -> str:
    return w.random.choice(("PERIOD_START()", "PERIOD_END()", "PERIOD_START(-2)", "PERIOD_END(1)"))


def _chosen(kind: str) -> Recipe:
    """Of several values, one."""
    recipes = (_if(kind), _coalesce(kind), _switch(kind), _ifs(kind))
    return lambda w, d: w.random.choice(recipes)(w, d)


RECIPES: dict[str, tuple[Recipe, ...]] = {
    "boolean": (
        *(_compared, _compared, _compared, _in, _between, _like, _is_null, _junction, _junction),
        *(_test("CONTAINS"), _test("STARTS_WITH"), _test("ENDS_WITH"), _matches, _call("ISBLANK", "string")),
        _chosen("boolean"),
    ),
    "integer": (
        *(_infix("integer", "+-*%"), _infix("integer", "+-"), _round_whole, _part, _to_integer, _extreme("integer")),
        *(_call("FLOOR", "decimal"), _call("CEIL", "decimal"), _call("ABS", "integer"), _call("LEN", "string")),
        *(
            _call("MOD", "integer", "integer"),
            _call("SIGN", "decimal"),
            _power("integer"),
            _call("FIND", "string", "string"),
        ),
        _chosen("integer"),
    ),
    "decimal": (
        *(_infix("decimal", "+-*%"), _infix("decimal", "+-"), _quotient, _round, _to_decimal, _extreme("decimal")),
        *(_call("ABS", "decimal"), _call("MOD", "decimal", "integer"), lambda w, d: f"-({w.of('decimal', d)})"),
        *(_power("decimal"), _year_fraction, lambda w, d: f"PERCENT_OF({w.number(d)}, {w.number(d)})"),
        _chosen("decimal"),
    ),
    "string": (
        *(_cut, _cut, _to_string, _to_string, _extreme("string"), _period),
        *(_call("CONCAT", "string", "string"), _call("REPLACE", "string", "string", "string")),
        *(_call("UPPER", "string"), _call("LOWER", "string"), _call("TRIM", "string"), _call("PROPER", "string")),
        *(_padded, _part_of, _extract, _formatted),
        _chosen("string"),
    ),
    "date": (_day, _day, _period_day, _extreme("date"), _chosen("date")),
    "timestamp": (_extreme("timestamp"), _chosen("timestamp")),
}


def over(w: Writer, kind: str) -> str:
    """An aggregate over groups, or a value that reads one."""
    pick = w.random.choice
    keys = [pick(texts) for texts in w.random.sample(list(w.columns.values()), w.random.randint(0, 2))]
    keys = [key for key in keys if not key.startswith("params.")]
    group = f"{pick(('OVER', 'over'))} ({', '.join(dict.fromkeys(keys))})"
    if kind == "integer":
        return pick(
            (f"COUNT(*) {group}", f"COUNT({w.leaf('decimal')}) {group}", f"MAX_AGG({w.leaf('integer')}) {group}")
        )
    if kind == "decimal":
        value = w.leaf(pick(("integer", "decimal")))
        share = f"{value} / SUM({value}) {group}"
        return pick((f"SUM({value}) {group}", f"AVG({value}) {group}", share, f"COALESCE({share}, COUNT(*) OVER ())"))
    if kind == "boolean":
        return f"COUNT(*) {group} > {w.random.randint(0, 2)}"
    return f"{pick(('MIN_AGG', 'MAX_AGG'))}({w.of(kind, 2)}) {group}"


def aggregation(w: Writer, kind: str, keys: Mapping[str, Sequence[str]]) -> str:
    """An aggregation whose result is of the kind: a usual one, or an expression that reads aggregates as columns."""
    if w.random.random() < 0.75:
        return _aggregate(w, kind, keys)
    aggregates = {each: [_aggregate(w, each, keys) for _ in range(2)] for each in KINDS}
    written = Writer(w.random, {each: [*texts, *keys.get(each, ())] for each, texts in aggregates.items()}).plain(kind)
    summarises = any(text in written for texts in aggregates.values() for text in texts)
    return written if summarises else _aggregate(w, kind, keys)


def _aggregate(w: Writer, kind: str, keys: Mapping[str, Sequence[str]]) -> str:
    pick = w.random.choice
    if w.random.random() < 0.2:
        order = w.any_of(2, ORDERED)[1]
        return f"{pick(('FIRST_BY', 'LAST_BY'))}({w.of(kind, 2)}, {order})"
    if kind == "integer":
        value = w.any_of(2)[1]
        return pick(
            (
                *("COUNT(*)", "COUNT_ALL()", f"COUNT({value})", f"COUNT_DISTINCT({value})"),
                *(f"MAX_AGG({w.of('integer', 2)})", f"COUNT_IF({w.of('boolean', 2)})"),
            )
        )
    if kind == "decimal":
        value = w.number(1)
        combined = (
            f"SUM({value}) / COUNT(*)",
            f"ROUND(SUM({value}), 2)",
            f"COALESCE(SUM({value}), 0)",
            f"SUM({value}) - SUM({w.leaf('decimal')})",
        )
        conditional = f"{pick(('SUM_IF', 'AVG_IF'))}({value}, {w.of('boolean', 2)})"
        statistic = f"{pick(('MEDIAN', 'STDDEV'))}({value})"
        usual = (f"SUM({value})", f"SUM({value})", f"AVG({value})", f"MIN_AGG({w.of('decimal', 2)})")
        return pick((*usual, *combined, conditional, conditional, statistic, statistic))
    if kind == "boolean":
        return f"COUNT(*) > {w.random.randint(0, 2)}"
    extreme = f"{pick(('MIN_AGG', 'MAX_AGG'))}({w.of(kind, 1)})"
    if kind == "string" and w.random.random() < 0.3:
        order = f", {w.any_of(2, ORDERED)[1]}" if w.random.random() < 0.8 else ""
        return f"STRING_AGG({w.of('string', 2)}, {quoted(pick((', ', '', '|')))}{order})"
    if kind == "string" and keys.get("string"):
        return pick(
            (extreme, f"CONCAT({pick(keys['string'])}, TO_STRING(COUNT(*)))", f'IF(COUNT(*) > 1, "many", {extreme})')
        )
    return extreme
