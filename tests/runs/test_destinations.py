"""What an output may touch, from a plan to a run: the sandbox holds, inputs stay as they are, outputs stay apart."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.kit.workspaces import Books, delta_rows

from tallybook.errors import Problem, ProblemError

PROJECT = """\
project:
  id: {id}
  name: Probe
  input_dataset_id: {input}
  operations:
{operations}
"""
OUTPUT = """\
    - seq: {seq}
      name: Out {seq}
      type: output
      arguments: {{destination: {destination}, mode: {mode}, columns: [{columns}]}}"""


def probe(
    books: Books,
    *destinations: str,
    modes: str = "overwrite overwrite overwrite",
    id: str = "probe",
    input: str = "sales",
    columns: str = "region",
) -> None:
    """A project that writes its input to some destinations, as operations 10, 20 and 30."""
    outputs = [
        OUTPUT.format(seq=seq, destination=destination, mode=mode, columns=columns)
        for seq, destination, mode in zip((10, 20, 30), destinations, modes.split(), strict=False)
    ]
    (books.root / f"{id}.yaml").write_text(PROJECT.format(id=id, input=input, operations="\n".join(outputs)))


def refused(books: Books, id: str = "probe", period: str = "2026-01") -> Problem:
    """The problem that keeps a plan from being made."""
    with pytest.raises(ProblemError) as caught:
        books.open().plan(id, period)
    return caught.value.problem


def tree(folder: Path) -> dict[str, bytes | None]:
    """Everything below a folder but the product's own."""
    paths = [path for path in folder.rglob("*") if ".tallybook" not in path.parts]
    return {str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None for path in sorted(paths)}


def listed(books: Books, *identifiers: str) -> None:
    """A calendar whose months are called as given, and rows for each of them in one file."""
    periods = ", ".join(
        f"{{identifier: '{name}', level: month, start_date: 2026-0{month}-01, end_date: 2026-0{month}-28}}"
        for month, name in enumerate(identifiers, 1)
    )
    (books.root / "calendar.yaml").write_text(f"calendar: {{id: ours, periods: [{periods}]}}\n")
    books.edit("tallybook.yaml", "name: tiny\n", "name: tiny\ncalendar: ours\n")
    (books.root / "close.yaml").unlink()
    (books.root / "report.yaml").unlink()


@pytest.mark.parametrize("type", ["csv", "json", "parquet", "orc", "delta"])
@pytest.mark.parametrize("table", ["../../../../outside", "../outside", "a/../../../../outside"])
def test_a_draft_with_a_table_outside_writes_nothing(books: Books, type: str, table: str) -> None:
    books.edit("places.yaml", "{id: warehouse, type: delta,", f"{{id: warehouse, type: {type},")
    probe(books, f'{{datasource_id: warehouse, table: "{table}"}}')
    problem = refused(books)
    assert (problem.type, problem.seq, problem.operation) == ("InvalidDestination", 10, "Out 10")
    assert problem.place is not None and problem.place.file == "probe.yaml"


@pytest.mark.parametrize("identifier", ["/abs/path", "..", "../../../../outside", "a/../b", " ", ".", "a//b"])
def test_a_calendar_has_no_period_that_is_a_way_out(books: Books, identifier: str) -> None:
    listed(books, identifier)
    [problem] = books.open().validate()
    assert problem.type == "InvalidArguments" and "cannot be the identifier of a period" in problem.message
    assert problem.place is not None and problem.place.file == "calendar.yaml"


def test_a_period_with_a_slash_is_no_folder(books: Books, spark: object) -> None:
    """The data may call a month `2026/01`; in a path that is refused, in the sandbox it is one folder."""
    listed(books, "2026/01")
    books.edit("sales.yaml", "resolver_id: by-month", "resolver_id: reference")
    (books.root / "data/sales.csv").write_text("id,region,amount,_period\na,EMEA,10,2026/01\n")
    rule = [problem.message for problem in books.open().validate()]
    assert rule == [
        "'{{period}}' in '{{table_name}}/{{period}}.csv' would be '2026/01', which cannot be part of a path"
    ]
    books.edit("places.yaml", "{{table_name}}/{{period}}.csv", "{{table_name}}/{{YYYY}}-{{MM}}.csv")
    probe(books, "{location: 'out/{{period}}.csv'}")
    problem = refused(books, period="2026/01")
    assert "would be '2026/01', which cannot be part of a path" in problem.message and problem.seq == 10
    probe(books, "{location: 'out/{{YYYY}}/{{MM}}.csv'}")
    [output] = books.run("probe", "2026/01").outputs
    assert output.location.endswith(".tallybook/sandbox/probe/2026%2F01/10-01.csv")


