"""Paths compared: the same, one inside the other, by patterns, links and other names of one folder."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tallybook.resolve.overlap import Area, area, areas_read


def relations(written: str, read: str) -> set[str]:
    return {relation for each in areas_read(read) if (relation := area(written).relation(each))}


@pytest.mark.parametrize(
    ("written", "read", "relation"),
    [
        ("/x/in", "/x/in", "is"),
        ("/x/in/", "/x/./y/../in//", "is"),
        ("/x/in/out", "/x/in", "is inside"),
        ("/x", "/x/in/a.csv", "contains"),
        ("/x/in", "/x/input", None),
        ("/x/in", "/y/in", None),
        ("file:/x/in", "/x/in", "is"),
        ("/x/in", "file:///x/in", "is"),
        ("/x/in/new.csv", "/x/in/*.csv", "is"),
        ("/x/in/new.json", "/x/in/*.csv", None),
        ("/x/in/a/b", "/x/*/a", "is inside"),
        ("/x/in", "/x/*/20??/*.csv", "contains"),
        ("/x/in/1999", "/x/in/20??/*.csv", None),
        ("/x/m3.csv", "/x/m[12].csv", None),
        ("/x/m2.csv", "/x/m[12].csv", "is"),
        ("/x/m3.csv", "/x/m[!12].csv", "is"),
        ("/x/m3.csv", "/x/m[^12].csv", "is"),
        ("/x/b/c", "/x/{a,b/c}/*.csv", "contains"),
        ("/x/d", "/x/{a,b/c}/*.csv", None),
        ("/x/ab1", "/x/a{b{1,2},c}", "is"),
        ("/x/a[1]", "/x/a\\[1\\]", "is"),
        ("/x/a1", "/x/a\\[1\\]", None),
        ("/x/a*", "/x/a\\*", "is"),
        ("/x/ab", "/x/a\\*", None),
        ("s3a://bucket/x/y", "s3://bucket/x", "is inside"),
        ("s3a://bucket/x", "s3a://bucket/x/*/y.csv", "contains"),
        ("s3a://bucket/x", "s3a://other/x", None),
        ("/bucket/x", "s3a://bucket/x", None),
        ("hdfs://nn:8020/x/../y", "HDFS://nn:8020//y/", "is"),
    ],
)
def test_two_paths(written: str, read: str, relation: str | None) -> None:
    assert relations(written, read) == ({relation} if relation else set())


def test_links_anywhere_are_followed(tmp_path: Path) -> None:
    for folder in ("real/deep", "in", "patterns"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "real" / "report.csv").touch()
    (tmp_path / "link").symlink_to("real")
    (tmp_path / "in" / "jan.csv").symlink_to(tmp_path / "real" / "report.csv")
    (tmp_path / "patterns" / "feb").symlink_to(tmp_path / "real" / "deep")
    (tmp_path / "real" / "loop").symlink_to(tmp_path / "real")
    (tmp_path / "real" / "self").symlink_to("self")

    def read(written: str, path: str) -> set[str]:
        return relations(str(tmp_path / written), str(tmp_path / path))

    assert read("link/deep/x", "real/deep") == {"is inside"}
    assert read("real", "link/report.csv") == {"contains"}
    assert read("real/report.csv", "in") == {"is"}, "a file of the folder is a link"
    assert read("real/deep/2026.csv", "patterns/*") == {"is inside"}
    assert read("real/other.csv", "in") == set()
    assert read("real/deep", "patterns/mar*") == set()


def test_another_path_of_the_same_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A bind mount needs rights a test has not, so the system is made to say that two folders are one."""
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    real = Path.stat

    def stat(path: Path, **options: bool) -> os.stat_result:
        return real(tmp_path / "one" / path.relative_to(tmp_path / "two") if path == tmp_path / "two" else path)

    monkeypatch.setattr(Path, "stat", stat)
    assert relations(f"{tmp_path}/two/x", f"{tmp_path}/one/x/y") == {"contains"}
    assert relations(f"{tmp_path}/two/x", f"{tmp_path}/one/*") == {"is"}
    assert relations(f"{tmp_path}/two/x", f"{tmp_path}/one/z") == set()


def test_tables_of_a_database_are_compared_by_name() -> None:
    assert Area("db", ("s.orders",)).relation(Area("db", ("s.orders",))) == "is"
    assert Area("db", ("s.orders",)).relation(Area("db", ("orders",))) is None
    assert Area("db", ("s.orders",)).relation(Area("other", ("s.orders",))) is None


DAYS = "{2024,2025,2026}-{" + ",".join(f"{month:02}" for month in range(1, 13)) + "}-{" + ",".join(map(str, range(31)))


@pytest.mark.parametrize(
    ("read", "overlaps", "apart"),
    [
        (f"/nowhere/{DAYS}}}.csv", "/nowhere/2025-03-7.csv", "/nowhere/report"),
        ("/nowhere/" + "{a,b}" * 40, "/nowhere/" + "ab" * 20, "/elsewhere/x"),
        ("/nowhere/x/" + "{a/b,c}" * 20 + "/d", "/nowhere/x/y", "/nowhere/z"),
        ("/nowhere/" + "{" * 60 + "a" + "}" * 60, "/nowhere/a", "/nowhere/a/../../b"),
    ],
    ids=["days", "forty", "with-slashes", "nested"],
)
def test_patterns_with_too_many_choices_are_taken_as_a_wider_one(read: str, overlaps: str, apart: str) -> None:
    assert len(list(areas_read(read))) == 1
    assert relations(overlaps, read) and not relations(apart, read)


@pytest.mark.parametrize(
    "read", ["/nowhere/" + "{a,..}/" * 20 + "x", "/nowhere/" + "{a,.}" * 20 + "/x"], ids=["two", "one"]
)
def test_choices_that_may_lead_upwards_can_be_anywhere(read: str) -> None:
    assert relations("/elsewhere", read) == {"is inside"}
