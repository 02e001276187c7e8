"""A credential must be a reference that a datasource uses."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tallybook.errors import Problem

FILES = "datasource: {{id: s, type: delta, credential_ref: {}, options: {{path_prefix: '{}'}}}}"


@pytest.mark.parametrize("prefix", ["s3://b/x", "s3a://b/x", "abfs://c@a.net/x", "abfss://c@a.net/x"])
@pytest.mark.parametrize("reference", ["env:NAME", "file:keys/lake", "file:/run/secrets/lake"])
def test_credentials_of_object_stores(validate: Callable[..., list[Problem]], prefix: str, reference: str) -> None:
    assert validate({"s.yaml": FILES.format(reference, prefix)}) == []


@pytest.mark.parametrize(
    "document",
    [
        FILES.format("env:NAME", "data"),
        FILES.format("env:NAME", "/data"),
        FILES.format("env:NAME", "hdfs://host/data"),
        "datasource: {id: s, type: spark_catalog, credential_ref: env:NAME}",
    ],
)
def test_credentials_without_a_use(validate: Callable[..., list[Problem]], document: str) -> None:
    (problem,) = validate({"s.yaml": document})
    assert (problem.type, problem.path) == ("InvalidArguments", "datasource.credential_ref")
    assert "'credential_ref' is not used for" in problem.message