def test_a_sandbox_with_links_is_not_left(
    books: Books, spark: object, tmp_path_factory: pytest.TempPathFactory
) -> None:
    outside = tmp_path_factory.mktemp("outside")
    (outside / "keep.txt").write_text("mine")
    sandbox = books.root / ".tallybook/sandbox"
    probe(books, "{location: out.csv}")
    for link in ("", "probe", "probe/2026-01", "probe/2026-01/10-out.csv"):
        path = sandbox / link
        path.parent.mkdir(parents=True, exist_ok=True)
        path.symlink_to(outside)
        with pytest.raises(ProblemError, match=r"is not inside the (sandbox|workspace)"):
            books.run("probe")
        path.unlink()
    assert tree(outside) == {"keep.txt": b"mine"}
    books.run("probe")
    assert (sandbox / "probe/2026-01/10-out.csv").read_text().startswith("region\n")


def test_a_folder_that_holds_other_things_is_refused_before_anything_is_written(active: Books) -> None:
    mine = [".git/HEAD", ".env", "README.txt", "my-budget-2019.csv", "y=2025/thesis.docx"]
    for name in mine:
        (active.root / "reports/2026-01" / name).parent.mkdir(parents=True, exist_ok=True)
        (active.root / "reports/2026-01" / name).write_text("mine")
    before = tree(active.root)
    problem = refused(active, "close")
    assert (problem.type, problem.seq) == ("WriteFailed", 50)
    assert "'.env', '.git/', 'README.txt', 'my-budget-2019.csv', 'y=2025/thesis.docx'" in problem.message
    with pytest.raises(ProblemError, match="did not write"):
        active.run()
    assert tree(active.root) == before, "the ledger, which comes first, is not written either"


@pytest.mark.parametrize(
    ("destination", "relation"),
    [
        ("{location: data/sales/2026-01.csv}", "is a location"),
        ("{location: './data/x/../sales//2026-01.csv'}", "is a location"),
        ("{datasource_id: files, table: sales/2026-01.csv}", "is a location"),
        ("{location: 'data/{{table_name}}/{{period}}.csv'}", "is a location"),
        ("{location: link/2026-01.csv}", "is a location"),
        ("{location: {path: data/sales, format: csv}}", "contains a location"),
        ("{location: data}", "contains a location"),
        ("{location: data/sales/2026-01.csv/part}", "is inside a location"),
        ("{location: data/tiers.csv}", "is a location"),
        ("{location: {path: link, format: delta}}", "contains a location"),
    ],
)
@pytest.mark.parametrize("is_active", [False, True])
def test_an_output_onto_what_the_run_reads(books: Books, destination: str, relation: str, is_active: bool) -> None:
    (books.root / "link").symlink_to("data/sales")
    books.edit("close.yaml", '{location: "reports/{{period}}"}', destination)
    if is_active:
        books.open().activate("close")
    problem = refused(books, "close")
    assert (problem.type, problem.seq) == ("InvalidDestination", 50)
    assert f"which {relation} that the same run reads" in problem.message
    with pytest.raises(ProblemError, match="InvalidDestination"):
        books.run()
    assert not (books.root / "warehouse").exists(), "nothing was written"


def test_patterns_and_places_that_are_missing_count_too(books: Books) -> None:
    books.edit("places.yaml", "{{table_name}}/{{period}}.csv", "sales/*.csv")
    books.edit("places.yaml", 'path: "{{table_name}}.csv"}', 'path: "new/{{table_name}}.csv"}, on_missing: empty')
    for destination in ("{location: data/sales/new.csv}", "{location: data/new/tiers.csv}", "{location: data/new}"):
        books.edit("close.yaml", '{location: "reports/{{period}}"}', destination)
        assert "that the same run reads" in refused(books, "close").message
        books.edit("close.yaml", destination, '{location: "reports/{{period}}"}')
    books.edit("close.yaml", '{location: "reports/{{period}}"}', "{location: data/sales-new.csv}")
    books.open().plan("close", "2026-01")


