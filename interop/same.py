"""Exact comparison of tables: every value of every row, by the bits."""

import pyarrow as pa
import pyarrow.compute as pc

BITS = {pa.float32(): "int32", pa.float64(): "int64"}


def in_key_order(table, keys):
    """The rows sorted by key, as one chunk a column."""
    order = pc.sort_indices(table, sort_keys=[(k, "ascending") for k in keys])
    return table.take(order).combine_chunks()


def difference(want, got, keys):
    """What differs between two tables whose rows may come in any order; None when nothing does."""
    if want.column_names != got.column_names:
        return f"columns {got.column_names}, want {want.column_names}"
    for name in want.column_names:
        a, b = want.schema.field(name).type, got.schema.field(name).type
        if a != b:
            return f"column {name} has type {b}, want {a}"
    if want.num_rows != got.num_rows:
        return f"{got.num_rows} rows, want {want.num_rows}"
    want, got = in_key_order(_decoded(want), keys), in_key_order(_decoded(got), keys)
    for name in want.column_names:
        row = _first_difference(want[name], got[name])
        if row is not None:
            key = {k: want[k][row].as_py() for k in keys}
            return f"column {name} of {key} is {got[name][row]!r}, want {want[name][row]!r}"
    return None


def _decoded(table):
    """Dictionaries as their values: pyarrow cannot join dictionaries that hold a null, as those of version 2.0 do."""
    for i, field in enumerate(table.schema):
        if pa.types.is_dictionary(field.type):
            chunks = [c.dictionary.take(c.indices) for c in table[field.name].chunks]
            table = table.set_column(i, field.name, pa.chunked_array(chunks, field.type.value_type))
    return table


def _first_difference(want, got):
    if pa.types.is_nested(want.type) or want.type == pa.float16():
        # No kernel compares these; their values here are small.
        for row, (a, b) in enumerate(zip(want.to_pylist(), got.to_pylist())):
            if a != b:
                return row
        return None
    if want.null_count or got.null_count:
        nulls = pc.not_equal(want.is_null(), got.is_null())
        row = pc.index(nulls, True).as_py()
        if row >= 0:
            return row
    differs = pc.not_equal(_bits(want), _bits(got))
    row = pc.index(differs, True).as_py()
    return row if row >= 0 else None


def _bits(column):
    """Floats as their bits, so that NaN equals itself and 0 does not equal -0."""
    if column.type not in BITS or len(column) == 0:
        return column
    ints = column.fill_null(0).to_numpy().view(BITS[column.type])
    return pa.chunked_array([pa.array(ints)])
