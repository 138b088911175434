"""Tables that the engines made, taken into a graph, written by the whole line, and by the engines again.

    check_foreign.py FOLDLINE_BINARY DATA_DIRECTORY NODE_DIRECTORY
"""

import json
import os
import shutil
import sys

import lance
import pyarrow as pa

from engines import LanceDB, Pylance
from line import Line
from report import Report
from same import difference

FLAG, POSITION = "lance-schema:unenforced-primary-key", "lance-schema:unenforced-primary-key:position"
VISIBLE = {"Foldline-Ack": "visible", "Foldline-Ack-Timeout-Ms": "60000"}
VECTOR = 8


class Case:
    """One foreign table: who makes it, in which file version, with which key and row ids."""

    def __init__(self, maker, version, stable, key, spelling, rows=1000):
        self.maker, self.version, self.stable, self.key, self.rows = maker, version, stable, key, rows
        self.spelling = spelling
        self.name = "_".join([maker, version.replace(".", ""), "stable" if stable else "plain", spelling, *key])
        self.table = "node:" + self.name
        self.model = {}

    def schema(self):
        fields = []
        for name, kind in [("id", pa.string()), ("part", pa.int64()), ("v", pa.int64()), ("name", pa.string()), ("vec", pa.list_(pa.float32(), VECTOR))]:
            metadata = {}
            if name in self.key:
                if self.spelling in ("flag", "both"):
                    metadata[FLAG] = "true"
                if self.spelling in ("position", "both"):
                    metadata[POSITION] = str(self.key.index(name) + 1)
            fields.append(pa.field(name, kind, nullable=name not in self.key, metadata=metadata or None))
        return pa.schema(fields)

    def row(self, i, change=0):
        """Row i of the table; another change gives other values under the same key. Every fifth value is null."""
        return {"id": f"k{i:05d}", "part": i % 3, "v": None if (i + change) % 5 == 0 else i + 100_000 * change,
                "name": f"word{i} changed{change}", "vec": None if i % 7 == 3 else [(i * (j + 1) % 97 + change) * 0.25 for j in range(VECTOR)]}

    def key_of(self, row):
        return tuple(row[k] for k in self.key)

    def put(self, row):
        self.model[self.key_of(row)] = row

    def expected(self, schema):
        rows = [{name: row.get(name) for name in schema.names} for row in self.model.values()]
        return pa.Table.from_pylist(rows, schema=schema.remove_metadata())


def make(case, path, lancedb):
    """Two fragments, deletions of both forms, a scalar, a text and a vector index."""
    rows = [case.row(i) for i in range(case.rows)]
    for row in rows:
        case.put(row)
    table = pa.Table.from_pylist(rows, schema=case.schema())
    gone = "v % 2 = 0" if case.rows > 10_000 else "v < 10"
    if case.maker == "lancedb":
        lancedb.make(path, table, case.version, case.stable, gone)
    else:
        half = case.rows // 2
        lance.write_dataset(table.slice(0, half), path, data_storage_version=case.version, enable_stable_row_ids=case.stable)
        dataset = lance.write_dataset(table.slice(half), path, mode="append")
        dataset.create_scalar_index("v", "BTREE")
        dataset.create_scalar_index("name", "INVERTED")
        dataset.create_index("vec", "IVF_PQ", num_partitions=2, num_sub_vectors=2)
        dataset.delete(gone)
    for row in rows:
        v = row["v"]
        if v is not None and (v % 2 == 0 if case.rows > 10_000 else v < 10):
            del case.model[case.key_of(row)]
    forms = {os.path.splitext(f)[1] for f in os.listdir(os.path.join(path, "_deletions"))}
    want = ".bin" if case.rows > 10_000 else ".arrow"
    assert forms == {want}, f"deletion files {forms}, want {want}"