def test_a_delta_table_is_read_and_overwritten_by_one_run(active: Books) -> None:
    active.run()
    probe(active, "{datasource_id: warehouse, table: ledger}", id="again", input="ledger", columns="id")
    active.open().activate("again")
    for rows in (2, 2):
        assert active.run("again").outputs[0].rows_written == rows
    assert delta_rows(active.root / "warehouse/ledger") == [("a",), ("b",)]

    probe(
        active, "{location: {path: warehouse/ledger/deeper, format: delta}}", id="inside", input="ledger", columns="id"
    )
    assert "which is inside a location" in refused(active, "inside").message


def test_a_delta_table_read_as_parquet_is_an_input_like_any_other(books: Books) -> None:
    books.edit(
        "places.yaml",
        "{id: files, type: csv, options: {path_prefix: data}}",
        "{id: files, type: parquet, options: {path_prefix: warehouse}}",
    )
    books.edit("places.yaml", "{{table_name}}/{{period}}.csv", "ledger")
    assert "which is a location that the same run reads" in refused(books, "close").message


@pytest.mark.parametrize(
    ("first", "second", "said"),
    [
        ("{location: out}", "{location: ./x/../out}", "the same location as"),
        ("{location: 'out/{{period}}'}", "{location: 'out/{{ identifier }}'}", "the same location as"),
        (
            "{location: {path: warehouse/t, format: delta}}",
            "{datasource_id: warehouse, table: t}",
            "the same location as",
        ),
        ("{location: out}", "{location: link}", "the same location as"),
        ("{location: out}", "{location: 'out/{{period}}'}", "a folder inside the location of"),
        ("{location: 'out/{{period}}/a.csv'}", "{location: out}", "a folder that contains the location of"),
        ("{location: '{{dataset_id}}'}", "{location: sales}", "the same location as"),
    ],
)
def test_two_outputs_to_one_place_are_a_problem_of_the_checker(
    books: Books, first: str, second: str, said: str
) -> None:
    (books.root / "link").symlink_to("out")
    probe(books, first, second)
    [problem] = books.open().validate()
    assert (problem.type, problem.seq) == ("InvalidDestination", 20)
    assert problem.message == f"the output writes to {said} operation 10 'Out 10'"
    assert problem.place is not None and problem.place.line == 13
    assert refused(books).type == "InvalidDestination"


def test_rows_may_be_added_to_what_an_earlier_output_wrote(books: Books) -> None:
    probe(books, "{location: out}", "{location: out}", "{location: out}", modes="overwrite append append")
    assert books.open().validate() == []
    probe(books, "{location: out}", "{location: out}", "{location: out}", modes="append append overwrite")
    assert [problem.seq for problem in books.open().validate()] == [30]
    probe(books, "{location: out}", "{location: {path: out, format: csv}}", modes="overwrite append")
    assert [problem.seq for problem in books.open().validate()] == [20], "in another format"
    probe(books, "{location: out}", "{location: out/in}", modes="append append")
    assert [problem.seq for problem in books.open().validate()] == [20], "inside it"


def test_two_outputs_to_one_place_where_the_period_decides_it(books: Books) -> None:
    probe(books, "{location: 'out/{{period}}'}", "{location: 'out/{{YYYY}}-{{MM}}'}", "{location: out/2026-02/x.csv}")
    assert books.open().validate() == []
    problems = refused(books), refused(books, period="2026-02")
    assert [problem.seq for problem in problems] == [20, 20]
    probe(books, "{location: 'out/{{period}}'}", "{location: out/2026-02/x.csv}")
    books.open().plan("probe", "2026-01")
    assert refused(books, period="2026-02").message == (
        "the output writes to a folder inside the location of operation 10 'Out 10'"
    )


@pytest.mark.parametrize("destination", ["{location: ' '}", "{location: {path: ''}}", "{location: {path: }}"])
def test_a_blank_path_is_an_invalid_destination(books: Books, destination: str) -> None:
    probe(books, destination)
    [problem] = books.open().validate()
    assert (problem.type, problem.message) == ("InvalidDestination", "the path of the location is blank")
    probe(books, "{datasource_id: warehouse, table: '\t'}")
    [problem] = books.open().validate()
    assert (problem.type, problem.message) == ("InvalidDestination", "the name of the table is blank")
