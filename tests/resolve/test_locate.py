"""Paths and tables: joined below their prefix, never outside it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tallybook.errors import RunError
from tallybook.model.datasource import CatalogSource, DatabaseSource, DataSource, FileSource
from tallybook.resolve.locate import path_target, table_target, usable_source

ROOT = Path("/ws")


def files(**changes: object) -> FileSource:
    return FileSource.model_validate({"id": "lake", "type": "parquet", "options": {"path_prefix": "data"}, **changes})


@pytest.mark.parametrize(
    ("prefix", "path", "target"),
    [
        ("data", "2026/orders", "/ws/data/2026/orders"),
        ("./data/", "/2026//orders/", "/ws/data/2026/orders"),
        ("data", "../other/orders", "/ws/other/orders"),
        (".", "orders", "/ws/orders"),
        ("/mnt/lake", "orders", "/mnt/lake/orders"),
        ("/mnt/lake", "a/../orders", "/mnt/lake/orders"),
        ("s3a://bucket/lake/", "2026/*.parquet", "s3a://bucket/lake/2026/*.parquet"),
        ("hdfs://nn:8020/lake", "/orders", "hdfs://nn:8020/lake/orders"),
        ("file:/mnt/lake", "orders", "file:/mnt/lake/orders"),
        ("", "out/x.parquet", "/ws/out/x.parquet"),
        ("", "/out/x.parquet", "/out/x.parquet"),
        ("", "s3a://bucket/out", "s3a://bucket/out"),
    ],
)
def test_a_path_is_joined_below_its_prefix(prefix: str, path: str, target: str) -> None:
    assert path_target(path, ROOT, prefix) == target


@pytest.mark.parametrize(
    ("prefix", "path"),
    [
        ("data", "../../etc/passwd"),
        ("../data", "orders"),
        ("data", "a/../../../b"),
        ("/mnt/lake", "../other"),
        ("s3a://bucket/lake", "x/../../other"),
        ("data", "s3a://bucket/orders"),
        ("", "../out"),
    ],
)
def test_a_path_that_leads_outside_is_refused(prefix: str, path: str) -> None:
    with pytest.raises(RunError, match=r"InvalidArguments\n.*leads outside"):
        path_target(path, ROOT, prefix)


def test_the_workspace_folder_may_be_given_relative() -> None:
    assert path_target("orders", Path(), "data") == str(Path.cwd() / "data/orders")


@pytest.mark.parametrize(
    ("source", "schema", "target"),
    [
        (CatalogSource(id="c", type="spark_catalog"), None, "orders"),
        (
            CatalogSource.model_validate({"id": "c", "type": "spark_catalog", "options": {"schema": "s"}}),
            None,
            "s.orders",
        ),
        (
            DatabaseSource.model_validate({"id": "d", "type": "database", "options": {"url": "db", "schema": "s"}}),
            "mine",
            "mine.orders",
        ),
        (files(), None, "/ws/data/orders"),
        (files(), "mine", "/ws/data/mine/orders"),
    ],
)
def test_a_table_is_qualified_by_its_schema(source: DataSource, schema: str | None, target: str) -> None:
    assert table_target(source, "orders", schema, ROOT) == target


@pytest.mark.parametrize(
    ("reference", "expected"), [("file:keys/lake", "file:/ws/keys/lake"), ("file:/k", "file:/k"), ("env:K", "env:K")]
)
def test_the_file_of_a_credential_is_relative_to_the_workspace(reference: str, expected: str) -> None:
    sources = {"lake": files(credential_ref=reference)}
    assert usable_source("lake", sources, Path("/ws")).credential_ref == expected


@pytest.mark.parametrize(
    ("asked", "message", "hint"),
    [
        ("lakes", "there is no datasource 'lakes'", "did you mean 'lake'?"),
        ("old", "datasource 'old' is disabled", "set its `status: active`, or use another datasource"),
    ],
)
def test_a_datasource_must_be_there_and_active(asked: str, message: str, hint: str) -> None:
    sources = {"lake": files(), "old": files(id="old", status="disabled")}
    assert usable_source("lake", sources, Path("/ws")) is sources["lake"]
    with pytest.raises(RunError) as caught:
        usable_source(asked, sources, Path("/ws"))
    problem = caught.value.problem
    assert (problem.type, problem.message, problem.hint) == ("DataSourceNotFound", message, hint)