class Checks:
    def __init__(self, binary, data, lancedb):
        self.line, self.pylance, self.lancedb = Line(binary, data), Pylance(), lancedb
        self.cases = [Case("pylance", v, s, ["id"], spelling) for v in ("2.0", "2.1", "2.2") for s, spelling in ((False, "flag"), (True, "position"))]
        self.cases += [Case("lancedb", v, s, ["id"], "flag") for v, s in (("2.0", False), ("2.1", True), ("2.2", False))]
        self.cases += [Case("pylance", "2.1", True, ["part", "id"], "both"), Case("lancedb", "2.1", False, ["id", "part"], "position"),
                       Case("pylance", "2.0", True, ["id"], "both", rows=30_000)]
        self.ids = {}

    def path(self, case):
        return os.path.join(self.line.graph, case.name + ".lance")

    def make_all(self):
        shutil.rmtree(self.line.data, ignore_errors=True)
        os.makedirs(self.line.graph)
        for case in self.cases:
            make(case, self.path(case), self.lancedb)
        tables = [{"table": c.table, "path": c.name + ".lance"} for c in self.cases]
        with open(os.path.join(self.line.data, "foldline.yaml"), "w", encoding="utf-8") as f:
            json.dump({"tables": tables}, f)  # JSON is YAML
        self.line.config = f.name

    def remember_ids(self):
        for case in self.cases:
            if case.stable:
                self.ids[case.name] = self.lineage(case)

    def lineage(self, case):
        columns = [*case.key, "_row_created_at_version", "_row_last_updated_at_version"]
        rows = lance.dataset(self.path(case)).scanner(columns=columns, with_row_id=True).to_table().to_pylist()
        assert len({r["_rowid"] for r in rows}) == len(rows), "row ids twice"
        return {case.key_of(r): (r["_rowid"], r["_row_created_at_version"], r["_row_last_updated_at_version"]) for r in rows}

    def produce(self, change):
        """Upserts of rows that are there and of new ones mixed, strict inserts, deletes; one message for each table."""
        messages = []
        for case in self.cases:
            live = sorted(case.model)[100 * change:100 * change + 60]
            rows = []
            for n, key in enumerate(live[:40]):
                rows.append({"op": "upsert", "row": case.row(int(case.model[key]["id"][1:]), change)})
                if n % 2 == 0:
                    rows.append({"op": "upsert", "row": case.row(50_000 + 1000 * change + n, change)})
            rows += [{"op": "insert", "row": case.row(60_000 + 1000 * change + n, change)} for n in range(5)]
            for r in rows:
                case.put(r["row"])
            for key in live[40:]:
                row = case.model.pop(key)
                rows.append({"op": "delete", "row": {k: row[k] for k in case.key}})
            body = "".join(json.dumps({"table": case.table, **r}) + "\n" for r in rows)
            messages.append(("foldline.demo.write", body, VISIBLE))
        with self.line.serve() as line:
            replies = line.request(messages)
        for case, reply in zip(self.cases, replies):
            if reply.get("state") != "visible" or reply.get("rejected"):
                return f"{case.name}: {reply}"
        return None

    def ours(self, case):
        schema = lance.dataset(self.path(case)).schema
        return difference(case.expected(schema), self.line.scan(case.table), case.key)

    def theirs(self, case, engine):
        dataset = lance.dataset(self.path(case))
        dataset.validate()
        if dataset.data_storage_version != case.version:
            return f"data files of version {dataset.data_storage_version}"
        return difference(case.expected(dataset.schema), engine.rows(self.path(case)), case.key)

    def row_ids(self, case):
        """A row that was replaced keeps its id and its birth; a new one was born in our version."""
        before, after, version = self.ids[case.name], self.lineage(case), lance.dataset(self.path(case)).version
        for key, (row_id, created, updated) in after.items():
            if key in before and (row_id, created) != before[key][:2]:
                return f"{key} has id and birth {row_id, created}, had {before[key][:2]}"
            changed = "changed1" in case.model[key]["name"]
            if changed and updated != version or key not in before and created != version:
                return f"{key} is of versions {created}, {updated}, now {version}"
        return None

    def searches(self, case):
        """Queries that the engine answers with its indexes find our rows and not those that we replaced."""
        dataset = lance.dataset(self.path(case))
        row = next(r for r in case.model.values() if "changed1" in r["name"] and r["v"] is not None and r["vec"] is not None)
        found = dataset.to_table(filter=f"v = {row['v']}").to_pylist()
        if [case.key_of(r) for r in found] != [case.key_of(row)]:
            return f"v = {row['v']} found {found}"
        if dataset.to_table(filter=f"v = {row['v'] - 100_000}").num_rows:
            return "the index finds a row that was replaced"
        word = row["name"].split()[0]
        found = dataset.to_table(full_text_query=word).to_pylist()
        if [case.key_of(r) for r in found] != [case.key_of(row)]:
            return f"text {word} found {found}"
        near = dataset.to_table(nearest={"column": "vec", "q": row["vec"], "k": 3, "nprobes": 2, "refine_factor": 20}).to_pylist()
        return None if case.key_of(row) in [case.key_of(r) for r in near] else f"near {row['vec']} are {near}"

    def engine_writes(self, case, engine):
        """Merge-insert, delete, a new column and a compaction on top of our version."""
        path, schema = self.path(case), lance.dataset(self.path(case)).schema
        rows = [case.row(int(case.model[key]["id"][1:]), 9) for key in sorted(case.model)[:20]] + [case.row(70_000 + n, 9) for n in range(10)]
        engine.upsert(path, case.key, pa.Table.from_pylist(rows, schema=schema.remove_metadata()))
        for row in rows:
            case.put(row)
        dataset = lance.dataset(path)
        dataset.delete("id = 'k70003'")
        case.model = {k: r for k, r in case.model.items() if r["id"] != "k70003"}
        dataset.add_columns({"extra": "v + 1"})
        for row in case.model.values():
            row["extra"] = None if row["v"] is None else row["v"] + 1
        dataset = lance.dataset(path)
        dataset.optimize.compact_files(target_rows_per_fragment=100_000)
        dataset.optimize.optimize_indices()
        return self.theirs(case, engine)


def main(binary, data, node_directory):
    report, lancedb = Report(), LanceDB(node_directory)
    checks = Checks(binary, data, lancedb)
    checks.make_all()
    checks.remember_ids()
    report.check("foreign tables are enrolled and merged into by the line", checks.produce, 1)
    for case in checks.cases:
        report.check(f"{case.name}: we read what we merged", checks.ours, case)
        report.check(f"{case.name}: {checks.pylance.name} reads it", checks.theirs, case, checks.pylance)
        report.check(f"{case.name}: {lancedb.name} reads it", checks.theirs, case, lancedb)
        if case.stable:
            report.check(f"{case.name}: row ids and versions are right", checks.row_ids, case)
        report.check(f"{case.name}: the engine's indexes find our rows", checks.searches, case)
        engine = lancedb if case.maker == "lancedb" else checks.pylance
        report.check(f"{case.name}: {engine.name} merges, deletes, adds a column, compacts", checks.engine_writes, case, engine)
    report.check("the line merges on top of the engine's versions", checks.produce, 2)
    for case in checks.cases:
        report.check(f"{case.name}: we read the engine's versions and ours", checks.ours, case)
        report.check(f"{case.name}: {checks.pylance.name} reads both", checks.theirs, case, checks.pylance)
    report.exit()


if __name__ == "__main__":
    main(*sys.argv[1:])
