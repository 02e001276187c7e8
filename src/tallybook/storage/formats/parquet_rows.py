"""Answers questions about the rows of local Parquet files without Spark: whether a text is ever blank, and whether keys
are unique.

The answers only decide how a run computes its rows, so "not known" is the same as "no".
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from tallybook.storage.formats.column_reading import GREGORIAN_DAY

_MOST_ROWS = 5_000_000
_MOST_BYTES = 64 * 2**20
"""The most rows, and bytes of keys, that this process reads. Spark looks through more of them faster."""


def names_in_footer(file: str) -> frozenset[str]:
    """Returns the columns of a file."""
    return frozenset(pq.read_schema(file).names)


def are_never_blank(files: Sequence[str], column: str) -> bool:
    """True if the statistics of all files show that every value of a text column begins with a visible character."""
    return bool(files) and all(_is_never_blank(pq.read_metadata(file), column) for file in files)


def _is_never_blank(footer: pq.FileMetaData, column: str) -> bool:
    return column in _columns(footer) and all(
        chunk.statistics is not None
        and chunk.statistics.has_null_count
        and chunk.statistics.null_count == 0
        and chunk.statistics.has_min_max
        and chunk.statistics.min_raw[:1] > b" "
        for chunk in _chunks(footer, [column])
    )


def are_unique(files: Sequence[str], keys: Sequence[str], within: tuple[str, Sequence[str]] | None = None) -> bool:
    """True if no two rows of all files have the same values in the key columns. Rows with a NULL in a key do not count.

    `within` is a text column, with the values of the rows that count. Files without that column count whole.
    """
    footers = [pq.read_metadata(file) for file in files]
    if not files or not all(set(keys) <= _columns(footer) for footer in footers) or _are_many(footers, keys):
        return False
    read = [_read(file, footer, keys, within) for file, footer in zip(files, footers, strict=True)]
    types = read[0].schema.types
    if any(table.schema.types != types for table in read):
        return False
    rows = pa.concat_tables(read).drop_null()
    if not all(map(_are_exact, rows.columns)):
        return False
    if len(keys) == 1 and pa.types.is_integer(types[0]):  # several times faster than groups
        values = np.sort(rows.column(0).to_numpy())
        return not (values[1:] == values[:-1]).any()
    return bool(rows.group_by(list(keys), use_threads=False).aggregate([]).num_rows == rows.num_rows)


def _columns(footer: pq.FileMetaData) -> set[str]:
    return {footer.schema.column(index).path for index in range(footer.num_columns)}


def _are_many(footers: Sequence[pq.FileMetaData], keys: Sequence[str]) -> bool:
    size = sum(chunk.total_uncompressed_size for footer in footers for chunk in _chunks(footer, keys))
    return bool(sum(footer.num_rows for footer in footers) > _MOST_ROWS or size > _MOST_BYTES)


def _chunks(footer: pq.FileMetaData, columns: Sequence[str]) -> list[pq.ColumnChunkMetaData]:
    groups = [footer.row_group(index) for index in range(footer.num_row_groups)]
    return [
        chunk
        for group in groups
        for chunk in map(group.column, range(group.num_columns))
        if chunk.path_in_schema in columns
    ]


def _read(
    file: str, footer: pq.FileMetaData, keys: Sequence[str], within: tuple[str, Sequence[str]] | None
) -> pa.Table:
    """Returns the keys of the rows that count."""
    if within is None or within[0] not in _columns(footer):
        return pq.ParquetFile(file, metadata=footer).read(list(keys))
    column, values = within
    rows = pq.ParquetFile(file, metadata=footer).read(list(dict.fromkeys([*keys, column])))
    counting = pc.is_in(rows[column].cast(pa.string()), value_set=pa.array(values, pa.string()))
    return rows.filter(counting).select(list(keys))


def _are_exact(values: pa.ChunkedArray) -> bool:
    """True if two values that differ are different values for Spark, too. Days before 1582-10-15 may not be: Spark
    converts those that are written in the Julian calendar."""
    type = values.type
    if pa.types.is_date32(type):
        first = pc.min(values.cast(pa.int32())).as_py()
        return first is None or first >= GREGORIAN_DAY
    is_text = pa.types.is_string(type) or pa.types.is_large_string(type)
    return bool(is_text or pa.types.is_integer(type) or pa.types.is_decimal(type))
