"""A datasource's `credential_ref` opens its object store, for Spark and for delta-rs, and nobody else sees it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tallybook.errors import RunError
from tallybook.model.datasource import FileOptions, FileSource
from tallybook.model.location import Location
from tallybook.storage.credentials import delta_options, spark_options
from tallybook.storage.formats.delta_table import open_table

KEY, SECRET = "AKIAKEYOFTHETEST", "hunter2/secret+key"
S3 = f"access_key_id={KEY}\nsecret_access_key={SECRET}\n"


def locate(target: str, reference: str | None) -> Location:
    source = FileSource(id="lake", type="delta", credential_ref=reference, options=FileOptions(path_prefix=target))
    return Location(source, target)


@pytest.fixture
def s3() -> Iterator[ThreadingHTTPServer]:
    """A server on this machine that notes how requests for objects are signed, and has none."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            signatures.append(self.headers.get("Authorization", ""))
            self.send_response(200 if "list-type" in self.path else 404)
            self.end_headers()
            self.wfile.write(b"<ListBucketResult></ListBucketResult>" if "list-type" in self.path else b"")

        def do_HEAD(self) -> None:
            self.do_GET()

        def log_message(self, *_: object) -> None:
            pass

    signatures: list[str] = []
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.signatures = signatures  # type: ignore[attr-defined]  # for the handler
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.shutdown()


@pytest.mark.parametrize("scheme", ["s3", "s3a"])
def test_delta_tables_in_s3(s3, scheme: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{s3.server_port}")
    monkeypatch.setenv("AWS_ALLOW_HTTP", "true")
    monkeypatch.setenv("AWS_REGION", "eu-central-1")
    (tmp_path / "key").write_text(S3)
    assert open_table(locate(f"{scheme}://bucket/table", f"file:{tmp_path}/key")) is None
    assert s3.signatures
    assert all(f"Credential={KEY}/" in signature and SECRET not in signature for signature in s3.signatures)


@pytest.mark.parametrize(
    "content",
    [
        S3,
        f"[default]\naws_access_key_id = {KEY}\naws_secret_access_key = {SECRET}\n",
        f"access_key_id={KEY};secret_access_key={SECRET}",
        f'{{"access_key_id": "{KEY}", "secret_access_key": "{SECRET}"}}',
    ],
)
def test_forms_of_the_secret(content: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAKE", content)
    lake = locate("s3a://bucket/table", "env:LAKE")
    prefix = "fs.s3a.bucket.bucket"
    assert spark_options(lake) == {f"{prefix}.access.key": KEY, f"{prefix}.secret.key": SECRET}
    assert delta_options(lake) == {"AWS_ACCESS_KEY_ID": KEY, "AWS_SECRET_ACCESS_KEY": SECRET}


@pytest.mark.parametrize("content", [f"{SECRET}==", f"account_key={SECRET}=="])
def test_azure(content: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAKE", content)
    lake = locate("abfss://data@acme.dfs.core.windows.net/table", "env:LAKE")
    assert spark_options(lake) == {"fs.azure.account.key.acme.dfs.core.windows.net": f"{SECRET}=="}
    assert delta_options(lake) == {
        "azure_storage_account_name": "acme",
        "azure_storage_account_key": f"{SECRET}==",
    }


def test_without_a_credential_nothing_is_added() -> None:
    assert (spark_options(locate("s3a://b/t", None)), delta_options(locate("s3a://b/t", None))) == ({}, None)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (f"secret_access_key={SECRET}", "has no access_key_id"),
        (SECRET, "has no access_key_id and no secret_access_key"),
        (None, "LAKE is not set"),
    ],
)
def test_secrets_that_do_not_open_it(content: str | None, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if content is not None:
        monkeypatch.setenv("LAKE", content)
    with pytest.raises(RunError) as caught:
        open_table(locate("s3a://bucket/table", "env:LAKE"))
    assert (caught.value.problem.type, said in str(caught.value)) == ("CredentialNotFound", True)
    assert SECRET not in str(caught.value)


def test_options_of_a_reader_reach_the_file_system(spark, tmp_path: Path) -> None:
    """Shown with a file system that needs settings and that Spark always has: a table of mounted folders."""
    (tmp_path / "a.csv").write_text("1\n")
    mount = {"fs.viewfs.mounttable.here.link./data": tmp_path.as_uri()}
    assert spark.read.options(**mount).csv("viewfs://here/data/a.csv").count() == 1
