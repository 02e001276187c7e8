"""Parquet, ORC and Delta written by other libraries: other types, orders, compression, metadata and missing columns."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import cache
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

from ..case import ArrowFile, Case, Column, DeltaWrite
from .layouts import asked, layout_of, placed
from .tables import EXTRAS, LINED_NAMES, ODD_NAMES, PLAIN_NAMES, chance, declared

SIGNED = [pa.int64(), pa.int8(), pa.int16(), pa.int32()]
INTEGERS = [*SIGNED, pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()]
TEXT_TYPES = [pa.string(), pa.string(), pa.large_string(), pa.dictionary(pa.int32(), pa.string()), pa.string_view()]
MOMENTS = [pa.timestamp(unit, zone) for unit in ("s", "ms", "us", "ns") for zone in (None, "UTC", "Europe/Berlin")]
ODD = [pa.float32(), pa.float64(), pa.binary(), pa.binary(4), pa.list_(pa.int32()), pa.time64("us"), pa.null()]
ROW_METADATA = "org.apache.spark.sql.parquet.row.metadata"
FIRST_NS, LAST_NS = datetime(1678, 1, 1), datetime(2261, 12, 31)
ORC_TYPES = {"int8", "int16", "int32", "int64", "string", "large_string", "bool", "float", "double", "binary"}


@cache
def types_of(type: str, sound: bool) -> st.SearchStrategy[pa.DataType]:
    """Arrow types that widen to a declared type; other types too, unless the case is sound."""
    right: list[pa.DataType] = {
        "string": TEXT_TYPES,
        "integer": [*INTEGERS, pa.decimal128(18, 0), pa.decimal128(5, 0)],
        "boolean": [pa.bool_()],
        "date": [pa.date32(), pa.date32(), pa.date64()],
        "timestamp": [*MOMENTS, *MOMENTS, pa.date32()],
        "decimal": [pa.decimal128(18, 6), pa.decimal128(12, 0), pa.decimal128(7, 3), pa.int8(), pa.int32()],
        "decimal(5,2)": [pa.decimal128(5, 2), pa.decimal128(3, 0), pa.decimal128(4, 1), pa.int8()],
        "decimal(38,10)": [pa.decimal128(38, 10), pa.decimal128(28, 0), pa.decimal128(30, 9), pa.int64(), pa.uint8()],
        "decimal(3,0)": [pa.decimal128(3, 0), pa.decimal128(1, 0), pa.int8()],
    }[type]
    other = [*ODD, *INTEGERS, *MOMENTS, pa.string(), pa.uint64(), pa.decimal128(20, 0), pa.decimal128(38, 12)]
    other += [pa.decimal256(40, 2), pa.decimal128(6, 2), pa.decimal128(19, 6)]
    return st.sampled_from(right) if sound else chance(15).flatmap(lambda odd: st.sampled_from(other if odd else right))


@cache
def values_of(type: pa.DataType) -> st.SearchStrategy[Any]:
    """Values of an Arrow type."""
    if pa.types.is_dictionary(type):
        return values_of(type.value_type)
    if pa.types.is_integer(type):
        size = type.bit_width - pa.types.is_signed_integer(type)
        low = -(2**size) if pa.types.is_signed_integer(type) else 0
        return st.integers(0, 9) | st.sampled_from([low, 2**size - 1])
    if pa.types.is_decimal(type):
        digits = ((0,), (1,), (9,) * type.precision)
        return st.sampled_from([Decimal((sign, each, -type.scale)) for each in digits for sign in (0, 1)])
    if pa.types.is_date(type):
        return st.sampled_from([date(1, 1, 1), date(1582, 10, 4), date(1900, 2, 28), date(9999, 12, 31)]) | st.dates()
    if pa.types.is_timestamp(type):
        return _moments(type)
    return {
        "bool": st.booleans(),
        "null": st.none(),
        "float": st.just(0.5),
        "double": st.sampled_from([0.5, 0.1, 1e300]),
        "binary": st.just(b"x"),
        "fixed_size_binary[4]": st.just(b"abcd"),
        "time64[us]": st.just(1),
    }.get(str(type), st.just([1]) if pa.types.is_list(type) else st.text(max_size=4) | st.sampled_from(["", "EMEA\r"]))


@cache
def _moments(type: pa.TimestampType, *, short: bool = False) -> st.SearchStrategy[Any]:
    """Moments, some of them before 1970 with fractions; nanoseconds as numbers.

    `short` keeps to the years that nanoseconds can tell, which is all that pyarrow reads from ORC.
    """
    short = short or type.unit == "ns"
    first, last = (FIRST_NS, LAST_NS) if short else (datetime(1, 1, 2), datetime(9999, 12, 30))
    odd = [datetime(1969, 12, 31, 23, 59, 59, 999999), datetime(1883, 11, 18, 12, 3, 58), datetime(2026, 3, 29, 2, 30)]
    if not short:
        odd += [datetime(1, 1, 1, 0, 0, 1), datetime(1582, 10, 4), datetime(1500, 2, 28), datetime(9999, 12, 31, 23)]
    moments = st.datetimes(first, last) | st.sampled_from(odd)
    if type.unit in ("s", "ms"):
        moments = moments.map(
            lambda at: at.replace(microsecond=0 if type.unit == "s" else at.microsecond // 1000 * 1000)
        )
    if type.unit == "ns":
        odd_nanos = st.sampled_from([1, 999, -1, -999_999_999])
        return chance(15).flatmap(lambda odd: odd_nanos if odd else moments.map(lambda at: at.replace(tzinfo=UTC)))
    return moments.map(lambda at: at.replace(tzinfo=UTC) if type.tz else at)


@st.composite
def arrow_cases(draw: st.DrawFn, format: str) -> Case:
    """A location with Parquet or ORC files, and the table that is read from it."""
    sound = draw(chance(65))
    names = PLAIN_NAMES + ODD_NAMES + LINED_NAMES if draw(chance(40)) else PLAIN_NAMES
    columns = draw(declared(names=names))
    layout = draw(layout_of(format, columns, sound=sound))
    return placed(draw, format, columns, layout, lambda path, own: draw(arrow_file(path, format, own, sound)))


@st.composite
def arrow_file(draw: st.DrawFn, path: str, format: str, columns: Sequence[Column], sound: bool) -> ArrowFile:
    table = draw(_columns(columns, format, sound))
    options = draw(_parquet_options() if format == "parquet" else _orc_options())
    if any(pa.types.is_timestamp(type) and type.unit == "ns" for _, type, _ in table):
        for name in ("version", "use_deprecated_int96_timestamps"):  # these do not keep all nanoseconds
            options.pop(name, None)
    metadata: tuple[tuple[str, str], ...] = ()
    if format == "parquet" and draw(chance(15)):
        metadata = ((ROW_METADATA, draw(_stale([name for name, _, _ in table]))),)
    cut = draw(st.integers(-40, 20)) if not sound and draw(chance(5)) else None
    return ArrowFile(path, format, table, tuple(options.items()), metadata, cut)


@st.composite
def _columns(
    draw: st.DrawFn, columns: Sequence[Column], format: str, sound: bool
) -> tuple[tuple[str, pa.DataType, tuple[Any, ...]], ...]:
    length = draw(st.integers(0, 5))
    types = {column.physical: draw(types_of(column.type, sound)) for column in columns}
    if not sound and types and draw(chance(15)):
        del types[draw(st.sampled_from(sorted(types)))]
    pairs = draw(st.permutations(list(types.items())))
    if draw(chance(25)) or not pairs:
        right = {"_operation_seq": "integer", "_deleted": "boolean", "_created_at": "timestamp"}
        extras = draw(st.lists(st.sampled_from(EXTRAS), min_size=1, max_size=2, unique=sound))
        pairs += [(name, draw(types_of(right.get(name, "string"), sound))) for name in extras]
    if not sound and draw(chance(5)):
        pairs.append(pairs[0])
    if format == "orc":
        pairs = [(name, type if _in_orc(type) else SIMPLER.get(str(type), pa.int64())) for name, type in pairs]
    if format == "delta":
        plain = [(name, type if _in_delta(type) else _simple(type)) for name, type in pairs]
        pairs = list({name.lower(): (name, type) for name, type in plain}.values())
    required = {column.physical for column in columns if not column.nullable}

    def some_of(type: pa.DataType) -> st.SearchStrategy[Any]:
        return _moments(type, short=True) if format == "orc" and pa.types.is_timestamp(type) else values_of(type)

    def values(name: str, type: pa.DataType) -> tuple[Any, ...]:
        some = some_of(type) | st.none() if not (sound and name in required) else some_of(type)
        return tuple(draw(some) for _ in range(length))

    return tuple((name, type, values(name, type)) for name, type in pairs)


SIMPLER = {
    **{str(type): pa.string() for type in TEXT_TYPES},
    "date64[ms]": pa.date32(),
    "uint8": pa.int16(),
    "uint16": pa.int32(),
}
DELTA_TYPES = {"bool", "string", "int8", "int16", "int32", "int64", "double", "binary", "date32[day]"}


def _simple(type: pa.DataType) -> pa.DataType:
    if pa.types.is_timestamp(type):
        return pa.timestamp("us", type.tz and "UTC")
    return SIMPLER.get(str(type), pa.int64())


def _in_delta(type: pa.DataType) -> bool:
    """Types that delta-rs writes as they are."""
    moment = pa.types.is_timestamp(type) and type.unit == "us" and type.tz in (None, "UTC")
    return str(type) in DELTA_TYPES or pa.types.is_decimal128(type) or moment


def _in_orc(type: pa.DataType) -> bool:
    return str(type) in ORC_TYPES or bool(
        (pa.types.is_decimal(type) and type.precision <= 38) or pa.types.is_date32(type) or pa.types.is_timestamp(type)
    )


@st.composite
def _stale(draw: st.DrawFn, names: list[str]) -> str:
    """Columns as Spark writes them into a footer, though the file has others."""
    types = st.sampled_from(["string", "long", "integer", "decimal(5,2)", "date", "timestamp", "boolean"])
    stated = draw(st.permutations([*names, "gone", "id"]))[: draw(st.integers(0, 4))]
    fields = [{"name": name, "type": draw(types), "nullable": True, "metadata": {}} for name in dict.fromkeys(stated)]
    return json.dumps({"type": "struct", "fields": fields})


@cache
def _parquet_options() -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries(
        {},
        optional={
            "compression": st.sampled_from(["none", "snappy", "gzip", "zstd", "lz4"]),
            "row_group_size": st.integers(1, 3),
            "use_dictionary": st.booleans(),
            "data_page_version": st.sampled_from(["1.0", "2.0"]),
            "version": st.sampled_from(["1.0", "2.4", "2.6"]),
            "store_schema": st.booleans(),
            "write_statistics": st.booleans(),
            "store_decimal_as_integer": st.booleans(),
            "use_deprecated_int96_timestamps": chance(10),
        },
    )


@cache
def _orc_options() -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries(
        {},
        optional={
            "compression": st.sampled_from(["uncompressed", "zlib", "snappy", "lz4", "zstd"]),
            "file_version": st.sampled_from(["0.11", "0.12"]),
            "batch_size": st.integers(1, 3),
            "dictionary_key_size_threshold": st.sampled_from([0.0, 1.0]),
        },
    )


@st.composite
def delta_cases(draw: st.DrawFn) -> Case:
    """A Delta table of one to three commits by delta-rs, and the table that is read from it."""
    sound = draw(chance(65))
    names = [*PLAIN_NAMES, "Order Amount", "a.b", "ümlaut", "it's"] if draw(chance(30)) else PLAIN_NAMES
    columns = draw(declared(names=names))
    first = draw(_columns(columns, "delta", sound).filter(bool))
    types = {name: type for name, type, _ in first}
    partition_by: tuple[str, ...] = ()
    simple = sorted(
        name for name, type in types.items() if not pa.types.is_decimal(type)
    )  # delta-rs writes -1E-10 wrong
    if len(types) > 1 and simple and draw(chance(40)):
        partition_by = (draw(st.sampled_from(simple)),)
    commits = [DeltaWrite(first, partition_by, checkpoint=draw(chance(15)))]
    for _ in range(draw(st.integers(0, 2))):
        length = draw(st.integers(0, 3))
        kept = [name for name in types if name in partition_by or not draw(chance(10))] or list(types)
        some = tuple(
            (name, types[name], tuple(draw(values_of(types[name]) | st.none()) for _ in range(length)))
            for name in draw(st.permutations(kept))
        )
        mode = "overwrite" if draw(chance(15)) else "append"
        delete = draw(st.sampled_from(kept)) if draw(chance(20)) else None
        commits.append(DeltaWrite(some, partition_by, mode, delete, checkpoint=draw(chance(15))))
    return Case("delta", tuple(commits), columns, asked=draw(asked(columns)))
