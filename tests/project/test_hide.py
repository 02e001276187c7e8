"""Secrets in workspace files are problems, and no text that a user or the store sees repeats them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tallybook.cli.main import main
from tallybook.errors import Problem

S = "hunter2"
FILES = {
    "path": {"s.yaml": f"datasource: {{id: s, type: csv, options: {{path_prefix: 's3a://KEY:{S}@bucket/x'}}}}"},
    "database": {"s.yaml": f"datasource: {{id: s, type: database, options: {{url: 'jdbc:x://h;password={S}'}}}}"},
    "resolver": {
        "r.yaml": "resolver: {id: r, rules: [{name: a, strategy: "
        f"{{type: path, datasource_id: files, path: 'https://h/?sig={S}'}}}}]}}"
    },
    "output": {
        "p.yaml": "project: {id: p, name: P, input_dataset_id: sales-orders, operations: [{seq: 1, name: W, "
        f"type: output, arguments: {{destination: {{location: 'https://u:{S}@h/x'}}}}}}]}}"
    },
    "expression": {
        "p.yaml": "project: {id: p, name: P, input_dataset_id: sales-orders, operations: [{seq: 1, name: W, "
        f"type: update, selector: 'oops = \"https://u:{S}@h/x\"', arguments: {{assignments: []}}}}]}}"
    },
    "unknown key": {"s.yaml": f"datasource: {{id: s, type: database, options: {{url: 'x://h', password: {S}}}}}"},
    "key": {"d.yaml": f"dataset: {{'https://u:{S}@h': 1}}"},
    "anchor": {"s.yaml": f"datasource: {{id: &u 'x://u:{S}@h', type: csv, options: {{path_prefix: *u}}, more: *u}}"},
    "block": {"d.yaml": f"dataset:\n  id: d\n  description: |\n    see\n    x://u:{S}@h\n  nmae: D\n"},
    "folded": {"d.yaml": f'dataset:\n  id: d\n  description: "x://u:\\\n    {S}@h"\n  nmae: D\n'},
    "escaped": {"d.yaml": 'dataset: {id: d, nmae: 1, description: "x:\\/\\/u:hunter\\x32@h"}'},
    "not yaml": {"d.yaml": f"dataset: {{id: d, description: x://u:{S}@h]"},
    "comment": {"d.yaml": f"dataset: {{id: d, nmae: D}}  # x://u:{S}@h"},
    "store": {"tallybook.yaml": f"name: n\nstore: postgresql://u:{S}@h/db"},
    "remote": {"tallybook.yaml": f"name: n\nspark: {{remote: 'sc://h/;token={S}'}}"},
    "setting": {"tallybook.yaml": f"name: n\nspark: {{conf: {{spark.ssl.keyPassword: {S}}}}}"},
    "java option": {"tallybook.yaml": f"name: n\nspark: {{conf: {{spark.driver.extraJavaOptions: -Da.password={S}}}}}"},
    "setting with a url": {"tallybook.yaml": f"name: n\nspark: {{conf: {{spark.jars: 'https://u:{S}@h/x.jar'}}}}"},
    "password": {"tallybook.yaml": f"name: n\npassword: {S}"},
    "reference": {"s.yaml": f"datasource: {{id: s, type: database, credential_ref: {S}, options: {{url: 'x://h'}}}}"},
}
WITHOUT_ONE = {"comment", "not yaml", "reference"}
"""Wrong for another reason, in a line that has a secret."""


@pytest.mark.parametrize("case", FILES)
def test_secrets_are_found_and_never_shown(
    case: str,
    sound: Path,
    validate: Callable[..., list[Problem]],
    capsys: pytest.CaptureFixture[str],
) -> None:
    problems = validate(FILES[case])
    assert problems
    assert ("SecretInYaml" in {problem.type for problem in problems}) == (case not in WITHOUT_ONE)
    for command in (["validate"], ["apply"], ["plan", "p", "--period", "2026-01"], ["run", "p", "--period", "2026-01"]):
        for form in ([], ["--json"]):
            assert main([*command, "--workspace", str(sound), *form]) == 1
            shown = capsys.readouterr()
            assert (S in shown.out + shown.err, "unter2" in shown.out + shown.err) == (False, False)
    assert not [
        file for file in (sound / ".tallybook").rglob("*") if file.is_file() and S.encode() in file.read_bytes()
    ]
    assert S not in repr(problems) and S not in json.dumps([problem.to_json() for problem in problems])
