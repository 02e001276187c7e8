"""CSV files of every line end and quoting are read as they are written, or refused with file and line."""

from __future__ import annotations

import gzip

import pytest

from tallybook.storage import read
from tallybook.storage.formats import csv_layout


@pytest.fixture
def file(tmp_path):
    """`file("d/a.csv", b"...")`: a file of exactly these bytes, compressed if it is named so."""

    def make(name, content):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
        return path

    return make


FILES = {
    "mixed": b"id,region\n1,EMEA\r\n2,APAC\r\n3,LATAM\n",
    "cr": b"id,region\r4,EMEA\r5,APAC",
    "all": b'id,region\r"6","E"\n7,"A"\r\n8,L',
    "header-lines": b'"id","region"\r\n"9","two\r\nlines"\r\n10,"one\nof\rthem"\r\n',
    "blank-crlf": b"\r\n\r\nid,region\r\n\r\n11,EMEA\r\n",
    "blank-lf": b"\n\nid,region\n\n12,EMEA\n\n",
    "bom": b'\xef\xbb\xbf"id",region\r\n13,EMEA',
    "ends-in-cr": b'id,region\n14,"EMEA\r"\r\n15,"\r"\n',
    "stray": b'id,region\n16,5" pipe\n17,24"\n18, "x"\n',
    "spaces": b'id,region\n"19" ,"EMEA"\t\r\n',
    "other-order": b"\nregion,id\nEMEA,20\n",
    "unclear": b'id,region\n21,"EMEA,"\n22,x\n',
}
ROWS = [
    (1, "EMEA"), (2, "APAC"), (3, "LATAM"), (4, "EMEA"), (5, "APAC"), (6, "E"), (7, "A"), (8, "L"), (9, "two\r\nlines"),
    (10, "one\nof\rthem"), (11, "EMEA"), (12, "EMEA"), (13, "EMEA"), (14, "EMEA\r"), (15, "\r"), (16, '5" pipe'),
    (17, '24"'), (18, ' "x"'), (19, "EMEA"), (20, "EMEA"), (21, "EMEA,"), (22, "x"),
]  # fmt: skip


@pytest.mark.parametrize("ending", [".csv", ".csv.gz"])
def test_line_ends_and_quotes_with_a_header(rows, locate, table, file, tmp_path, ending):
    for name, content in FILES.items():
        file(f"d/{name}{ending}", content)
    assert sorted(rows(locate("csv", tmp_path / "d"), table(id="integer", region="string"))) == ROWS


@pytest.mark.parametrize("ending", [".csv", ".csv.gz"])
def test_line_ends_and_quotes_without_a_header(rows, locate, table, file, tmp_path, ending):
    file(f"d/1{ending}", b'"two\nlines",1\r\nEMEA,2\r\n\r\nLATAM,3\r\n')
    file(f"d/2{ending}", b"\xef\xbb\xbfEMEA,4\rAPAC,5\r\n")
    file(f"d/3{ending}", b"\xef\xbb\xbf")
    location = locate("csv", tmp_path / "d", has_header=False)
    expected = [("two\nlines", 1), ("EMEA", 2), ("LATAM", 3), ("EMEA", 4), ("APAC", 5)]
    assert sorted(rows(location, table(region="string", id="integer")), key=lambda row: row[1]) == expected


def test_header_records_are_compared_as_they_are_read(rows, locate, table, file, tmp_path):
    """The first physical lines are equal: blank, or the first line of a quoted cell."""
    file("d/1.csv", b"\ndebit,credit\n1,2\n")
    file("d/2.csv", b"\ncredit,debit\n4,3\n")
    file("d/3.csv", b'"note\nhere",debit,credit\nx,5,6\n')
    file("d/4.csv", b'"note\nthere",credit,debit\nx,8,7\n')
    location = locate("csv", tmp_path / "d")
    assert sorted(rows(location, table(debit="integer", credit="integer"))) == [(1, 2), (3, 4), (5, 6), (7, 8)]
    spanning = table(note="string note\nhere")
    assert rows(locate("csv", tmp_path / "d/3.csv"), spanning) == [("x",)]


