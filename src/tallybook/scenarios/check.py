"""Checks scenarios before anything runs: every name, value and expectation."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path as LocalPath
from pathlib import PurePosixPath
from types import MappingProxyType

from tallybook.errors import Problem, ProblemError, UsageError, did_you_mean
from tallybook.expressions.parameters import read_parameters
from tallybook.model.columns import PERIOD, VALID_FROM, ColumnType
from tallybook.model.dataset import Dataset, Table
from tallybook.model.datasource import named_format
from tallybook.model.period import Period
from tallybook.model.relative_period import RunPeriod
from tallybook.project.check import missing_calendar
from tallybook.project.check_result import CheckResult
from tallybook.project.entities import DocumentPart
from tallybook.project.load import Definitions
from tallybook.project.unread import Unread, may_give_dataset, missing_project, repeats
from tallybook.project.yaml import Path
from tallybook.resolve.render import check_no_tokens
from tallybook.resolve.targets import path_target
from tallybook.scenarios.load import Case, read_case, unread_case
from tallybook.scenarios.model import ExpectedRows, FileRows, Row, Rows
from tallybook.scenarios.values import read_given, read_value
from tallybook.source import Place


def check_scenarios(checked: CheckResult) -> Iterator[Problem]:
    """Returns the problems of all scenarios, each once. Leaves out those that the check of the workspace reports: a
    broken file, or a project with problems, is not also a problem of each scenario that needs it."""
    reported: dict[tuple[str, Place | None], list[str]] = {}
    for problem in checked.problems:
        reported.setdefault((problem.type, problem.place), []).append(problem.message)
    for case in read_cases(checked):
        for problem in (*case.problems, *(() if case.expects_error else case.refused)):
            messages = reported.setdefault((problem.type, problem.place), [])
            if not any(repeats(problem, message) for message in messages):
                messages.append(problem.message)
                yield problem


def read_cases(checked: CheckResult) -> list[Case]:
    """Reads and checks all scenarios of a workspace."""
    return [_checked(read_case(part, checked), checked) for part in checked.definitions.scenarios]


def choose_cases(checked: CheckResult, paths: Sequence[LocalPath] = (), text: str = "") -> list[Case]:
    """Returns the scenarios in these files or folders with this text in their name or file; by default all.

    A file that cannot be read and could contain one of them is a case with errors.
    """
    missing = next((path for path in paths if not path.exists()), None)
    if missing is not None:
        raise UsageError(f"there is no file or folder {missing.absolute()}")
    definitions = checked.definitions
    root = definitions.root.resolve()

    def is_chosen(file: str) -> bool:
        folders = (root / file, *(root / file).parents)
        return not paths or any(folder.samefile(path) for path in paths for folder in folders)

    unread = [unread_case(file, checked) for file in definitions.unread if file.may_have_scenarios]
    cases = [case for case in read_cases(checked) if is_chosen(case.file)]
    chosen = [case for case in cases if text.lower() in f"{case.file} {case.name}".lower()]
    broken = [case for case in unread if is_chosen(case.file)]
    if not chosen and not broken and (paths or text):
        wanted = " and ".join([*(f"'{path}'" for path in paths), *([f"'{text}'"] if text else [])])
        number = len(definitions.scenarios)
        hint = f"the workspace has {number} scenario{'' if number == 1 else 's'}"
        raise UsageError(f"no scenario matches {wanted}", hint)
    return [*chosen, *broken]


def _checked(case: Case, workspace: CheckResult) -> Case:
    if case.scenario is None:
        return case
    case, problems = _with_period(case, workspace.definitions)
    problems += _check_project(case)
    problems += _check_parameters(case)
    problems += _check_own_datasets(case, workspace.definitions.datasets)
    problems += _check_data(case, workspace.definitions.unread)
    if not case.expects_error:
        problems += _check_missing(case)
        problems += _check_periods(case)
    if not case.refused:
        problems += _check_expectations(case)
    return replace(case, problems=(*case.problems, *problems))


def _with_period(case: Case, definitions: Definitions) -> tuple[Case, list[Problem]]:
    calendar = case.checked.calendar
    if calendar is None:
        return case, missing_calendar(definitions)
    try:
        return replace(case, period=case.body.period.within(calendar)), []
    except ProblemError as error:
        return case, [case.part.locate(error.problem, "period")]


def _check_project(case: Case) -> Iterator[Problem]:
    definitions, project = case.checked.definitions, str(case.body.project)
    if case.bound is None and not case.refused:
        for problem in missing_project(project, definitions.projects, definitions.unread):
            yield case.part.locate(problem, "project")


def _check_parameters(case: Case) -> Iterator[Problem]:
    """Reports parameters that the project does not have, values of another type, and those that have no value."""
    given = {name: value for name, value in case.body.parameters.items() if value is not None}
    declared = case.bound.head.parameters if case.bound is not None and not case.refused else None
    for problem in () if declared is None else read_parameters(declared, given)[1]:
        path = ("parameters", problem.path or "")
        missing = problem.type == "InvalidArguments"
        hint = f"add `{problem.path}` under `parameters` of the scenario" if missing else problem.hint
        located = case.part.problem(path, problem.type, problem.message, hint)
        yield replace(located, place=case.part.place(path, key=problem.type == "ColumnNotFound"))


def _check_own_datasets(case: Case, others: Collection[str]) -> Iterator[Problem]:
    own = [dataset.id for dataset in case.body.datasets]
    for index, id in enumerate(own):
        if id in others or id in own[:index]:
            message = f"the dataset '{id}' already exists"
            yield case.part.problem(("datasets", index, "id"), "DuplicateId", message, "choose another id")


def _check_data(case: Case, unread: Sequence[Unread]) -> Iterator[Problem]:
    for dataset_id, tables in case.body.data.items():
        dataset = case.dataset(dataset_id)
        if dataset is None and (broken := [*may_give_dataset(dataset_id, unread)]):
            yield from broken
            continue
        if dataset is None:
            hint = did_you_mean(dataset_id, case.checked.datasets.versions)
            message = f"there is no dataset '{dataset_id}'"
            yield _at_key(case.part, ("data", dataset_id), "DatasetNotFound", message, hint)
            continue
        defined = tables_of(dataset)
        for name, given in tables.items():
            path = ("data", dataset_id, name)
            if name in defined:
                yield from _check_given(given, defined[name], case, path)
            else:
                message = f"dataset '{dataset_id}' has no table '{name}'"
                yield _at_key(case.part, path, "InvalidArguments", message, did_you_mean(name, defined))


def tables_of(dataset: Dataset) -> dict[str, Table]:
    """Returns the tables of a dataset: its main table, and those that its lookups define."""
    targets = (lookup.target for lookup in dataset.lookups)
    inner = {target.name: target for target in targets if isinstance(target, Table)}
    return inner | {dataset.main_table.name: dataset.main_table}


def _check_given(given: Rows, table: Table, case: Case, path: Path) -> Iterator[Problem]:
    if isinstance(given, FileRows):
        yield from _check_file(given.file, case, path)
        return
    types = table.business_types | table.system_types
    required = {column.name for column in table.columns if not column.nullable}
    for index, row in enumerate(given):
        here = (*path, index)
        yield from _check_row(row, types, case.part, here, f"table '{table.name}'", exact=True)
        for name in required & row.keys():
            if row[name] is None:
                message = f"'{name}' is not nullable, so a row cannot have NULL in it"
                yield case.part.problem((*here, name), "TypeMismatch", message)
        if table.temporal_mode == "bitemporal" and VALID_FROM not in row:
            message = f"a row of '{table.name}' needs '{VALID_FROM}', the first day on which it is valid"
            yield case.part.problem(here, "InvalidArguments", message, f"add {VALID_FROM}: 2026-01-01")


def _check_file(file: str, case: Case, path: Path) -> Iterator[Problem]:
    where = (*path, "file")
    for problem in check_no_tokens(case.part.text(where) or file, "write the name of the file itself"):
        yield case.part.locate(problem, *where)
    if PurePosixPath(file).suffix[1:].isalpha() and named_format(file) is None:
        hint = "use one of: csv, json, orc, parquet, delta, xlsx"
        yield case.part.problem(where, "InvalidArguments", f"the format of '{file}' cannot be read", hint)
    root = case.checked.definitions.root
    try:
        inside = PurePosixPath(path_target(file, root)).is_relative_to(root.absolute())
    except ProblemError:
        inside = False
    if not inside:
        hint = "keep test data in the workspace, and write the path relative to the workspace"
        yield case.part.problem(where, "InvalidArguments", f"'{file}' is not inside the workspace", hint)


def _check_row(
    row: Row,
    types: Mapping[str, ColumnType],
    part: DocumentPart,
    path: Path,
    what: str,
    *,
    exact: bool,
    renamed: Mapping[str, str] = MappingProxyType({}),
) -> Iterator[Problem]:
    """`renamed` has the written name of each column that an output renames, with its name in the project."""
    for name, value in row.items():
        here = (*path, name)
        if name not in types:
            written = next((new for new, old in renamed.items() if old == name), None)
            hint = did_you_mean(name, types) if written is None else f"the output writes it as '{written}'"
            yield _at_key(part, here, "ColumnNotFound", f"{what} has no column '{name}'", hint)
            continue
        try:
            _ = read_given(name, value, types[name]) if exact else read_value(value, types[name], exact=False)
        except ValueError as error:
            yield part.problem(here, "TypeMismatch", f"column '{name}' is {types[name]}: {error}")


def _check_missing(case: Case) -> Iterator[Problem]:
    """Reports tables that the project reads but the scenario does not give, not even as an empty list."""
    for source in case.sources:
        dataset_id, table = source.dataset.id, source.table.name
        if table not in case.body.data.get(dataset_id, {}):
            message = (
                f"the project reads table '{table}' of dataset '{dataset_id}', but the scenario gives no rows for it"
            )
            path: Path = ("data", dataset_id) if dataset_id in case.body.data else ("data",)
            hint = f"add rows, or `{table}: []` for an empty table"
            yield _at_key(case.part, path, "DataNotFound", message, hint)


def _check_periods(case: Case) -> Iterator[Problem]:
    """Reports rows without `_period` of tables that the project reads for other periods only: it would never see
    them."""
    calendar = case.checked.calendar
    if case.period is None or calendar is None:
        return
    read: dict[tuple[str, str], list[Period]] = {}
    for source in case.sources:
        if source.table.temporal_mode == "period":
            try:
                wanted = source.periods(RunPeriod(case.period, calendar))
            except ProblemError:  # it fails the scenario, too
                return
            read.setdefault((source.dataset.id, source.table.name), []).extend(wanted)
    for (dataset_id, table), periods in read.items():
        given = case.body.data.get(dataset_id, {}).get(table, ())
        if case.period in periods or isinstance(given, FileRows):
            continue
        names = ", ".join(dict.fromkeys(period.identifier for period in periods))
        for index, row in enumerate(given):
            if PERIOD not in row:
                message = (
                    f"the project reads '{table}' for {names}, but a row without `{PERIOD}` belongs to "
                    f"{case.period.identifier}, the period of the scenario"
                )
                hint = f"add `{PERIOD}: {periods[0].identifier}`"
                yield case.part.problem(("data", dataset_id, table, index), "InvalidArguments", message, hint)


def _check_expectations(case: Case) -> Iterator[Problem]:
    expect, bound = case.body.expect, case.bound
    if expect is None or bound is None or bound.schema is None:
        return
    outputs = {str(output.seq): output for output in case.outputs}
    final = bound.steps[-1].after.columns
    shown = case.outputs[-1].columns if outputs else final
    what = "the last output" if outputs else "the working dataset"
    renamed = case.outputs[-1].renamed if outputs else {}
    yield from _check_expected(expect, shown, case.part, ("expect",), what, renamed)
    for index, name in enumerate(expect.columns or ()):
        if name not in shown:
            hint = did_you_mean(name, shown)
            yield case.part.problem(
                ("expect", "columns", index), "ColumnNotFound", f"{what} has no column '{name}'", hint
            )
    for seq, expected in expect.outputs.items():
        path = ("expect", "outputs", seq)
        if seq not in outputs:
            hint = f"the outputs are: {', '.join(outputs)}" if outputs else "the project has no output"
            yield _at_key(case.part, path, "InvalidArguments", f"operation {seq} is not an output", hint)
            continue
        output = outputs[seq]
        yield from _check_expected(expected, output.columns, case.part, path, f"output {seq}", output.renamed)
    checks = [str(step.seq) for step in bound.steps if step.tests is not None]
    for seq in expect.checks:
        if seq not in checks:
            hint = f"the checks are: {', '.join(checks)}" if checks else "the project has no check"
            yield _at_key(
                case.part, ("expect", "checks", seq), "InvalidArguments", f"operation {seq} is not a check", hint
            )
    if expect.working is not None:
        yield from _check_expected(expect.working, final, case.part, ("expect", "working"), "the working dataset")


def _check_expected(
    expected: ExpectedRows,
    types: Mapping[str, ColumnType],
    part: DocumentPart,
    path: Path,
    what: str,
    renamed: Mapping[str, str] = MappingProxyType({}),
) -> Iterator[Problem]:
    for index, row in enumerate(expected.rows or ()):
        yield from _check_row(row, types, part, (*path, "rows", index), what, exact=False, renamed=renamed)


def _at_key(part: DocumentPart, path: Path, type: str, message: str, hint: str | None) -> Problem:
    """Returns a problem at the position of a key instead of its value."""
    return replace(part.problem(path, type, message, hint), place=part.place(path, key=True))
