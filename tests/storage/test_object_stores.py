"""Object stores: Delta logs in an S3 server on this machine, and what Spark says without its connector."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from io import BytesIO
from pathlib import Path
from typing import Any

import boto3
import pyarrow as pa
import pytest
from pyarrow import parquet as pq
from pyspark.sql import types as T

from tallybook.errors import RunError
from tallybook.exit_codes import UNAVAILABLE
from tallybook.model.datasource import FileOptions, FileSource
from tallybook.model.location import ABSENT, Location
from tallybook.storage import write
from tallybook.storage.credentials import delta_options, spark_options
from tallybook.storage.failure import refused_by_store
from tallybook.storage.formats import format_of
from tallybook.storage.formats.delta_changes import AddedFile, Changes
from tallybook.storage.formats.delta_commit import _commit, _committed
from tallybook.storage.formats.delta_table import open_table, table_files
from tallybook.storage.inputs import current_version, fingerprint
from tallybook.storage.output import Guard, Output
from tallybook.workspace import Workspace

SECRET = "hunter2/secret+key"
SCHEMA = T.StructType([T.StructField("id", T.LongType())])


@dataclass(frozen=True)
class Lake:
    """A bucket of an S3 server."""

    url: str
    client: Any

    def at(self, target: str, **options: Any) -> Location:
        given = {"endpoint": self.url, "region": "eu-central-1", "allow_http": True} | options
        source = FileSource(
            id="lake", type="delta", credential_ref="env:LAKE", options=FileOptions(path_prefix=target, **given)
        )
        return Location(source, target)

    def put_rows(self, key: str, ids: list[int]) -> AddedFile:
        """Puts a Parquet file into the table `ledger`, as Spark would with its connector."""
        content = BytesIO()
        pq.write_table(pa.table({"id": ids}), content)
        self.client.put_object(Bucket="lake", Key=f"ledger/{key}", Body=content.getvalue())
        return AddedFile(key, len(content.getvalue()), len(ids))


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """A process of its own: delta-rs keeps Python's lock while it reads a history, so a thread could not answer it."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        _wait_for(port, process)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait()


def _wait_for(port: int, process: subprocess.Popen[bytes]) -> None:
    last = time.monotonic() + 60
    while process.poll() is None and time.monotonic() < last:
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            return
        time.sleep(0.1)
    raise RuntimeError("the S3 server did not start")


@pytest.fixture
def lake(server: str, monkeypatch: pytest.MonkeyPatch) -> Lake:
    monkeypatch.setenv("LAKE", f"access_key_id=AKIAKEY\nsecret_access_key={SECRET}")
    client = boto3.client(
        "s3",
        endpoint_url=server,
        aws_access_key_id="AKIAKEY",
        aws_secret_access_key=SECRET,
        region_name="eu-central-1",
    )
    try:
        client.create_bucket(Bucket="lake", CreateBucketConfiguration={"LocationConstraint": "eu-central-1"})
    except client.exceptions.BucketAlreadyOwnedByYou:
        for entry in client.list_objects_v2(Bucket="lake").get("Contents", ()):
            client.delete_object(Bucket="lake", Key=entry["Key"])
    return Lake(server, client)


def changes(location: Location, run: int, seq: int, *files: AddedFile, mode: Any = "overwrite") -> Changes:
    run_id = f"01a1de71-7cee-7fee-adb1-{run:012d}"
    guard = Guard(lambda: None, "close/2026-01/30", run)
    return Changes(None, location, Output(run_id, seq, mode, guard), files)  # type: ignore[arg-type]  # no Spark here


@pytest.mark.parametrize("scheme", ["s3", "s3a"])
def test_a_log_in_s3_is_committed_read_and_listed(lake: Lake, scheme: str) -> None:
    ledger = lake.at(f"{scheme}://lake/ledger")
    assert current_version(ledger) == ABSENT
    first = changes(ledger, 1, 30, lake.put_rows("one.parquet", [1, 2]))
    assert _commit(ledger, None, SCHEMA, first) is None

    table = open_table(ledger)
    assert table is not None
    assert [(file.path, file.size) for file in table_files(ledger, table)] == [("one.parquet", first.added[0].size)]
    assert _committed(ledger, table, ("id",), first.output.run_id, 30) is not None
    assert format_of(ledger).has_written(ledger, first.output) is True

    added = changes(ledger, 2, 30, lake.put_rows("two.parquet", [3]), mode="append")
    assert _commit(ledger, table, SCHEMA, added) is None
    rival = changes(ledger, 3, 30, lake.put_rows("three.parquet", [4]))
    assert _commit(ledger, table, SCHEMA, rival) is not None, "the table has changed since it was opened"
    assert current_version(ledger) == 1
    now = open_table(ledger)
    assert now is not None and sorted(file.path for file in table_files(ledger, now)) == ["one.parquet", "two.parquet"]
    before = open_table(replace(ledger, version=0))
    assert before is not None and len(table_files(ledger, before)) == 1


