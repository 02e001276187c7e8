"""Destinations of outputs: inside their limits by their real path, or refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from tallybook.errors import RunError
from tallybook.model.datasource import FileSource
from tallybook.resolve.destination import path_to_write, sandbox_path, table_to_write


def files(prefix: object) -> FileSource:
    return FileSource.model_validate({"id": "lake", "type": "csv", "options": {"path_prefix": str(prefix)}})


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