@pytest.mark.parametrize("ending", [".csv", ".csv.gz"])
@pytest.mark.parametrize(
    ("content", "line", "said"),
    [
        (b'k,v\n"A,1.00\nB,2.00\n"C",3.00\n', 4, "text after the closing quote"),
        (b'k,v\n1,x\n2,"open\n3,y\n', 3, "never closed"),
        (b'k,v\n1,5" pipe\n2,"open\n3,y\n', 3, "never closed"),
        (b'k,v\n1,x\n2,"', 3, "never closed"),
        (b'"k,v\n1,x\n', 1, "never closed"),
        (b'"k"x,v\n1,x\n', 1, "text after the closing quote"),
    ],
)
def test_a_quote_in_the_wrong_place_is_named_with_its_line(refused, locate, table, file, content, line, said, ending):
    path = file(f"my files/a{ending}", content)
    problem = refused(locate("csv", path), table(v="string"))
    assert problem.type == "DataLoadError"
    assert f"{path} line {line}: " in problem.message
    assert said in problem.message


@pytest.mark.parametrize("ending", [".csv", ".csv.gz"])
def test_faults_between_lone_returns(refused, locate, table, file, ending):
    path = file(f"a{ending}", b'k,v\r1,x\r2,"y"z\r3,"a\rb"\r')
    problem = refused(locate("csv", path), table(v="string"))
    assert (problem.type, f"{path} line 3: " in problem.message) == ("DataLoadError", True)
    path = file(f"b{ending}", b"k,v\r1,x\r2\r3,x,y\r")
    problem = refused(locate("csv", path), table(v="string"))
    assert (problem.type, f"{path} row 2: '2'; {path} row 3: '3,x,y'" in problem.message) == ("DataLoadError", True)


def test_rows_are_numbered_without_blank_lines(refused, locate, table, file):
    path = file("a.csv", b"id\r\n\r\n1\r\n\r\nx\r\n")
    problem = refused(locate("csv", path), table(id="integer"))
    assert f"{path} row 2: 'x'" in problem.message


def test_delimiters(rows, locate, table, file):
    wide = locate(
        "csv", file("a.csv", b'a||b\r\n"x||y"||24"\r\n5" pipe||||\r\n'.replace(b"||||", b"||")), delimiter="||"
    )
    assert rows(wide, table(a="string", b="string")) == [("x||y", '24"'), ('5" pipe', None)]
    for written in ("\t", r"\t"):
        tabs = locate("csv", file("b.csv", b'a\tb\r\n"x\ty" \t\r\n'), delimiter=written)
        assert rows(tabs, table(a="string", b="string")) == [("x\ty", None)]
    assert rows(locate("csv", file("c.csv", b"a\\b\nx\\y\n"), delimiter="\\"), table(b="string")) == [("y",)]


@pytest.mark.long
def test_thirty_thousand_columns(rows, refused, locate, table, file):
    many = range(30_000)
    header = ",".join(f"c{n}" for n in many)
    path = file("a.csv", f"{header}\n{','.join(map(str, many))}\n".encode())
    assert rows(locate("csv", path), table(c0="integer", c29999="integer")) == [(0, 29_999)]
    path = file("b.csv", f"c0,c1\n1,2\n{','.join(map(str, many))}\n".encode())
    problem = refused(locate("csv", path), table(c0="integer"))
    assert (problem.type, str(path) in problem.message) == ("DataLoadError", True)


def test_a_long_value(rows, locate, table, file):
    path = file("a.csv", b"a,b\n1," + b"x" * 3_000_000 + b"\n")
    [(value,)] = rows(locate("csv", path), table(b="string"))
    assert len(value) == 3_000_000


def test_a_folder_name_and_a_column_that_disagree(rows, refused, locate, table, file, tmp_path):
    file("d/month=01/a.csv", b"id,month\n1,01\n")
    location = locate("csv", tmp_path / "d")
    assert rows(location, table(id="integer", month="string")) == [(1, "01")]
    file("d/month=02/a.csv", b"id,month\n2,03\n")
    problem = refused(location, table(id="integer", month="string"))
    assert (problem.type, "'03 (its folder says month=02)'" in problem.message) == ("DataLoadError", True)


def test_files_that_cannot_be_split_in_memory_are_refused(monkeypatch, refused, locate, table, file):
    monkeypatch.setattr(csv_layout, "_SPLIT_BYTES", 10)
    problem = refused(locate("csv", file("a.csv", b"id\r1\r2\r3\r4\r5\r6\r")), table(id="integer"))
    assert (problem.type, "LF" in problem.hint) == ("DataLoadError", True)


def test_empty_and_foreign_files(refused, locate, table, file):
    assert refused(locate("csv", file("a.csv", b"")), table(id="integer")).type == "SchemaMismatch"
    problem = refused(locate("csv", file("b.csv", "id\n1\n".encode("utf-16"))), table(id="integer"))
    assert (problem.type, "UTF-16" in problem.message) == ("DataLoadError", True)


