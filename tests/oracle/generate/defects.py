"""Near misses: a sound project with exactly one thing wrong, and the problem type that names it."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from random import Random

from ..case import Body, Case

Defect = Callable[[Random, Body, list[Body]], Body]


def planted(random: Random, case: Case) -> tuple[str, Case]:
    """The case with one defect, and the type of the problem."""
    type = random.choice(sorted(DEFECTS))
    project, datasets = deepcopy(case.project), deepcopy(list(case.datasets))
    free = sorted(set(range(1, 70)) - {operation["seq"] for operation in case.project["operations"]})
    operations = project["operations"]
    operation = {"seq": random.choice(free), "name": "the wrong one", **DEFECTS[type](random, project, datasets)}
    operations.insert(random.randint(0, len(operations)), operation)
    return type, replace(case, project=project, datasets=tuple(datasets))


def _update(*assignments: tuple[str, str], **rest: object) -> Body:
    parts = [{"column": column, "expression": expression} for column, expression in assignments]
    return {"type": "update", "arguments": {"assignments": parts}, **rest}


def _aggregate(expression: str, keys: tuple[str, ...] = ("k",)) -> Body:
    aggregations = [{"column": "fresh", "expression": expression}] if expression else []
    return {"type": "aggregate", "arguments": {"group_by": list(keys), "aggregations": aggregations}}


def _output(**arguments: object) -> Body:
    return {"type": "output", "arguments": {"destination": {"location": "out.parquet"}, **arguments}}


def _one_of(*bodies: Body) -> Defect:
    return lambda random, _project, _datasets: random.choice(bodies)


def _duplicate_seq(random: Random, project: Body, _datasets: list[Body]) -> Body:
    return {"seq": random.choice(project["operations"])["seq"], **_update(("fresh", "1"))}


def _cycle(_random: Random, project: Body, _datasets: list[Body]) -> Body:
    project["selectors"] |= {"ONE": "n = 1 OR {{TWO}}", "TWO": "NOT {{ONE}}"}
    return {"type": "delete", "selector": "{{TWO}}"}


def _disabled(_random: Random, _project: Body, datasets: list[Body]) -> Body:
    table = {"name": "closed", "columns": [{"name": "k", "type": "string"}]}
    datasets.append({"id": "closed", "name": "closed", "status": "disabled", "main_table": table})
    return {"type": "append", "arguments": {"source": {"dataset_id": "closed"}}}


def _join(**facts: object) -> Body:
    body = _update(("fresh", "1"))
    body["arguments"]["joins"] = [{"alias": "jx", "dataset_id": "rates", "on": "k = jx.rk", **facts}]
    return body


def _check(condition: str, **arguments: object) -> Body:
    return {"type": "check", "arguments": {"assert": condition, **arguments}}


def _parameter(condition: str) -> Defect:
    """A condition over a project with the parameter `limit`, which is an integer."""

    def defect(_random: Random, project: Body, _datasets: list[Body]) -> Body:
        project["parameters"] = {**project.get("parameters", {}), "limit": {"type": "integer", "default": "5"}}
        return {"type": "delete", "selector": condition}

    return defect


def _any(*defects: Defect) -> Defect:
    return lambda random, project, datasets: random.choice(defects)(random, project, datasets)


DEFECTS: dict[str, Defect] = {
    "ColumnNotFound": _any(
        _one_of(
            _update(("fresh", "n + missing")),
            _update(("fresh", "nowhere.k")),
            _update(("fresh", "look.missing")),
            {"type": "delete", "selector": "missing IS NULL"},
            _aggregate("SUM(missing)"),
            _aggregate("COUNT(*)", ("missing",)),
            _aggregate("COUNT(*)", ("look.lk",)),
            _join(on="k = jx.missing"),
            _join(selector="n > 0"),
            _join(selector="rows.k = jx.rk"),
            _check("missing > 0"),
            _check("COUNT(*) > 0", group_by=["missing"]),
        ),
        _parameter("n > params.limt"),
    ),
    "TypeMismatch": _any(
        _parameter("k = params.limit"),
        _one_of(
            _update(("fresh", 'n + "1"')),
            _update(("fresh", "NULL")),
            _update(("n", "1.5")),
            _update(("k", "n")),
            _update(("fresh", "IF(n, 1, 2)")),
            _update(("fresh", 'COALESCE(n, "none")')),
            _update(("fresh", "TODAY() - TODAY()")),
            _update(("fresh", "n = k")),
            _aggregate("SUM(k)"),
            _check('n + "1" > 0'),
        ),
    ),
    "UnknownSelector": _one_of(
        {"type": "delete", "selector": "{{MISSING}}"}, _update(("fresh", "1"), selector="n = 1 OR {{missing}}")
    ),
    "SelectorCycle": _cycle,
    "UnknownFunction": _one_of(_update(("fresh", "VLOOKUP(n)")), {"type": "delete", "selector": "ISTEXT(k)"}),
    "AggregateMisplaced": _one_of(_update(("fresh", "SUM(n)")), {"type": "delete", "selector": "COUNT(*) > 1"}),
    "InvalidAggregation": _one_of(
        _aggregate("n + 1"),
        _aggregate("MODE(n)"),
        _aggregate("SUM(MAX_AGG(n))"),
        _aggregate("SUM(n) + n"),
        _check("n > AVG(n)"),
        _check("n > 0", group_by=["k"]),
        _check("SUM(MAX_AGG(n)) > 0"),
    ),
    "InvalidSelector": _one_of(
        {"type": "delete", "selector": "n"},
        {"type": "delete", "selector": " "},
        _join(on="CONCAT(k, jx.rk)"),
        _check("n"),
        _check("SUM(n)"),
    ),
    "EmptyAssignments": _one_of(_update()),
    "EmptyGroupBy": _one_of(_aggregate("COUNT(*)", ())),
    "EmptyAggregations": _one_of(_aggregate("")),
    "InvalidColumnName": _one_of(_update(("1st", "1")), _update(("two words", "1"))),
    "DuplicateColumn": _one_of(
        _update(("fresh", "1"), ("fresh", "2")), _update(("N", "1")), _aggregate("COUNT(*)", ("k", "k"))
    ),
    "SystemColumn": _one_of(_update(("_row_id", '"x"')), _update(("_deleted", "TRUE")), _update(("_period", "k"))),
    "DuplicateSeq": _duplicate_seq,
    "InvalidSeq": _one_of({"seq": 0, **_update(("fresh", "1"))}, {"seq": -3, **_update(("fresh", "1"))}),
    "InvalidArguments": _one_of(
        {"type": "append", "selector": "n = 1", "arguments": {"source": {"dataset_id": "extra"}}},
        _output(columns=["k"], exclude_columns=["n"]),
        {"type": "update", "arguments": {}},
        _join(period="piror"),
        _join(period={"offset": "two"}),
        {
            "type": "append",
            "arguments": {"source": {"dataset_id": "extra", "selector": "TRUE"}, "source_selector": "TRUE"},
        },
        {"type": "upsert", "arguments": {}},
    ),
    "DatasetNotFound": _one_of(
        {"type": "append", "arguments": {"source": {"dataset_id": "missing"}}}, _join(dataset_id="missing")
    ),
    "DatasetVersionNotFound": _one_of(
        {"type": "append", "arguments": {"source": {"dataset_id": "extra", "dataset_version": 99}}},
        _join(dataset_version=7),
    ),
    "DatasetDisabled": _disabled,
    "ColumnMismatch": _one_of(
        {"type": "append", "arguments": {"source": {"dataset_id": "rates"}}},
        {
            "type": "append",
            "arguments": {
                "source": {"dataset_id": "rates"},
                "aggregation": {"group_by": ["rk"], "aggregations": [{"column": "n", "expression": "COUNT(*)"}]},
            },
        },
    ),
    "ColumnProjectionError": _one_of(_output(columns=["k", "missing"]), _output(exclude_columns=["missing"])),
    "InvalidDestination": _one_of(
        _output(destination={"location": "out.parquet", "datasource_id": "files", "table": "t"}),
        _output(destination={"datasource_id": "files"}),
        _output(destination={}),
    ),
    "InvalidDatasetName": _one_of(_output(register_as_dataset="two words"), _output(register_as_dataset="")),
    "UnknownKey": _one_of({"selektor": "n = 1", "type": "delete"}, _output(colums=["k"])),
    "ExpressionParseError": _one_of(_update(("fresh", "1 +")), {"type": "delete", "selector": "(n = 1"}),
}
"""By problem type: the operation that has it; some change the project or the datasets, too."""
