"""Both engines read the tables that ./tables wrote with package lance, and write into them.

    check_tables.py DIRECTORY NODE_DIRECTORY
"""

import glob
import json
import os
import shutil
import sys

import lance
import pyarrow as pa
import pyarrow.compute as pc

import wire
from engines import LanceDB, Pylance
from report import Report
from same import difference, in_key_order


class Case:
    def __init__(self, about_file):
        self.path = about_file.removesuffix(".json") + ".lance"
        self.name = os.path.basename(self.path)
        with open(about_file) as f:
            about = json.load(f)
        self.key, self.version, self.live = about["key"], about["version"], about["rows"]
        self.files = about["files"]
        # apache-arrow for JavaScript, which LanceDB hands its rows to, does not know all of these types.
        self.for_node = not self.name.startswith("wide")
        with pa.ipc.open_stream(about_file.removesuffix(".json") + ".expected.arrow") as stream:
            written = stream.read_all()
        self.expected = written.filter(pc.invert(written["_dead"])).drop_columns("_dead")


def reads_all(case, engine):
    return difference(case.expected, engine.rows(case.path), case.key)


def version_is_ours(case):
    dataset = lance.dataset(case.path)
    if dataset.version != case.version:
        return f"version {dataset.version}, want {case.version}"
    if len(dataset.versions()) != case.version:
        return f"{len(dataset.versions())} versions listed, want {case.version}"
    if dataset.data_storage_version != case.files:
        return f"data files of version {dataset.data_storage_version}, want {case.files}"
    dataset.validate()
    return None


def schema_is_ours(case):
    dataset = lance.dataset(case.path)
    for want in case.expected.schema:
        got = dataset.schema.field(want.name)
        if (got.type, got.nullable) != (want.type, want.nullable):
            return f"column {got}, want {want}"
    fields = dataset.lance_schema.fields()
    marked = [f.name() for f in fields if f.is_unenforced_primary_key()]
    return None if marked == case.key else f"primary key {marked}, want {case.key}"


def reads_by_parts(case):
    """Projection, filter and take go through other readers than a full scan."""
    dataset = lance.dataset(case.path)
    columns = dataset.schema.names
    for name in columns:
        subset = list(dict.fromkeys([*case.key, name]))
        fault = difference(case.expected.select(subset), dataset.to_table(columns=subset), case.key)
        if fault:
            return f"projected: {fault}"
    n = dataset.count_rows()
    if n == 0:
        return None
    places = sorted({0, n // 3, n // 2, n - 1})
    taken, whole = dataset.take(places), dataset.to_table()
    fault = difference(pa.concat_tables([whole.slice(p, 1) for p in places]), taken, case.key)
    if fault:
        return f"taken: {fault}"
    last = in_key_order(case.expected, case.key)[case.key[0]][n - 1]
    filtered = dataset.to_table(filter=f"{case.key[0]} >= {_literal(last)}")
    want = case.expected.filter(pc.greater_equal(case.expected[case.key[0]], last))
    return difference(want, filtered, case.key)


def _literal(scalar):
    value = scalar.as_py()
    return f"'{value}'" if isinstance(value, str) else str(value)


def merges_with_the_filter(case, engine):
    """The engine updates some rows of ours and inserts one; its transaction carries the key filter."""
    path = case.path.removesuffix(".lance") + ".merged.lance"
    shutil.rmtree(path, ignore_errors=True)
    shutil.copytree(case.path, path)
    rows, merged = upsert_rows(case.expected, case.key)
    engine.upsert(path, case.key, rows)
    ids = [f.id() for f in lance.dataset(path).lance_schema.fields() if f.name() in case.key]
    filtered = wire.filtered_fields(path)
    if filtered != ids:
        return f"the key filter covers fields {filtered}, want {ids}"
    return difference(merged, Pylance().rows(path), case.key)


def upsert_rows(expected, keys):
    """Rows to merge into a table, and what the table must be afterwards: the first rows with the values of
    the last ones, and the first row again under a new key."""
    ordered = in_key_order(expected, keys)
    n = min(3, ordered.num_rows)
    head, tail = ordered.slice(0, n), ordered.slice(ordered.num_rows - n)
    updated = pa.Table.from_arrays(
        [head[c] if c in keys else tail[c] for c in ordered.column_names], schema=ordered.schema)
    new = ordered.slice(0, 1)
    fresh = pa.array(["new-key"], pa.string()) if pa.types.is_string(new[keys[0]].type) else pa.array([123456789], pa.int64())
    new = new.set_column(new.column_names.index(keys[0]), new.schema.field(keys[0]), fresh)
    rows = pa.concat_tables([updated, new])
    return rows, pa.concat_tables([rows, ordered.slice(n)])


def main(directory, node_directory):
    report, pylance, lancedb = Report(), Pylance(), LanceDB(node_directory)
    cases = [Case(f) for f in sorted(glob.glob(os.path.join(directory, "*.json")))]
    for case in cases:
        report.check(f"{case.name}: {pylance.name} sees our version", version_is_ours, case)
        report.check(f"{case.name}: {pylance.name} sees our schema and primary key", schema_is_ours, case)
        report.check(f"{case.name}: {pylance.name} reads every value", reads_all, case, pylance)
        report.check(f"{case.name}: {pylance.name} projects, takes and filters", reads_by_parts, case)
        engines = (pylance, lancedb) if case.for_node else (pylance,)
        if case.for_node:
            report.check(f"{case.name}: {lancedb.name} reads every value", reads_all, case, lancedb)
        if case.live:
            for engine in engines:
                report.check(f"{case.name}: {engine.name} merge-inserts with the key filter", merges_with_the_filter, case, engine)
    report.exit()


if __name__ == "__main__":
    main(*sys.argv[1:])
