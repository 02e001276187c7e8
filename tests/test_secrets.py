from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from tallybook.errors import RunError
from tallybook.secrets import hide_secrets, names_secret, read_secret

S = "hunter2"


def test_a_secret_shows_itself_to_those_who_ask(tmp_path: Path) -> None:
    (tmp_path / "password").write_text(f"{S}\r\n")
    for reference in ("env:DB", "file:password", f"file:{tmp_path}/password"):
        secret = read_secret(reference, tmp_path, {"DB": S})
        assert secret.reveal() == S
        assert S not in f"{secret} {secret!r} {secret!s} {[secret]} {secret:}"


@pytest.mark.parametrize(
    "reference",
    ["env:NONE", "env:", "env:EMPTY", "file:none", "file:", "file:folder", "file:pipe", "file:bytes", "x", S],
)
def test_a_secret_that_is_not_there(tmp_path: Path, reference: str) -> None:
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "bytes").write_bytes(S.encode() + b"\xff")
    with pytest.raises(RunError) as caught:
        read_secret(reference, tmp_path, {"EMPTY": ""})
    assert caught.value.problem.type == "CredentialNotFound"
    assert S not in str(caught.value)


@pytest.mark.parametrize(
    "url",
    [
        f"postgresql://user:{S}@host/db",
        f"s3a://KEY:{S}@bucket/path",
        f"https://user:{S}/with#odd?marks@host/",
        f"postgresql://host/db?user=me&password={S}",
        f"postgresql://host/db?sslpassword={S}",
        f"sc://host:15002/;token={S};user_id=me",
        f"https://account.blob.core.windows.net/c?sv=2024&sig={S}&se=2026",
        f"https://bucket.s3.amazonaws.com/o?X-Amz-Signature={S}",
        f"https://host/#access_token={S}",
        f"https://host/?key={S}",
        f"jdbc:sqlserver://host;user=me;password={S};encrypt=true",
        f"jdbc:oracle:thin:scott/{S}@//host:1521/db",
        f"jdbc:mysql://host/db?user=me&password={S}",
        f"see https://me:{S}@host, then http://host/",
        f"spark://a:7077,spark://me:{S}@b:7077",
        f"AccountName=x;AccountKey={S};EndpointSuffix=y",
        f"-Xmx1g -Djavax.net.ssl.trustStorePassword={S} -Dfile.encoding=UTF-8",
    ],
)
def test_secrets_in_urls(url: str) -> None:
    hidden = hide_secrets(url)
    assert (len(hidden), S in hidden, "*" * len(S) in hidden) == (len(url), False, True)
    assert hide_secrets(hidden) == hidden


@pytest.mark.parametrize(
    "text",
    [
        "postgresql://user@host:5432/db?sslmode=require",
        "postgresql://h1:5432,h2:5432/db?options=a@b",
        "abfss://container@account.dfs.core.windows.net/path",
        "https://host:8080/path@2026?partition_key=1&page_token_size=2",
        "http://[::1]:8080/@x",
        "s3a://bucket/{{YYYY}}/{{MM}}",
        "sqlite:///path/to:file@x",
        "sc://host:15002/;user_id=me;use_ssl=true",
        'token="a" AND password = "b;password=c"',
        'CONCAT("a:b", "@c")',
        "local[2]",
        "-Dfile.encoding=UTF-8 -Djavax.net.ssl.trustStore=/path",
        "12:30@noon",
        "x" * 1000,
    ],
)
def test_texts_without_secrets(text: str) -> None:
    assert hide_secrets(text) == text


@pytest.mark.parametrize(
    "name",
    re.findall(
        r"\S+",
        """spark.hadoop.fs.s3a.secret.key spark.hadoop.fs.s3a.access.key fs.s3a.session.token spark.authenticate.secret
    spark.ssl.keyPassword spark.hadoop.javax.jdo.option.ConnectionPassword spark.connect.authenticate.token
    fs.azure.account.key.acme.dfs.core.windows.net fs.azure.account.oauth2.client.secret fs.azure.sas.c.acme.net
    spark.executorEnv.AWS_SECRET_ACCESS_KEY spark.executorEnv.DB_PASSWORD es.net.http.auth.pass apiKey
    spark.kafka.sasl.jaas.config fs.s3a.encryption.key spark.x.privateKey spark.x.credentials""",
    ),
)
def test_settings_that_are_secret(name: str) -> None:
    assert names_secret(name)


@pytest.mark.parametrize(
    "name",
    re.findall(
        r"\S+",
        """spark.app.name spark.authenticate spark.hadoop.fs.s3a.aws.credentials.provider spark.ssl.keyStore
    spark.hadoop.hadoop.security.credential.provider.path spark.kubernetes.driver.secrets.db
    spark.kubernetes.executor.secretKeyRef.DB spark.kubernetes.authenticate.driver.oauthTokenFile
    spark.authenticate.secret.file spark.security.credentials.hive.enabled spark.kerberos.renewal.credentials
    spark.kerberos.keytab spark.sql.shuffle.partitions spark.executorEnv.AWS_ACCESS_KEY_ID spark.sql.keyspace
    spark.sql.parser.tokenizer spark.hadoop.fs.s3a.assumed.role.credentials.provider credential_ref""",
    ),
)
def test_settings_that_are_not(name: str) -> None:
    assert not names_secret(name)


def test_long_texts_take_no_time() -> None:
    evil = "jdbc:oracle:x:" * 70_000
    for text in (
        evil,
        "a" * 1_000_000,
        "://" * 300_000,
        "https://u:p@h " * 70_000,
        "a:" * 500_000,
        "?key" * 250_000,
        "-D" * 500_000,
        "@:/" * 300_000,
    ):
        hide_secrets(text)
