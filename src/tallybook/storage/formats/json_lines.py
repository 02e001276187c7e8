"""Finds the keys in the lines of JSON files, and checks that each line is exactly one object.

Spark's reader takes the first object of a line and drops the rest, takes the last of two values for one key, and does
not find `i` in a row with `I`. All of that is an error here. Ordinary lines are recognised by their list of keys and
their only closing brace; other lines are parsed once more.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import reduce

from pyspark.sql import Column, DataFrame, DataFrameReader, Row
from pyspark.sql import functions as F
from pyspark.sql.window import Window

from tallybook.errors import RunError, fail
from tallybook.rows import sql
from tallybook.storage.files import path_of, reader_paths
from tallybook.storage.scan import FILE, ORIGIN, START

STRICT = {"allowSingleQuotes": "false", "allowNonNumericNumbers": "false"}
"""Options that make Spark refuse quotes and numbers that are not JSON."""
_SAMPLE = 1000
_USUAL = 20
"""The number of different lists of keys that are usual; lines with other keys are parsed once more."""
_SHOWN, _SHOWN_CHARACTERS = 5, 200
_END = sql.internal("end")
_NOT_BLANK = "btrim(value, ' ' || chr(9)) <> ''"
"""True for lines that are not blank. Spark also skips blank lines."""


def find_keys(reader: DataFrameReader, paths: Sequence[str], wanted: Sequence[str]) -> set[str] | None:
    """Returns the wanted keys that any line has and the other keys of the first lines; None if there are no lines.

    Raises DataLoadError for lines that are not exactly one object with each key once, and for lines that have a key in
    another case than the lines that have it as wanted.
    """
    lines = _lines(reader, paths).where(_NOT_BLANK)
    sample = lines.select("keys", "single").limit(_SAMPLE).collect()
    if not sample:
        return None
    all_keys = {key for row in sample for key in row["keys"] or ()}
    lists = dict.fromkeys(tuple(row["keys"]) for row in sample if row["keys"] is not None)
    usual = [keys for keys in lists if len(set(keys)) == len(keys) and not _other_case(wanted, keys)][:_USUAL]
    if len(sample) < _SAMPLE and all(row["single"] and tuple(row["keys"] or ()) in usual for row in sample):
        return all_keys
    unusual = _examined(lines.where(~_is_one_of(usual)), wanted)
    kinds = unusual.select("fault", "exact", "folded").distinct().collect()
    all_keys |= {key for kind in kinds for key in kind["exact"] or ()}
    mixed = [name for name in wanted if name in all_keys and any(_lacks(kind, name) for kind in kinds)]
    if mixed or any(kind["fault"] for kind in kinds):
        raise _report(reader, unusual, wanted, mixed)
    return all_keys


def _lines(reader: DataFrameReader, paths: Sequence[str]) -> DataFrame:
    """Returns the lines of files with their keys. A line is `single` if its first closing brace is its end: nothing can
    follow the object then."""
    text = reader.option("recursiveFileLookup", "true").text(list(paths))
    return text.selectExpr(
        "value",
        f"{ORIGIN[FILE]} AS file",
        f"struct({ORIGIN[START]} AS start, monotonically_increasing_id() AS number) AS at",
        "json_object_keys(value) AS keys",
        "instr(value, '}') = length(rtrim(value)) AS single",
    )


def _is_one_of(usual: Sequence[Sequence[str]]) -> Column:
    """Returns a condition that is true for a line with a usual list of keys and nothing after its object."""
    same = (F.col("keys") == _texts(keys) for keys in usual)
    return F.coalesce(F.col("single") & reduce(lambda a, b: a | b, same, F.lit(False)), F.lit(False))


def _texts(values: Sequence[str]) -> Column:
    return F.array(*map(F.lit, values)).cast("array<string>")


def _examined(lines: DataFrame, wanted: Sequence[str]) -> DataFrame:
    """Adds to lines their `fault`, the wanted keys that they have (`exact`), and those they have in any case, in lower
    case (`folded`).

    A line is one object if it and an end mark are the two items of a list.
    """
    listed = F.from_json(
        F.concat(F.lit("["), "value", F.lit(f',{{"{_END}":"{_END}"}}]')),
        f"array<struct<{sql.name(_END)}: string>>",
        STRICT,
    )
    is_one = (F.size(listed) == 2) & (F.get(listed, F.lit(1))[_END] == _END)
    fault = F.when(F.col("keys").isNull() | ~F.coalesce(is_one, F.lit(False)), F.lit("not one")).when(
        F.size(F.array_distinct("keys")) < F.size("keys"), F.lit("twice")
    )
    return lines.withColumns(
        {
            "fault": fault,
            "exact": F.array_intersect("keys", _texts(wanted)),
            "folded": F.array_intersect(F.transform("keys", F.lower), _texts([name.lower() for name in wanted])),
        }
    )


def _other_case(wanted: Sequence[str], keys: Sequence[str]) -> list[str]:
    """Returns the wanted names that are among the keys only in another case."""
    folded = {key.lower() for key in keys}
    return [name for name in wanted if name not in keys and name.lower() in folded]


def _lacks(kind: Row, name: str) -> bool:
    return name not in (kind["exact"] or ()) and name.lower() in (kind["folded"] or ())


def _report(reader: DataFrameReader, unusual: DataFrame, wanted: Sequence[str], mixed: Sequence[str]) -> RunError:
    """Returns the error that lists the first bad lines of the first bad file, with their numbers."""
    is_bad = F.col("fault").isNotNull()
    for name in mixed:
        is_bad = is_bad | (F.array_contains("folded", name.lower()) & ~F.array_contains("exact", name))
    [(file,)] = unusual.where(is_bad).agg(F.min("file")).collect()
    numbered = _lines(reader, reader_paths([file])).withColumn("line", F.row_number().over(Window.orderBy("at")))
    not_blank = _examined(numbered.where(_NOT_BLANK), wanted)
    lines = not_blank.where(is_bad).orderBy("line").limit(_SHOWN).collect()
    listed = "; ".join(f"{path_of(file)} line {line['line']}: {_describe(line, mixed)}" for line in lines)
    return fail("DataLoadError", listed, hint=_hint(lines[0]))


def _describe(line: Row, mixed: Sequence[str]) -> str:
    if line["fault"] == "not one":
        return f"'{line['value'][:_SHOWN_CHARACTERS]}' is not exactly one JSON object"
    if line["fault"] == "twice":
        [(twice, _)] = Counter(line["keys"]).most_common(1)
        return f"the line has the key '{twice}' twice"
    name = _other_case(mixed, line["keys"])[0]
    key = next(key for key in line["keys"] if key.lower() == name.lower())
    return f"the key '{key}' is '{name}' in other lines"


def _hint(line: Row) -> str:
    if line["fault"] == "twice":
        return "write each key once"
    if line["fault"] is None:
        return "spell the key the same way in every line"
    text = line["value"].strip()
    if text.startswith("["):
        return "the file seems to be one JSON array; write one object on each line, without brackets and commas between"
    if text == "{" or (text.startswith("{") and not text.endswith("}")):
        return "an object must be on one line; write one object on each line"
    return "write one object on each line, and nothing after it"
