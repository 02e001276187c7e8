"""CSV files: all values are text.

Spark's parser reads whole files, so that a line break in quotes is text. It knows only one line end, here LF: a CR
before it becomes the last character of the last field, or of a blank line, and is removed afterwards. Files with lines
that end with CR alone are split into records by a pattern.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from tallybook.errors import Problem, fail
from tallybook.model.encoding import Encoding
from tallybook.model.location import Location
from tallybook.rows import sql
from tallybook.rows.raising import raising
from tallybook.storage.credentials import reader
from tallybook.storage.files import check_compression, escape_pattern, file_options, list_files, path_of, reader_path
from tallybook.storage.folders import check_layout, folder_values, visible
from tallybook.storage.formats.base import register
from tallybook.storage.formats.csv_dialect import Dialect
from tallybook.storage.formats.csv_layout import Layout, find_fault, layouts
from tallybook.storage.formats.csv_text import BOM, encode_file
from tallybook.storage.formats.plain_files import EXACT_PATH, TEXT_OPTIONS, Options, PlainFiles
from tallybook.storage.load import broken_row, check_names, load, texts
from tallybook.storage.notation import ISO, Notation
from tallybook.storage.scan import FILE, ORIGIN, ROW, START, Field, Scan, quoted

_BROKEN, _TEXT, _RECORD, _FIELDS = map(sql.internal, ("broken", "text", "record", "fields"))
_CR = "chr(13)"
_BINARY = T.StructType(
    [
        T.StructField("path", T.StringType(), nullable=False),
        T.StructField("modificationTime", T.TimestampType(), nullable=False),
        T.StructField("length", T.LongType(), nullable=False),
        T.StructField("content", T.BinaryType()),
    ]
)
"""The columns of Spark's format for whole files."""
_MOST_COLUMNS = 20480
"""The default of the parser."""


class Csv(PlainFiles):
    """CSV: all values are text, in the dialect of the datasource's options."""

    type = "csv"
    row_hint = "each line needs as many fields as the header, or as the table has columns if there is no header"
    inexact = "a CSV file without a header"
    inexact_hint = "set has_header: true in the datasource, or write Parquet or Delta instead"

    def scan(self, spark: SparkSession, location: Location, fields: Sequence[Field], first: int) -> tuple[Scan, ...]:
        return scan_csv(spark, location, fields)

    def read_options(self, location: Location) -> Options:
        """Returns options for files that Spark has written and nobody has encoded yet."""
        return {**csv_options(location), "encoding": "UTF-8"}

    def write_options(self, location: Location) -> Options:
        """Returns options that keep the spaces of text, which Spark removes by default."""
        csv = file_options(location)
        return {
            **EXACT_PATH,
            **TEXT_OPTIONS,
            "sep": csv.delimiter,
            "header": csv.has_header,
            "nullValue": csv.null_value,
            "quote": csv.quote,
            "escape": csv.quote,
            "ignoreLeadingWhiteSpace": False,
            "ignoreTrailingWhiteSpace": False,
        }

    def prepared(self, spark: SparkSession, frame: DataFrame, location: Location) -> DataFrame:
        """Converts numbers, dates and timestamps to the notation of the datasource (Spark writes 0E-10), and writes a
        row whose only value is NULL as a quoted empty text, because readers skip empty lines. A text that the encoding
        cannot express fails the job. So does, without a header, a text in the first column that begins with a byte
        order mark, because readers drop the mark at the start of a file."""
        options = file_options(location)
        notation, encoding = Notation.of(options), Dialect.of(options).encoding
        columns = {f.name: notation.written(quoted(f.name), f.dataType, f.name) for f in frame.schema.fields}
        if len(columns) == 1 and not options.null_value:
            columns = {name: F.coalesce(value.cast("string"), F.lit("")) for name, value in columns.items()}
        of_text = [field.name for field in frame.schema.fields if isinstance(field.dataType, T.StringType)]
        if options.has_header and (bad := next(filter(encoding.lacks, frame.columns), None)) is not None:
            message = f"{location} could not be written: the column name '{bad}' cannot be written in {encoding.label}"
            raise fail("WriteFailed", message, hint="set `encoding: utf-8`, or rename the column")
        for name in of_text if encoding.letters is not None else ():
            foreign = F.rlike(quoted(name), F.lit(f"[^{_letters(encoding)}]"))
            failure = raising("WriteFailed", column=name, value=quoted(name), form=f"in {encoding.label}")
            columns[name] = F.when(foreign, failure).otherwise(columns[name])
        first = frame.columns[0]
        if not options.has_header and first in of_text:
            failure = raising("WriteFailed", column=first, value=quoted(first))
            columns[first] = F.when(quoted(first).startswith(BOM), failure).otherwise(columns[first])
        return frame.select(*(value.alias(name) for name, value in columns.items()))

    def finish_file(self, file: Path, location: Location) -> None:
        options = file_options(location)
        encoding = Dialect.of(options).encoding
        if options.bom or not encoding.is_utf_8:
            encode_file(file, encoding, mark=options.bom)

    def existing_columns(self, spark: SparkSession, location: Location, target: str) -> T.StructType:
        """Returns the columns of the first file, because appending keeps them equal in all."""
        if not file_options(location).has_header:
            return spark.read.options(**csv_options(location)).csv(escape_pattern(target)).schema
        [first, *_] = list_files(spark.read, escape_pattern(target))
        [layout] = layouts(spark, location, [first])
        return T.StructType(texts(layout.header))

    def same_columns(self, location: Location, existing: T.StructType, new: T.StructType) -> bool:
        """Files without a header have the same columns if they have as many."""
        return existing.names == new.names if file_options(location).has_header else len(existing) == len(new)

    def parser_fault(self, spark: SparkSession, location: Location, path: str) -> Problem | None:
        listed = list_files(reader(spark, location), reader_path(location))
        file = next((url for url in listed if path_of(url) == path), None)
        if file is None:
            return None
        fault = find_fault(spark, location, file)
        message = f"{path} has a line with far more fields than its header, or than the table has columns"
        return fault.problem if fault else Problem("DataLoadError", message, self.row_hint)