def test_a_store_that_refuses_is_not_a_damaged_table(lake: Lake) -> None:
    with pytest.raises(RunError) as caught:
        open_table(lake.at("s3://nowhere/ledger"))
    problem = caught.value.problem
    assert problem.type == "DataLoadError"
    assert "cannot be opened" in problem.message and "damaged" not in problem.message
    assert "\x1b" not in problem.message and "\n" not in problem.message and SECRET not in repr(problem)
    assert problem.hint == "check the bucket, `credential_ref`, `endpoint` and `region` of the datasource"
    assert refused_by_store(OSError("a\n \x1b[31m↳\x1b[0m error sending request"))[1] is UNAVAILABLE


def test_options_reach_spark_and_delta_alike(lake: Lake) -> None:
    assert delta_options(lake.at("s3a://lake/ledger")) == {
        "AWS_ACCESS_KEY_ID": "AKIAKEY",
        "AWS_SECRET_ACCESS_KEY": SECRET,
        "AWS_ENDPOINT_URL": lake.url,
        "AWS_REGION": "eu-central-1",
        "AWS_ALLOW_HTTP": "true",
    }
    of_bucket = {
        "access.key": "AKIAKEY",
        "secret.key": SECRET,
        "endpoint": lake.url,
        "path.style.access": "true",
        "connection.ssl.enabled": "false",
        "endpoint.region": "eu-central-1",
    }
    expected = {f"fs.s3a.bucket.lake.{name}": value for name, value in of_bucket.items()}
    assert spark_options(lake.at("s3a://lake/ledger")) == expected
    assert spark_options(lake.at("s3://lake/ledger")) == expected | {
        "fs.s3.impl": "org.apache.hadoop.fs.s3a.S3AFileSystem"
    }


def test_a_key_of_google_is_a_file_for_spark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    key = {"client_email": "close@acme", "private_key": SECRET, "private_key_id": "1", "type": "service_account"}
    (tmp_path / "key.json").write_text(json.dumps(key))
    monkeypatch.setenv("LAKE", json.dumps(key))
    source = FileSource(id="lake", type="delta", options=FileOptions(path_prefix="gs://lake"))
    by_file, by_variable = (
        Location(source.model_copy(update={"credential_ref": reference}), "gs://lake/ledger")
        for reference in (f"file:{tmp_path / 'key.json'}", "env:LAKE")
    )
    for location in (by_file, by_variable):
        given = delta_options(location)
        assert given is not None and json.loads(given["google_service_account_key"]) == key
    assert spark_options(by_file)["fs.gs.auth.service.account.json.keyfile"] == str(tmp_path / "key.json")
    with pytest.raises(RunError, match="from a file, not from an environment variable") as caught:
        spark_options(by_variable)
    assert SECRET not in repr(caught.value.problem)


@pytest.mark.parametrize(
    ("url", "store", "package"),
    [
        ("s3://lake/orders", "S3", "hadoop-aws"),
        ("s3a://lake/orders", "S3", "hadoop-aws"),
        ("gs://lake/orders", "Google Cloud Storage", "hadoop-gcp"),
        ("abfss://data@acme.dfs.core.windows.net/orders", "Azure", "hadoop-azure"),
    ],
)
def test_a_missing_connector_is_named_with_its_package(spark, url: str, store: str, package: str, run_id) -> None:
    location = Location(FileSource(id="lake", type="parquet", options=FileOptions(path_prefix=url)), url)
    with pytest.raises(RunError) as caught:
        fingerprint(spark, location)
    problem = caught.value.problem
    assert problem.type == "DataLoadError"
    assert problem.message == f"Spark cannot open {url}: its connector for {store} is missing"
    assert problem.hint is not None and f"spark.jars.packages: org.apache.hadoop:{package}:3." in problem.hint
    assert "VERSION" not in problem.hint


def test_outputs_to_an_object_store_need_the_connector_or_delta(spark, lake: Lake, run_id) -> None:
    rows = spark.createDataFrame([(1,)], "id bigint")
    with pytest.raises(RunError, match="its connector for S3 is missing"):
        write(spark, rows, lake.at("s3://lake/ledger"), mode="overwrite", run_id=run_id("run-1"), seq=30)
    assert current_version(lake.at("s3://lake/ledger")) == ABSENT
    files = Location(FileSource(id="lake", type="csv", options=FileOptions(path_prefix="s3://lake")), "s3://lake/x")
    with pytest.raises(RunError, match="an object store cannot replace many files at once") as caught:
        write(spark, rows, files, mode="overwrite", run_id=run_id("run-1"), seq=30)
    assert caught.value.problem.hint == "write to a datasource of type delta"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("path_prefix: data, region: x", "`region` means nothing for files at 'data'"),
        ("path_prefix: 's3://lake', endpoint: 'http://minio'", "`endpoint` has no encryption"),
        ("path_prefix: 's3://lake', endpoint: minio", "`endpoint` must begin with https:// or http://"),
        ("path_prefix: 's3://lake', endpoint: 'https://minio/{{YYYY}}'", "{{YYYY}}"),
    ],
    ids=["local", "http", "no scheme", "token"],
)
def test_the_checker_knows_the_options_of_a_store(options: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "tallybook.yaml").write_text("name: tiny\n")
    (tmp_path / "lake.yaml").write_text(f"datasource: {{id: lake, type: delta, options: {{{options}}}}}\n")
    (problem,) = Workspace.open(tmp_path).validate()
    assert message in problem.message and problem.place is not None
