"""`tallybook datasources`: lists and connects, without Spark, without secrets, and within its time."""

from __future__ import annotations

import json
import re
import socket
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from deltalake import write_deltalake
from pyarrow import table
from pyspark.sql import SparkSession
from tests.documents.kit import read_document
from tests.kit.workspaces import Books

from tallybook.cli.main import main
from tallybook.storage import probe
from tallybook.storage.formats.base import FORMATS


@pytest.fixture
def books(tmp_path: Path) -> Books:
    return Books.at(tmp_path / "books")


def checked(books: Books, capsys: pytest.CaptureFixture[str], *args: str, code: int = 0) -> dict[str, dict[str, Any]]:
    """The answers by datasource."""
    assert main(["datasources", "check", *args, "--json", "-w", str(books.root)]) == code
    document = read_document(["datasources", "check"], code, capsys.readouterr().out)
    return {source["id"]: source for source in document["datasources"]}


def test_lists_and_checks(books: Books, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    write_deltalake(books.root / "warehouse" / "deep" / "ledger", table({"a": [1]}))
    (books.root / "warehouse" / "other").mkdir()
    (books.root / "data" / "_SUCCESS").touch()
    (books.root / "data" / "round").symlink_to(books.root / "data")
    (books.root / "off.yaml").write_text(
        "datasource: {id: off, type: orc, status: disabled, options: {path_prefix: x}}\n"
        "---\ndatasource: {id: tables, type: spark_catalog}\n"
    )
    answers = checked(books, capsys)
    assert answers["files"]["names"] == ["tiers.csv", "sales/2026-01.csv", "sales/2026-02.csv"]
    assert (answers["files"]["result"], answers["files"]["count"]) == ("ok", 3)
    assert answers["warehouse"]["names"] == ["deep/ledger"]
    assert (answers["off"]["result"], answers["off"]["message"]) == ("skipped", "it is disabled")
    assert answers["tables"]["message"] == "only Spark can list its tables: add --spark"
    assert main(["datasources", "-w", str(books.root)]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "datasource  type           status    place",
        "──────────  ─────────────  ────────  ──────────────────────────",
        "files       csv            active    data",
        "off         orc            disabled  x",
        "tables      spark_catalog  active    the catalog of the session",
        "warehouse   delta          active    warehouse",
    ]
    assert main(["datasources", "check", "files", "warehouse", "-w", str(books.root)]) == 0
    lines = [re.sub("[0-9]+ ms$", "1 ms", line) for line in capsys.readouterr().out.splitlines()]
    assert lines[0] == "ok       files      csv    data: 3 files or tables, 1 ms"
    assert lines[2] == "ok       warehouse  delta  warehouse: 1 file or table, 1 ms"
    monkeypatch.setattr(probe, "MOST_NAMES", 2)
    assert checked(books, capsys, "files")["files"]["count"] == 2


def test_a_folder_that_does_not_exist_yet(books: Books, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["datasources", "check", "warehouse", "-w", str(books.root)]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "warning  warehouse  delta  warehouse",
        f"         the folder {books.root}/warehouse does not exist",
        "         hint: an output creates it; if the data should be there already, correct `path_prefix`",
    ]


def test_an_id_that_does_not_exist(books: Books, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["datasources", "check", "file", "-w", str(books.root)]) == 2
    assert "did you mean 'files'?" in capsys.readouterr().err


LAKE = "datasource: {{id: {}, type: {}, credential_ref: 'env:S3_KEYS', options: {{path_prefix: 's3://{}'}}}}\n"


def test_a_server_that_cannot_be_reached_does_not_stop_the_others(
    books: Books, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{server.getsockname()[1]}")
    monkeypatch.setenv("AWS_ALLOW_HTTP", "true")
    monkeypatch.setenv("S3_KEYS", "access_key_id=me; secret_access_key=sesame")
    (books.root / "lake.yaml").write_text(LAKE.format("lake", "delta", "b/x"))
    answers = checked(books, capsys, code=5)
    assert answers["lake"]["message"].startswith("s3://b/x cannot be reached: ")
    assert "\x1b" not in answers["lake"]["message"] and "\n" not in answers["lake"]["message"]
    assert answers["files"]["result"] == "ok"
    assert "sesame" not in json.dumps(answers)


def test_a_format_that_hangs_costs_the_time_limit(
    books: Books, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    ends = Event()
    monkeypatch.setattr(type(FORMATS["csv"]), "probe", lambda self, location: [str(ends.wait(60))])
    answers = checked(books, capsys, "--timeout", "0.2", code=5)
    ends.set()
    assert answers["files"]["message"] == "it did not answer within 0.2 seconds"
    assert answers["warehouse"]["result"] == "warning"


def test_databases_are_listed_without_spark(
    books: Books, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with closing(sqlite3.connect(books.root / "books.db")) as database:
        database.execute("CREATE TABLE ledger (id TEXT)")
        database.commit()
    monkeypatch.setenv("SECRET", "sesame")
    (books.root / "databases.yaml").write_text(
        f"datasource: {{id: file, type: database, options: {{url: 'sqlite:///{books.root}/books.db'}}}}\n"
        "---\ndatasource: {id: server, type: database, credential_ref: 'env:SECRET', "
        "options: {url: 'postgresql://me@127.0.0.1:9/books'}}\n"
    )
    answers = checked(books, capsys, "file", "server", code=5)
    assert answers["file"]["names"] == ["ledger"]
    assert answers["server"]["result"] == "failed"
    assert "sesame" not in json.dumps(answers)


@pytest.fixture
def s3(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """An S3 server on this machine, with one bucket. It is a process of its own: delta-rs holds the lock of Python."""
    import boto3

    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    url = f"http://127.0.0.1:{port}"
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server:
        for name, value in {"AWS_ENDPOINT_URL": url, "AWS_ALLOW_HTTP": "true", "AWS_REGION": "us-east-1"}.items():
            monkeypatch.setenv(name, value)
        monkeypatch.setenv("S3_KEYS", "access_key_id=me\nsecret_access_key=sesame")
        _wait_for(port)
        client = boto3.client("s3", aws_access_key_id="me", aws_secret_access_key="sesame")
        client.create_bucket(Bucket="lake")
        for key in ("raw/2026-01.csv", "raw/_hidden.csv", "tables/ledger/_delta_log/00000000000000000000.json"):
            client.put_object(Bucket="lake", Key=key, Body=b"{}")
        yield
        server.terminate()


def _wait_for(port: int) -> None:
    deadline = time.monotonic() + 60
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)


def test_an_object_store_is_listed_without_spark(books: Books, s3: None, capsys: pytest.CaptureFixture[str]) -> None:
    texts = (LAKE.format("raw", "csv", "lake/raw"), LAKE.format("tables", "delta", "lake/tables"))
    (books.root / "lake.yaml").write_text("---\n".join(texts))
    answers = checked(books, capsys, "raw", "tables")
    assert answers["raw"]["names"] == ["2026-01.csv"]
    assert answers["tables"]["names"] == ["ledger"]
    assert "sesame" not in json.dumps(answers)


def test_the_catalog_is_listed_with_spark(
    books: Books, spark: SparkSession, capsys: pytest.CaptureFixture[str]
) -> None:
    spark.range(1).createOrReplaceTempView("probed")
    (books.root / "tables.yaml").write_text(
        "datasource: {id: tables, type: spark_catalog}\n"
        "---\ndatasource: {id: nowhere, type: spark_catalog, options: {schema: 'no `such`'}}\n"
    )
    answers = checked(books, capsys, "--spark", "tables", "nowhere", code=1)
    assert "probed" in answers["tables"]["names"]
    assert answers["nowhere"]["result"] == "failed"
    spark.catalog.dropTempView("probed")