@pytest.mark.parametrize("ending", ["\n", "\r"])
def test_declared_columns_that_differ_by_case_alone(rows, refused, locate, table, file, ending):
    location = locate("csv", file("a.csv", f"id,ID{ending}1,2{ending}".encode()))
    problem = refused(location, table(a="integer id", b="integer ID"))
    assert (problem.type, "ID, id" in problem.message) == ("SchemaMismatch", True)
    assert rows(location, table(b="integer ID")) == [(2,)]


@pytest.mark.parametrize(
    ("name", "blamed"), [("d/a:b.csv", "a:b.csv"), ("d/a:{b}=1/c.csv", "a:{b}=1"), ("d/at=10:00/c.csv", None)]
)
def test_colons_that_hadoop_does_not_understand(rows, refused, locate, table, file, tmp_path, name, blamed):
    path = file(name, b"id\n1\n")
    if blamed is None:
        assert rows(locate("csv", tmp_path / "d"), table(id="integer", at="string")) == [(1, "10:00")]
        return
    for target in (tmp_path / "d", path):
        problem = refused(locate("csv", target), table(id="integer"))
        assert (problem.type, f"the ':' in '{blamed}'" in problem.message) == ("DataLoadError", True)


def test_nul_characters_beside_quotes_are_kept(rows, locate, table, file):
    path = file("a.csv", b'note\n"q""\x00""\x00"\n\x00z\n"\x00"""\n')
    assert rows(locate("csv", path), table(note="string")) == [('q"\x00"\x00',), ("\x00z",), ('\x00"',)]


@pytest.mark.parametrize("ending", [".csv", ".csv.gz"])
def test_files_without_a_header_do_not_have_the_columns_of_their_folders(
    rows, refused, locate, table, file, tmp_path, ending
):
    file(f"d/month=01/a{ending}", b"1,x\n")
    file(f"d/month=02/b{ending}", b"2,y\r")
    location = locate("csv", tmp_path / "d", has_header=False)
    columns = {"id": "integer", "month": "string", "note": "string"}
    assert sorted(rows(location, table(**columns))) == [(1, "01", "x"), (2, "02", "y")]
    file(f"d/month=02/b{ending}", b"2,02,y\n")
    assert refused(location, table(**columns)).type == "DataLoadError"
    problem = refused(location, table(month="string"))
    assert (problem.type, f"b{ending}" in problem.message or f"a{ending}" in problem.message) == ("DataLoadError", True)


@pytest.mark.parametrize(
    ("format", "content", "broken"),
    [("csv", b"id\n1\n2\n", b"3,4\n"), ("json", b'{"id": 1}\n{"id": 2}\n', b'{"id": 3} {"id": 4}\n')],
)
def test_a_query_for_values_in_folder_names_alone(
    spark, refused, locate, table, file, tmp_path, format, content, broken
):
    location = locate(format, tmp_path / "d")
    file(f"d/month=01/a.{format}", content)
    frame = read(spark, location, table(id="integer", month="string"))
    assert frame.groupBy("month").count().collect() == [("01", 2)]
    only_month = table(month="string")
    assert read(spark, location, only_month).select("month").collect() == [("01",), ("01",)]
    file(f"d/month=01/a.{format}", content + broken)
    assert refused(location, only_month).type == "DataLoadError"


@pytest.mark.parametrize("name", ["a.csv.gz", "a.csv.bz2", "a.csv.zst", "a.json.gz", "a.json.bz2", "a.json.zst"])
def test_a_file_that_is_not_compressed_as_its_name_says(refused, locate, table, tmp_path, name):
    format = name.split(".")[1]
    (tmp_path / name).write_bytes(b"id\n1\n" if format == "csv" else b'{"id": 1}\n')
    problem = refused(locate(format, tmp_path / name), table(id="integer"))
    assert (problem.type, f"{tmp_path / name} is not compressed" in problem.message) == ("DataLoadError", True)


@pytest.mark.parametrize("name", ["a.csv.gz", "a.csv.deflate", "a.json.zst"])
def test_an_empty_file_that_should_be_compressed(refused, locate, table, tmp_path, name):
    (tmp_path / name).write_bytes(b"")
    problem = refused(locate(name.split(".")[1], tmp_path / name), table(id="integer"))
    assert (problem.type, problem.message.endswith(": it is empty")) == ("DataLoadError", True)