CSV = register(Csv())


def scan_csv(spark: SparkSession, location: Location, fields: Sequence[Field]) -> tuple[Scan, ...]:
    """Returns the rows at a location, one Scan for each set of files with the same layout; none if there are no
    files."""
    check_layout(spark, location)
    listed = list_files(reader(spark, location), reader_path(location))
    files = visible(location, listed)
    check_compression(files)
    return tuple(
        _scan(spark, location, fields, layout, group, None if group == list(listed) else list(map(path_of, group)))
        for layout, group in layouts(spark, location, files).items()
    )


def csv_options(location: Location, columns: int = 0) -> dict[str, str | bool]:
    """Returns the options with which Spark reads CSV.

    A doubled quote is a quote. Without `charToEscapeQuoteEscaping` the parser drops NUL characters next to it.
    `nullValue` is empty, because Spark always reads an empty field as NULL; `null_value` is applied afterwards.
    """
    options = file_options(location)
    return {
        "sep": Dialect.of(options).spark_delimiter,
        "header": options.has_header,
        "multiLine": True,
        "lineSep": "\n",
        "quote": options.quote,
        "escape": options.quote,
        "charToEscapeQuoteEscaping": options.quote,
        "unescapedQuoteHandling": "RAISE_ERROR",
        "nullValue": "",
        "encoding": Dialect.of(options).encoding.java,
        "columnNameOfCorruptRecord": _BROKEN,
        "maxColumns": str(max(_MOST_COLUMNS, columns + 1)),
    }


def _scan(
    spark: SparkSession,
    location: Location,
    fields: Sequence[Field],
    layout: Layout,
    files: Sequence[str],
    paths: Sequence[str] | None,
) -> Scan:
    names = _names(location, fields, layout, files[0])
    split = layout.split or not names  # Spark's parser cannot read records that must have no fields
    opened = (_split if split else _parse)(spark, location, layout, len(names), paths)
    wanted = [field.physical for field in fields]
    null = sql.text(file_options(location).null_value)
    encoding = Dialect.of(file_options(location)).encoding
    columns = {name: _decoded(opened.fields[index], encoding) for index, name in enumerate(names) if name in wanted}
    own = {name: f"nullif(coalesce({field}, ''), {null})" for name, field in columns.items()}
    in_folders = {name: sql.name(name) for name in opened.partitions if name in wanted}
    folders = {name: sql.internal(f"folder of {name}") for name in own if name in in_folders}
    values = in_folders | own | {folder: in_folders[name] for name, folder in folders.items()}
    present = frozenset(wanted).intersection(names + list(opened.partitions))
    check_names(location, sorted(present))
    return Scan(
        opened.frame,
        values | opened.origin,
        dict.fromkeys(present, T.StringType()),
        frozenset(names).union(opened.partitions),
        tuple(files),
        dict.fromkeys(in_folders, ISO) | dict.fromkeys(own, Notation.of(file_options(location))),
        quoted(_BROKEN),
        folders=folders,
    )


