"""Paths and tables become targets that stay below their prefix and the workspace, to read them and to write them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tallybook.errors import RunError
from tallybook.model.datasource import CatalogSource, DatabaseSource, DataSource, FileSource
from tallybook.resolve.targets import (
    path_target,
    path_to_write,
    sandbox_path,
    table_target,
    table_to_write,
    usable_source,
)

ROOT = Path("/ws")


def files(prefix: object = "data", **changes: object) -> FileSource:
    return FileSource.model_validate({"id": "lake", "type": "csv", "options": {"path_prefix": str(prefix)}, **changes})


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


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A workspace with links that lead out of it, and one that does not."""
    for folder in ("ws/data/deep", "ws/.tallybook/sandbox", "outside"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "ws/data/out").symlink_to(tmp_path / "outside")
    (tmp_path / "ws/data/in").symlink_to("deep")
    (tmp_path / "ws/away").symlink_to(tmp_path / "outside")
    (tmp_path / "outside/back").symlink_to(tmp_path / "ws/data")
    return tmp_path / "ws"


@pytest.mark.parametrize("table", ["orders", "/orders", "./a/../orders", "in/../orders", "//orders/"])
def test_a_table_is_below_its_prefix(root: Path, table: str) -> None:
    assert table_to_write(files("data"), table, root) == str(root / "data/orders")
    assert table_to_write(files(root / "data"), table, root) == str(root / "data/orders")


def test_links_are_followed_where_they_stay_inside(root: Path) -> None:
    assert table_to_write(files("data"), "in/orders", root) == str(root / "data/deep/orders")
    assert table_to_write(files(root.parent / "outside/back"), "orders", root) == str(root / "data/orders")
    assert path_to_write("data/in/orders.csv", root) == str(root / "data/deep/orders.csv")
    assert path_to_write(str(root / "away/orders.csv"), root) == str(root.parent / "outside/orders.csv")
    assert path_to_write(f"file:{root}/x", root) == path_to_write(f"file://{root}/x", root) == str(root / "x")


@pytest.mark.parametrize(
    "table",
    ["../orders", "../../../../outside", "a/../../orders", ".", "/", "x/..", "out/orders", "out", "in/../out", "a\0b"],
)
def test_a_table_that_leads_elsewhere_is_refused(root: Path, table: str) -> None:
    for prefix in ("data", root / "data"):
        with pytest.raises(RunError) as caught:
            table_to_write(files(prefix), table, root)
        assert caught.value.problem.type == "InvalidDestination"


@pytest.mark.parametrize("table", [".", "../x", "a/../..", "s3a://other/x"])
def test_a_table_below_a_url_stays_there(root: Path, table: str) -> None:
    lake = files("s3a://bucket/lake/")
    assert table_to_write(lake, "./a/../b", root) == "s3a://bucket/lake/b"
    with pytest.raises(RunError, match="InvalidDestination"):
        table_to_write(lake, table, root)


@pytest.mark.parametrize("path", ["../x.csv", "away/x.csv", "data/out", ".", "data/..", "a\nb"])
def test_a_relative_path_stays_in_the_workspace(root: Path, path: str) -> None:
    with pytest.raises(RunError, match="InvalidDestination"):
        path_to_write(path, root)


def test_a_prefix_that_is_a_link_out_of_the_workspace_is_refused(root: Path) -> None:
    with pytest.raises(RunError, match=r"is not inside the workspace \(.* leads there through a link\)"):
        table_to_write(files("away"), "orders", root)


@pytest.mark.parametrize("period", ["2026-01", "2026/01", "/abs/path", "..", "../../..", ".", "a\\b", "x\0y", "%2F"])
@pytest.mark.parametrize("name", ["10-out", "10-..", "10-../../../../outside"])
def test_everything_stays_in_the_sandbox(root: Path, period: str, name: str) -> None:
    sandbox = root / ".tallybook/sandbox"
    path = Path(sandbox_path(sandbox, root, "close", period, name))
    assert path.relative_to(sandbox / "close") == Path(*path.parts[-2:]), "a folder for the period, in it the output"


def test_names_stay_apart_in_the_sandbox(root: Path) -> None:
    periods = ["2026/01", "2026%2F01", "2026-01", "..", "%2E%2E", "März 2026"]
    paths = {sandbox_path(root / "sandbox", root, "close", period, "1-out") for period in periods}
    assert len(paths) == len(periods) and str(root / "sandbox/close/März 2026/1-out") in paths


@pytest.mark.parametrize("link", ["sandbox/close", "sandbox/close/2026-01", "sandbox/close/2026-01/1-out", "sandbox"])
def test_a_link_does_not_lead_out_of_the_sandbox(root: Path, link: str) -> None:
    (root / link).parent.mkdir(parents=True, exist_ok=True)
    (root / link).symlink_to(root.parent / "outside")
    with pytest.raises(RunError, match="InvalidDestination"):
        sandbox_path(root / "sandbox", root, "close", "2026-01", "1-out")


def test_a_sandbox_may_be_elsewhere(root: Path) -> None:
    far = root.parent / "outside"
    assert sandbox_path(far, root, "close", "2026-01", "1-out") == str(far / "close/2026-01/1-out")
    assert sandbox_path(root / "../far", root, "p", "2026", "1-x") == str(root.parent / "far/p/2026/1-x")
