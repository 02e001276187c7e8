"""Whole cases: datasets, rows, named selectors and one to twelve operations that fit together, nearly always."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import date
from random import Random
from typing import Any

from tallybook.model.columns import SYSTEM_COLUMNS, VALIDITY_COLUMNS, ColumnType

from ..case import Body, Case, TableRows
from .cells import KEYS, TEXTUAL, cell, column_type, textual
from .expressions import KINDS, Writer, aggregation, over

FREQUENT = (*KINDS, "decimal", "decimal", "integer")
PERIODS = ("2026-01", "2025-12")
READABLE = (
    "_labels",
    "_period",
    "_operation_seq",
    "_source_dataset_id",
    "_source_dataset",
    "_created_at",
    "_updated_at",
    "_deleted",
    "_source_table",
)
TYPES = {**SYSTEM_COLUMNS, **VALIDITY_COLUMNS, "_source_dataset": SYSTEM_COLUMNS["_source_dataset_id"]}
SELECTIVE = ("rows.n > 3", 'rows.k = "a"', "rows.n IS NOT NULL", 'rows.k <> "b"', "rows.n % 2 = 1", "NOT (rows.n < 10)")
"""Conditions that select some rows and leave some, so that what an operation does is seen."""
NOBODY = ("NULL", "IF(TRUE, NULL)", "COALESCE(NULL, NULL)", "(NULL)", "NULL AND NULL")
OF_IDS = ("_row_id IS NOT NULL", 'STARTS_WITH(_row_id, "0198")', '_row_id < "0199"')
"""What can be asked of ids without knowing new ones: those that came with the data begin with 0198."""
Columns = dict[str, ColumnType]


def case(random: Random, operations: int = 12) -> Case:
    """A case with at most so many operations."""
    return _Builder(random).build(random.randint(1, operations))


@dataclass
class _Builder:
    random: Random
    tables: dict[tuple[str, str], TableRows] = field(default_factory=dict)
    datasets: list[Body] = field(default_factory=list)
    columns: dict[str, Columns] = field(default_factory=dict)
    """Of the main table of each dataset."""
    lookups: dict[str, str] = field(default_factory=dict)
    """The datasets whose rows are looked up, by alias."""
    made_joins: list[list[Body]] = field(default_factory=list)
    """The joins of the updates so far."""

    def build(self, count: int) -> Case:
        self.wild = self.random.random() < 0.4
        self.forking = self.random.random() < 0.5
        self.joining = self.random.choice((0.35, 0.35, 0.8))
        self.ruled = self.random.random() < 0.3
        self.allocating = self.random.random() < 0.4
        self.parameters = self._parameters() if self.random.random() < 0.5 else {}
        self._joinable("rates", "r", unique=self.random.random() < 0.85)
        self._joinable("names", "l", unique=self.random.random() < 0.9)
        self._main()
        self._extra()
        self.working = dict(self.columns["main"])
        self.system = [*SYSTEM_COLUMNS, *(VALIDITY_COLUMNS if self._mode("main") == "bitemporal" else ())]
        selectors = self._selectors()
        self.seqs = sorted(self.random.sample(range(1, 60), count))
        operations: list[Body] = []
        for seq in self.seqs:
            operations.append(self._same_by_other_keys(seq, operations) or self._operation(seq, selectors))
        self.random.shuffle(operations)
        project = {"id": "p", "name": "P", "input_dataset_id": "main", "selectors": selectors, "operations": operations}
        project |= {"parameters": self.parameters} if self.parameters else {}
        as_of = self.random.choice((date(2026, 1, 1), date(2026, 1, 31), date(2024, 2, 29)))
        return Case(project, tuple(self.datasets), self.tables, self.random.choice((*PERIODS[:1] * 4, *PERIODS)), as_of)

    def _parameters(self) -> Body:
        """A parameter of each kind, with a default as its text."""
        pick = self.random.choice
        defaults = {
            "integer": pick(("0", "3", "-7")),
            "decimal": pick(("2.5", "-0.005", "1000")),
            "string": pick(("a", "", "it's")),
            "boolean": pick(("true", "false")),
            "date": pick(("2026-01-31", "2024-02-29")),
            "timestamp": pick(("2026-01-31T12:00:00+00:00", "2025-12-31T23:59:59.500000+00:00")),
        }
        return {f"p_{kind}": {"type": kind, "default": default} for kind, default in defaults.items()}

    def _with_parameters(self, texts: dict[str, list[str]]) -> dict[str, list[str]]:
        for name, parameter in self.parameters.items():
            if self.random.random() < 0.4:
                texts.setdefault(str(parameter["type"]), []).append(f"params.{name}")
        return texts

    # --- datasets ---------------------------------------------------------------------------------------------------

    def _main(self) -> None:
        columns: Columns = {"k": ColumnType("string"), "n": ColumnType("integer")}
        for index in range(self.random.randint(1, 6)):
            kind = self.random.choice(FREQUENT)
            columns[f"{kind[0]}{index}"] = column_type(self.random, kind, self.wild)
        columns |= {name: ColumnType("string") for name in TEXTUAL if self.random.random() < 0.45}
        self.lookups = {"look": "names"}
        if self.random.random() < 0.3:
            self.lookups["look2"] = "rates"
        bodies = [self._lookup(alias, id) for alias, id in self.lookups.items()]
        self._dataset("main", "rows", columns, self._count())["lookups"] = bodies

    def _count(self) -> int:
        return 0 if self.random.random() < 0.08 else self.random.randint(2, 9)

    def _lookup(self, alias: str, id: str) -> Body:
        key, number, *_ = self.columns[id]
        conditions = [{"source_column": "k", "target_column": key}]
        if self.random.random() < 0.3:
            conditions.append({"source_column": "n", "target_column": number})
        target: Body = {"dataset_id": id}
        if self.random.random() < 0.4:
            target = {**self._body(id)["main_table"], "name": f"own_{id}"}
            self.tables["main", f"own_{id}"] = self.tables[id, f"{id}_table"]
        return {"alias": alias, "target": target, "join_conditions": conditions}

    def _joinable(self, id: str, prefix: str, unique: bool) -> None:
        columns = {f"{prefix}k": ColumnType("string"), f"{prefix}n": ColumnType("integer")}
        for kind in self.random.sample(KINDS, 3):
            columns[f"{prefix}_{kind}"] = column_type(self.random, kind, self.wild)
        self._dataset(id, f"{id}_table", columns, self.random.randint(0, 5), key=f"{prefix}k" if unique else None)

    def _extra(self) -> None:
        """What append reads: columns of the main table, some of them of a narrower type, some missing."""
        columns: Columns = {}
        for name, type in self.columns["main"].items():
            if self.random.random() < 0.75:
                slim = {"decimal": "integer", "timestamp": "date"}.get(type.kind)
                narrower = slim is not None and self.random.random() < 0.3
                columns[name] = ColumnType(slim) if narrower and slim else type
                if type.kind == "decimal" and not narrower and self.random.random() < 0.2:
                    columns[name] = column_type(self.random, "decimal", self.wild)
        self._dataset("extra", "extra_table", columns or {"k": ColumnType("string")}, self.random.randint(0, 6))

    def _body(self, id: str) -> Body:
        return next(body for body in self.datasets if body["id"] == id)

    def _mode(self, id: str) -> str:
        return str(self._body(id)["main_table"]["temporal_mode"])

    def _joined(self, id: str) -> Columns:
        """What is read of a dataset as `alias.column`: its columns, and those of its temporal mode."""
        hidden = {"period": ("_period",), "bitemporal": tuple(VALIDITY_COLUMNS)}.get(self._mode(id), ())
        return {**self.columns[id], **{name: TYPES[name] for name in hidden}}

    def _dataset(self, id: str, table: str, columns: Columns, count: int, key: str | None = None) -> Body:
        mode = self.random.choice(("none", "none", "period", "bitemporal"))
        columns_body = [{"name": name, "type": str(type)} for name, type in columns.items()]
        body: Body = {"id": id, "name": id}
        body["main_table"] = {"name": table, "temporal_mode": mode, "columns": columns_body}
        types = {**columns, **self._given_system(mode)}
        rows = [self._row(types, index, key) for index in range(count)]
        self.datasets.append(body)
        self.columns[id] = columns
        self.tables[id, table] = TableRows(types, rows)
        return body

    def _given_system(self, mode: str) -> Columns:
        """System columns that come with the data."""
        given = [n for n in ("_deleted", "_labels", "_created_at", "_row_id") if self.random.random() < 0.2]
        given += ["_period"] if mode == "period" or self.random.random() < 0.15 else []
        given += [*VALIDITY_COLUMNS] if mode == "bitemporal" else []
        return {name: TYPES[name] for name in given}

    def _row(self, types: Columns, index: int, key: str | None) -> dict[str, object]:
        row = {name: cell(self.random, type, self.wild) for name, type in types.items()}
        row |= {name: textual(self.random, name) for name in TEXTUAL if name in types}
        for name in types:
            if name.endswith("k") and types[name].kind == "string":
                row[name] = KEYS[index % len(KEYS)] if name == key else self.random.choice((*KEYS, None))
        if key is not None and index >= len(KEYS):
            row[key] = None
        special: dict[str, Any] = {
            "_row_id": f"0198{index:04x}-0000-7000-8000-{self.random.getrandbits(48):012x}",
            "_period": self.random.choice((*PERIODS, None)) if self.random.random() < 0.3 else PERIODS[0],
            "_deleted": self.random.choice((True, False, None)),
            "_valid_from": self.random.choice((None, *[date(2020, 1, 1)] * 4, date(2026, 1, 1), date(2026, 1, 31))),
            "_valid_to": self.random.choice((None, None, date(2026, 1, 1), date(2026, 1, 31), date(2027, 1, 1))),
            "_labels": self.random.choice(("", "x", "x,y")),
        }
        return row | {name: value for name, value in special.items() if name in types}

    # --- what expressions can read ----------------------------------------------------------------------------------

    def _writer(self, joined: dict[str, Columns] | None = None) -> Writer:
        joined = joined or {}
        looked_up = {alias: self._joined(id) for alias, id in self.lookups.items() if self.random.random() < 0.4}
        texts: dict[str, list[str]] = {}
        bare = {**self.working, **{name: TYPES[name] for name in self.random.sample(READABLE, 2)}}
        for name, type in bare.items():
            qualified = self.random.random() < 0.15 or any(name in columns for columns in joined.values())
            read = f"`{name}`" if self.random.random() < 0.05 else name
            texts.setdefault(name if name in TEXTUAL else type.kind, []).append(f"rows.{read}" if qualified else read)
        for alias, columns in {**looked_up, **joined}.items():
            for name, type in columns.items():
                kind = name if name in TEXTUAL else type.kind
                texts.setdefault(kind, []).extend([f"{alias}.{name}"] * 2)
        return Writer(self.random, self._with_parameters(texts))

    def _source_writer(self, id: str, table: str) -> Writer:
        texts: dict[str, list[str]] = {}
        for name, type in self.columns[id].items():
            kind = name if name in TEXTUAL else type.kind
            texts.setdefault(kind, []).append(self.random.choice((name, name, f"{table}.{name}")))
        texts.setdefault("string", []).extend(self.random.sample(("_period", "_source_table", "_source_dataset"), 1))
        return Writer(self.random, self._with_parameters(texts))

    def _selectors(self) -> dict[str, str]:
        texts: dict[str, list[str]] = {}
        for name, type in self.columns["main"].items():
            texts.setdefault(type.kind, []).append(name)
        self._with_parameters(texts)
        found: dict[str, str] = {}
        for index in range(self.random.randint(0, 3)):
            text = self._nobody() or Writer(self.random, texts).of("boolean")
            if found and self.random.random() < 0.6:
                text = f"{text} {self.random.choice(('AND', 'OR'))} {{{{{self.random.choice(list(found))}}}}}"
            found[f"S{index}"] = text
        return found

    def _nobody(self) -> str | None:
        """Now and then, a condition that has no type but that of NULL."""
        return self.random.choice(NOBODY) if self.random.random() < 0.03 else None

    def _condition(self, writer: Writer, selectors: dict[str, str]) -> str:
        if self.random.random() < 0.05:
            return self.random.choice((*NOBODY, *OF_IDS))
        if selectors and self.random.random() < 0.3:
            named = f"{{{{{self.random.choice(list(selectors))}}}}}"
            return self.random.choice((named, f"NOT {named}", f"{named} OR {writer.of('boolean', 2)}"))
        if self.random.random() < 0.25:
            return self._of_some_rows(writer)
        return self.random.choice(SELECTIVE) if self.random.random() < 0.5 else writer.of("boolean")

    def _of_some_rows(self, writer: Writer) -> str:
        """A condition that is the same for all rows of an origin, perhaps with another one."""
        seq = self.random.choice((0, *self.seqs))
        column = self.random.choice(list(self.working))
        choices = (
            f"_operation_seq {self.random.choice(('=', '<>', '>=', '<'))} {seq}",
            f"rows.{column} IS {self.random.choice(('', 'NOT '))}NULL",
            f'_source_dataset_id {self.random.choice(("=", "<>"))} "extra"',
            f"_operation_seq IN (0, {seq})",
            '_labels = ""',
            "_deleted",
            "NOT _deleted",
            "_updated_at = _created_at",
        )
        origin = self.random.choice(choices)
        if self.random.random() < 0.6:
            return origin
        other = writer.of("boolean", 2) if self.random.random() < 0.5 else self.random.choice(choices)
        return f"{origin} {self.random.choice(('AND', 'OR'))} {other}"

    # --- operations -------------------------------------------------------------------------------------------------

    def _operation(self, seq: int, selectors: dict[str, str]) -> Body:
        makers = (self._update, self._update, self._update, self._aggregate, self._append, self._delete, self._output)
        makers = (*makers, self._allocate) if self.allocating else makers
        makers = (*makers, self._check)
        forks = (self._aggregate, self._aggregate, self._output, self._output) if self.forking else ()
        maker = self.random.choice((*makers, *forks))
        joins = self._joins() if maker == self._update and self.random.random() < self.joining else []
        aliases = {join["alias"]: self._result(join) for join in joins}
        if "self" in aliases:
            selectors = {}  # they read columns by their bare names, which are ambiguous here
        writer = self._writer(aliases)
        body: Body = {"seq": seq, "name": f"op {seq}"}
        chance = 0.85 if maker == self._delete else 0.5
        if maker != self._append and self.random.random() < chance:
            body["selector"] = self._condition(writer if self.random.random() < 0.3 else self._writer(), selectors)
            if joins and not any(alias in str(body["selector"]) for alias in aliases):
                body["selector"] = self._condition(self._writer(aliases), selectors)
        made = body | maker(writer, joins)
        if maker == self._output:  # each has a place of its own
            made["arguments"] = {"destination": {"location": f"out-{seq}.parquet"}, **made["arguments"]}
        return made

    def _same_by_other_keys(self, seq: int, before: list[Body]) -> Body | None:
        """Sometimes the aggregate before it once more, by other columns: the engine may compute both in one pass."""
        if not (self.forking and before and before[-1]["type"] == "aggregate" and self.random.random() < 0.5):
            return None
        arguments = before[-1]["arguments"]
        keys, results = arguments["group_by"], arguments["aggregations"]
        free = [name for name in self.working if name not in {*keys, *(result["column"] for result in results)}]
        if not free:
            return None
        other = self.random.sample(free, self.random.randint(1, min(2, len(free))))
        also = keys if self.random.random() < 0.7 else []
        if self.random.random() < 0.7:
            before[-1]["selector"] = self.random.choice(("_operation_seq = 0", "_operation_seq = 0 AND n > 0"))
        return {**before[-1], "seq": seq, "name": f"op {seq}", "arguments": {**arguments, "group_by": [*also, *other]}}

    def _joins(self) -> list[Body]:
        """Often the joins of an earlier update once more: the engine may join their tables only once."""
        repeats = self.made_joins and self.random.random() < 0.5
        joins = self.random.choice(self.made_joins) if repeats else self._new_joins()
        self.made_joins.append(joins)
        return joins

    def _new_joins(self) -> list[Body]:
        if self.random.random() < 0.08:
            return [{"alias": "self", "dataset_id": "main", "on": "rows.k = self.k AND rows.n = self.n"}]
        joins: list[Body] = []
        alias = "j1"
        on = ["k = j1.rk", "j1.rk = k AND n >= j1.rn", "n = j1.rn", "rows.k = j1.rk AND j1.rn IS NOT NULL"]
        on += ["TO_INTEGER(k) = j1.rn", "n * 9000000000000000000 = j1.rn"]  # not for every row
        on += ["n > j1.rn", 'j1.rk = CONCAT(k, "")', "k = j1.rk AND n = j1.rn", "FALSE", "UPPER(k) = UPPER(j1.rk)"]
        joins.append(self._source("rates", "r", alias) | {"on": self.random.choice((on[0], on[0], *on))})
        if self.random.random() < 0.25:
            on = ["j2.lk = rows.k", "j2.lk = j1.rk", "j2.ln = j1.rn AND j2.lk = rows.k"]
            joins.append(self._source("names", "l", "j2") | {"on": self.random.choice(on)})
        return joins

    def _source(self, id: str, prefix: str, alias: str) -> Body:
        """A joined source. An aggregation keeps the names that conditions read: it is by the key."""
        source: Body = {"alias": alias, "dataset_id": id} | self._time(id)
        if self.random.random() < 0.3:
            source["selector"] = self._nobody() or self._source_writer(id, alias).of("boolean", 2)
        days = [name for name, type in self.working.items() if type.kind == "date"]
        if self._mode(id) == "bitemporal" and "period" not in source and days and self.random.random() < 0.4:
            return source | {"as_of": self.random.choice(days)}
        if self.random.random() < 0.3:
            writer = self._source_writer(id, alias)
            results = {f"{prefix}n": f"MAX_AGG({prefix}n)", f"{prefix}_sum": f"SUM({prefix}n)"}
            results[f"{prefix}_some"] = aggregation(writer, "decimal", {})
            listed = [{"column": name, "expression": text} for name, text in results.items()]
            keys = [f"{prefix}k", *(["_period"] if self.random.random() < 0.3 else [])]
            source["aggregation"] = {"group_by": keys, "aggregations": listed}
        return source

    def _time(self, id: str) -> Body:
        """Now and then another period, or the last day of one."""
        mode = self._mode(id)
        if mode == "none" or self.random.random() < 0.5:
            return {}
        words: list[Any] = ["prior", "next", "same_last_year", {"offset": -1}, {"offset": 0}]
        period = self.random.choice([*words, "year_to_date", "year_to_date"] if mode == "period" else words)
        as_of = {"as_of": "period_end"} if mode == "bitemporal" and self.random.random() < 0.4 else {}
        return ({} if as_of and self.random.random() < 0.5 else {"period": period}) | as_of

    def _result(self, join: Body) -> Columns:
        """What is read of a join as `alias.column`."""
        if "aggregation" not in join:
            return self._joined(join["dataset_id"])
        key, number, *_ = self.columns[join["dataset_id"]]
        prefix = key[0]
        columns = {key: ColumnType("string"), number: ColumnType("integer")}
        columns |= {f"{prefix}_sum": ColumnType("decimal"), f"{prefix}_some": ColumnType("decimal")}
        return columns | ({"_period": TYPES["_period"]} if "_period" in join["aggregation"]["group_by"] else {})

    def _update(self, writer: Writer, joins: list[Body]) -> Body:
        if self.ruled and self.random.random() < 0.7:
            return self._rule()
        targets: dict[str, str] = {}
        for _ in range(self.random.randint(1, 3)):
            if self.random.random() < 0.5:
                name = self.random.choice([name for name in self.working if name not in TEXTUAL])
                targets[name] = self.working[name].kind
            elif self.random.random() < 0.9:
                kind = self.random.choice(FREQUENT)
                targets[f"{kind[0]}u{len(self.working) + len(targets)}"] = kind
            else:
                targets["_labels"] = "string"
        assignments = [
            {"column": name, "expression": self._value(writer, name, kind)} for name, kind in targets.items()
        ]
        for name, kind in targets.items():
            if name not in self.working and name != "_labels":
                self.working[name] = ColumnType(kind)
        arguments: Body = {"assignments": assignments}
        return {"type": "update", "arguments": arguments | ({"joins": joins} if joins else {})}

    def _rule(self) -> Body:
        """One of several updates of the same column that do not read it."""
        value = self.random.choice(('"one"', '"two"', "rows.k", 'CONCAT(rows.k, "!")', "TO_STRING(rows.n)"))
        self.working.setdefault("rule", ColumnType("string"))
        return {"type": "update", "arguments": {"assignments": [{"column": "rule", "expression": value}]}}

    def _value(self, writer: Writer, name: str, kind: str) -> str:
        if name in self.working and self.random.random() < 0.1:
            return "NULL"
        if kind == "decimal" and name in self.working and self.random.random() < 0.5:
            return writer.leaf("decimal")
        if self.random.random() < 0.12:
            return over(writer, kind)
        return writer.plain(kind) if self.random.random() < 0.5 else writer.of(kind)

    def _grouping(self, writer: Writer, columns: Columns, system: tuple[str, ...]) -> tuple[list[str], Writer, Columns]:
        pool = [*columns, *(name for name in system if self.random.random() < 0.2)]
        keys = self.random.sample(pool, self.random.randint(1, min(2, len(pool))))
        return keys, writer, {name: columns[name] for name in keys if name in columns}

    def _aggregate(self, writer: Writer, _joins: list[Body]) -> Body:
        bounds = tuple(name for name in VALIDITY_COLUMNS if name in self.system)
        system = ("_period", "_labels", "_operation_seq", "_source_dataset", "_source_table", "_deleted", *bounds)
        keys, _, own = self._grouping(writer, self.working, system)
        by_kind: dict[str, list[str]] = {}
        for name, type in own.items():
            by_kind.setdefault(type.kind, []).append(name)
        aggregations: list[Body] = []
        for index in range(self.random.randint(1, 3)):
            free = [n for n in self.working if n not in keys and n not in {a["column"] for a in aggregations}]
            if free and self.random.random() < 0.5:
                name = self.random.choice(free)
                kind = self.working[name].kind
            else:
                kind = self.random.choice(FREQUENT)
                name = f"{kind[0]}a{len(self.working)}_{index}"
            text = aggregation(writer, kind, by_kind)
            if kind == "integer" and name in self.working and self.random.random() < 0.3:
                text = f"SUM({writer.leaf('integer')})"
            aggregations.append({"column": name, "expression": text})
            self.working.setdefault(name, ColumnType(kind))
        return {"type": "aggregate", "arguments": {"group_by": keys, "aggregations": aggregations}}

    def _append(self, _writer: Writer, _joins: list[Body]) -> Body:
        id, table = ("main", "rows") if self.random.random() < 0.15 else ("extra", "extra_table")
        writer = self._source_writer(id, table)
        columns = self.columns[id]
        source: Body = {"dataset_id": id} | self._time(id)
        arguments: Body = {"source": source}
        if self.random.random() < 0.5:
            selector = self._nobody() or writer.of("boolean")
            source |= {"selector": selector} if self.random.random() < 0.5 else {}
            arguments |= {} if "selector" in source else {"source_selector": selector}
        if self.random.random() < 0.4:
            keys, _, own = self._grouping(writer, columns, ("_period",))
            by_kind: dict[str, list[str]] = {}
            for name, type in own.items():
                by_kind.setdefault(type.kind, []).append(name)
            free = [name for name in self.working if name not in keys]
            if free:
                names = self.random.sample(free, min(len(free), self.random.randint(1, 2)))
                texts = {name: aggregation(writer, self.working[name].kind, by_kind) for name in names}
                aggregations = [{"column": name, "expression": text} for name, text in texts.items()]
                place = source if self.random.random() < 0.5 else arguments
                place["aggregation"] = {"group_by": keys, "aggregations": aggregations}
        return {"type": "append", "arguments": arguments}

    def _allocate(self, writer: Writer, _joins: list[Body]) -> Body:
        id = self.random.choice(("rates", "names"))
        key, number, *_ = self.columns[id]
        amounts = [name for name, type in self.working.items() if type.is_number]
        driver = self.random.choice(
            (
                f"COALESCE(ABS(targets.{number}), 0) + 1",
                f"ABS(targets.{number})",
                "1",
                "1.50",
                f"targets.{number}",
                "rows.n",
            )
        )
        arguments: Body = {"amount": self.random.choice(amounts), "to": {"dataset_id": id}, "driver": driver}
        if self.random.random() < 0.5:
            arguments["match"] = self.random.choice((f"rows.k = targets.{key}", f"rows.n >= targets.{number}", "TRUE"))
        if self.random.random() < 0.5:
            arguments["pool"] = self.random.choice(("keep", "delete", "reverse"))
        if self.random.random() < 0.3:
            arguments["to"]["selector"] = f"{number} > 0"
        if self.random.random() < 0.5 and arguments["amount"] != "k":
            expression = self.random.choice(
                (f"targets.{key}", f"CONCAT(rows.k, targets.{key})", writer.of("string", 2))
            )
            arguments["set"] = [{"column": "k", "expression": expression}]
        return {"type": "allocate", "arguments": arguments}

    def _delete(self, _writer: Writer, _joins: list[Body]) -> Body:
        return {"type": "delete"}

    def _check(self, writer: Writer, _joins: list[Body]) -> Body:
        arguments: Body = {"on_failure": self.random.choice(("warn",) * 6 + ("fail",))}
        if self.random.random() < 0.5:
            return {"type": "check", "arguments": arguments | {"assert": writer.of("boolean")}}
        by_kind: dict[str, list[str]] = {}
        if self.random.random() < 0.6:
            arguments["group_by"], _, own = self._grouping(writer, self.working, ("_period", "_operation_seq"))
            for name, type in own.items():
                by_kind.setdefault(type.kind, []).append(name)
        kind = self.random.choice(("integer", "decimal", "boolean"))
        text = aggregation(writer, kind, by_kind)
        more = "" if kind == "boolean" else self.random.choice((" > 2", " IS NOT NULL", " <> 0", " BETWEEN -5 AND 100"))
        return {"type": "check", "arguments": arguments | {"assert": f"({text}){more}"}}

    def _output(self, _writer: Writer, _joins: list[Body]) -> Body:
        arguments: Body = {}
        names = [*self.working, *self.system]
        if self.random.random() < 0.4:
            names[names.index("_source_dataset_id")] = "_source_dataset"
        shape = self.random.random()
        if shape < 0.35:
            chosen = self.random.sample(names, self.random.randint(1, len(names)))
            renamed = [name for name in chosen if name in self.working and self.random.random() < 0.2]
            arguments["columns"] = [{name: f"{name} of the run"} if name in renamed else name for name in chosen]
        elif shape < 0.4:
            arguments["exclude_columns"] = "system"
        elif shape < 0.55:
            arguments["exclude_columns"] = self.random.sample(names, self.random.randint(1, 3))
        if self.random.random() < 0.4:
            arguments["include_deleted"] = True
        return {"type": "output", "arguments": arguments}