@dataclass(frozen=True)
class _Opened:
    """A frame of rows, with SQL for the fields of a record and for its origin."""

    frame: DataFrame
    fields: Sequence[str]
    origin: dict[str, str]
    partitions: tuple[str, ...]


def _names(location: Location, fields: Sequence[Field], layout: Layout, file: str) -> list[str]:
    """Returns the column of each field of a record: by the header, else in the order of the table, without columns in
    folder names."""
    if not file_options(location).has_header:
        in_folders = folder_values(location, path_of(file))
        names = [field.physical for field in fields if field.declared and field.physical not in in_folders]
        message = "the table uses the column '{}' twice, which is not possible for files without a header"
    else:
        names = [name or f"_c{index}" for index, name in enumerate(layout.header)]
        message = f"{path_of(file)} has the column '{{}}' twice"
    wanted = {field.physical for field in fields}
    twice = next((name for name, count in Counter(names).items() if count > 1 and name in wanted), None)
    if twice is not None:
        raise fail("SchemaMismatch", message.format(twice), hint="rename one of them")
    return names


def _parse(spark: SparkSession, location: Location, layout: Layout, count: int, paths: Sequence[str] | None) -> _Opened:
    """Lets Spark's parser find the records."""
    numbers = _numbers(count)
    columns = T.StructType(texts([*numbers, _BROKEN]))
    frame, partitions = load(spark, location, "csv", columns, csv_options(location, count), paths)
    fields = [sql.name(number) for number in numbers]
    if layout.crlf:
        frame = frame.where(f"NOT {fields[0]} <=> {_CR}")
        fields[-1] = f"rtrim({_CR}, {fields[-1]})"
    broken = _decoded(broken_row(_BROKEN, columns.names[0]), Dialect.of(file_options(location)).encoding)
    origin = {FILE: ORIGIN[FILE], START: ORIGIN[START], _BROKEN: broken}
    return _Opened(frame, fields, origin, partitions)


def _split(spark: SparkSession, location: Location, layout: Layout, count: int, paths: Sequence[str] | None) -> _Opened:
    """Finds the records with a pattern in the text of a whole file."""
    dialect = Dialect.of(file_options(location))
    if dialect.encoding.is_utf_8:
        whole, partitions = load(spark, location, "text", T.StructType(texts([_TEXT])), {"wholetext": True}, paths)
        text = quoted(_TEXT)
    else:
        whole, partitions = load(spark, location, "binaryFile", _BINARY, {}, paths)
        text = F.decode(F.col("content"), dialect.encoding.java)
    text = F.ltrim(text, F.lit(BOM))
    records = F.posexplode(F.regexp_extract_all(text, F.lit(dialect.records), F.lit(0))).alias(ROW, _RECORD)
    rows = whole.select(*map(quoted, partitions), F.expr(ORIGIN[FILE]).alias(FILE), records)
    if file_options(location).has_header:
        rows = rows.where(quoted(ROW) > 0).withColumn(ROW, quoted(ROW) - 1)
    record = F.concat(F.lit(dialect.delimiter), quoted(_RECORD))
    parts = F.regexp_extract_all(record, F.lit(dialect.next_field), F.lit(1))
    good = record.rlike(rf"\A(?:{dialect.next_field}){{{count}}}+\z")
    unquoted = F.transform(parts, lambda part: _unquoted(part, dialect))
    frame = rows.withColumns({_FIELDS: unquoted, _BROKEN: F.when(~good, quoted(_RECORD))})
    fields = [f"get({sql.name(_FIELDS)}, {number})" for number in range(count)]
    origin = {name: sql.name(name) for name in (FILE, ROW, _BROKEN)}
    return _Opened(frame, fields, origin, partitions)


def _unquoted(part: Column, dialect: Dialect) -> Column:
    bare = F.rtrim(part, F.lit(dialect.padding))
    inside = F.substring(bare, F.lit(2), F.length(bare) - 2)
    inside = F.replace(inside, F.lit(dialect.quote * 2), F.lit(dialect.quote))
    return F.when(part.startswith(dialect.quote), inside).otherwise(part)


def _decoded(text: str, encoding: Encoding) -> str:
    """Returns SQL for a text that Spark has read in a code page as ISO-8859-1."""
    read, meant = encoding.from_spark
    return f"translate({text}, {sql.text(read)}, {sql.text(meant)})" if read else text


def _letters(encoding: Encoding) -> str:
    """Returns the characters of a code page for the brackets of a pattern."""
    return "".join(f"\\x{{{ord(letter):x}}}" for letter in encoding.letters or "")


def _numbers(count: int) -> list[str]:
    """Returns internal names for the fields of a record, because names in a header may differ only by case."""
    return [sql.internal(str(number)) for number in range(count)]
