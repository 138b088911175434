"""A graph that the whole line wrote, read by both engines, after upserts and deletes.

    check_graph.py FOLDLINE_BINARY DATA_DIRECTORY NODE_DIRECTORY
"""

import json
import os
import shutil
import sys
import time

import lance

import wire
from check_tables import upsert_rows
from engines import LanceDB, Pylance
from flights import airports, flights, ndjson
from line import DEADLINE, Line
from report import Report
from same import difference

FLIGHTS = 20_000
TABLES = {"edge:Flight": "edge_Flight", "node:Airport": "node_Airport"}
MANIFEST, REJECTS = "_foldline/__manifest.lance", "_foldline/_rejects.lance"
MAINTAINED_FOLDS = 300
# A cleanup leaves what 64 states of the heads name, and waits for as many to go, at least a hundred.
MAINTAINED_VERSIONS = 200
MAINTAINED = """
fold: {interval: 10ms}
retention: {min_versions: 64, max_versions: 64}
compact: {interval: 1s, min_fragments: 4}
cleanup: {interval: 500ms, older_than: 1s}
"""
VISIBLE = {"Foldline-Ack": "visible", "Foldline-Ack-Timeout-Ms": "10000"}


class Checks:
    def __init__(self, binary, data, node_directory):
        self.line = Line(binary, data)
        self.pylance, self.lancedb = Pylance(), LanceDB(node_directory)
        self.rows = {"edge:Flight": flights(FLIGHTS), "node:Airport": airports()}

    def fill(self):
        inputs = {}
        for table, rows in self.rows.items():
            inputs[table] = os.path.join(self.line.data, TABLES[table] + ".ndjson")
            with open(inputs[table], "w", encoding="utf-8") as f:
                f.write(ndjson(rows))
        self.line.fill(inputs)

    def produce(self):
        """Upserts, deletes, a refused row and a dead letter by nothing of ours but NATS requests."""
        changed = [{**row, "delay": row["delay"] + 1000} for row in self.rows["edge:Flight"][5_000:5_500]]
        added = [{**row, "id": "N" + row["id"]} for row in self.rows["edge:Flight"][:200]]
        gone = self.rows["edge:Flight"][7_000:7_300]
        closed = self.rows["node:Airport"][:5]
        both = [{"table": "node:Airport", "op": "upsert", "row": {**self.rows["node:Airport"][10], "name": "renamed"}},
                {"table": "edge:Flight", "op": "delete", "row": {"id": self.rows["edge:Flight"][9_000]["id"]}}]
        with self.line.serve() as line:
            replies = line.request([
                ("foldline.demo.write.edge:Flight", ndjson(changed), {}),
                ("foldline.demo.write.edge:Flight", ndjson(added), {"Nats-Msg-Id": "added-1"}),
                ("foldline.demo.write.edge:Flight", ndjson(added), {"Nats-Msg-Id": "added-1"}),
                ("foldline.demo.write.edge:Flight", ndjson([{"id": r["id"]} for r in gone]), {"Foldline-Op": "delete"}),
                ("foldline.demo.write.node:Airport", ndjson([{"id": r["id"]} for r in closed]), {"Foldline-Op": "delete"}),
                ("foldline.demo.write", ndjson(both), {}),
                ("foldline.demo.write.edge:Flight", ndjson([added[0], {**added[1], "delay": 1.5}]), {}),
                ("foldline.demo.write.node:Airport", ndjson([self.rows["node:Airport"][20]]), {**VISIBLE, "Foldline-Op": "insert"}),
            ])
        self.expect(changed + added, gone + [self.rows["edge:Flight"][9_000]], closed, both[0]["row"])
        return self.judge(replies)

    def append_again(self):
        """pylance appends rows of keys that are there, plainly: the heads name them, an insert is refused, an upsert and a delete remove both rows."""
        table, path = "node:Airport", os.path.join(self.line.graph, "node_Airport.lance")
        twice = lance.dataset(path).to_table(limit=3)
        again = [row for row in self.rows[table] if row["id"] in twice["id"].to_pylist()]
        with self.line.serve() as line:
            line.request([("foldline.demo.write." + table, ndjson([self.rows[table][-1]]), VISIBLE)])  # it is up
            lance.write_dataset(twice, path, mode="append")
            self.line.run("adopt", table)
            told = self.line.table(table)
            if told["state"] != "duplicate_keys" or told["duplicate_keys"]["keys"] != 3 or any(r["id"] not in told["duplicate_keys"]["sample"] for r in again):
                return f"after the append the head says {told}"
            replies = line.request([
                ("foldline.demo.write." + table, ndjson(again[:1]), {**VISIBLE, "Foldline-Op": "insert"}),
                ("foldline.demo.write." + table, ndjson(again[:2]), VISIBLE),
                ("foldline.demo.write." + table, ndjson([{"id": again[2]["id"]}]), {**VISIBLE, "Foldline-Op": "delete"}),
            ])
        if [len(r.get("rejected", [])) for r in replies] != [1, 0, 0]:
            return f"replies {replies}"
        self.rows[table] = [row for row in self.rows[table] if row["id"] != again[2]["id"]]
        told, ids = self.line.table(table), lance.dataset(path).to_table(columns=["id"])["id"].to_pylist()
        if told["state"] != "live" or len(ids) != len(set(ids)):
            return f"after the writes {len(ids)} rows of {len(set(ids))} keys, the head says {told}"
        return None

    def maintain(self):
        """Folds of a row each, while the folder compacts and cleans up: few fragments and versions are left for the engines, and every row."""
        self.line.config = os.path.join(self.line.data, "maintained.yaml")
        with open(self.line.config, "w", encoding="utf-8") as f:
            f.write(MAINTAINED)
        path = os.path.join(self.line.graph, "edge_Flight.lance")
        before = lance.dataset(path).version
        with self.line.serve() as line:
            for start in range(0, MAINTAINED_FOLDS, 50):
                replies = line.request([("foldline.demo.write.edge:Flight", ndjson([row]), VISIBLE) for row in self.rows["edge:Flight"][start:start + 50]])
                if any(r.get("state") != "visible" for r in replies):
                    return f"replies {replies}"
            told = self.line.run("compact", "edge:Flight").decode()
            until = time.monotonic() + DEADLINE
            while len(os.listdir(os.path.join(path, "_versions"))) > MAINTAINED_VERSIONS and time.monotonic() < until:
                time.sleep(0.1)
        self.line.config = None
        dataset = lance.dataset(path)
        fragments, versions = len(dataset.get_fragments()), len(dataset.versions())
        if dataset.version < before + MAINTAINED_FOLDS or fragments > 16 or versions > MAINTAINED_VERSIONS:
            return f"{fragments} fragments and {versions} versions after {dataset.version - before} commits; {told}"
        return None

    def expect(self, flights_put, flights_gone, airports_gone, airport_put):
        by_id = {row["id"]: row for row in self.rows["edge:Flight"]}
        by_id.update({row["id"]: row for row in flights_put})
        for row in flights_gone:
            del by_id[row["id"]]
        self.rows["edge:Flight"] = list(by_id.values())
        ids = {row["id"] for row in airports_gone}
        kept = [row for row in self.rows["node:Airport"] if row["id"] not in ids]
        self.rows["node:Airport"] = [airport_put if row["id"] == airport_put["id"] else row for row in kept]

    @staticmethod
    def judge(replies):
        receipts, refused, visible = replies[:6], replies[6], replies[7]
        for want, got in zip([500, 200, 200, 300, 5, 2], receipts):
            if got.get("rows") != want or got.get("state") != "durable":
                return f"receipt {got}, want {want} rows, durable"
        if [r["duplicate"] for r in receipts] != [False, False, True, False, False, False]:
            return f"the message that was sent twice is not told apart: {receipts}"
        error = refused.get("error", {})
        if (error.get("class"), error.get("row"), error.get("field")) != ("invalid", 1, "delay"):
            return f"a bad row was answered with {refused}"
        if visible.get("state") != "visible" or len(visible.get("rejected", [])) != 1:
            return f"an insert of an existing key was answered with {visible}"
        return None

    def scan_is_the_input(self, table):
        """foldline scan against what was sent, value by value, without anything of ours in between."""
        want = {row["id"]: row for row in self.rows[table]}
        scanned = [json.loads(line) for line in self.line.run("scan", table, "--format", "json").splitlines()]
        got = {row["id"]: row for row in scanned}
        if len(got) != len(scanned):
            return "a key is there twice"
        for key in want.keys() | got.keys():
            a = {k: v for k, v in want.get(key, {}).items() if v is not None}
            b = {k: v for k, v in got.get(key, {}).items() if v is not None}
            if a != b:
                return f"{key} is {b}, want {a}"
        return None

    def engine_agrees(self, engine, table, path):
        return difference(self.line.scan(table), engine.rows(os.path.join(self.line.graph, path)), ["id"])

    def opens_by_connect(self):
        names = self.lancedb.names(self.line.graph)
        return None if set(TABLES.values()) <= set(names) else f"connect lists {names}"

    def manifest_agrees(self, engine):
        """The head rows as an engine reads them name what `foldline heads` names."""
        rows = engine.rows(os.path.join(self.line.graph, MANIFEST)).to_pylist()
        heads = {r["stable_table_id"]: r for r in rows if r["object_type"] == "table_head"}
        told = self.line.heads()
        for table in told["tables"]:
            head = heads[table["id"]]
            got = (head["table_key"], head["location"], head["table_version"], head["row_count"])
            want = (table["table"], table["path"], table["version"], table["rows"])
            if got != want:
                return f"head {got}, foldline heads says {want}"
        return None if len(told["tables"]) == len(heads) >= len(TABLES) else f"{len(heads)} head rows"

    def head_is_the_latest(self, table):
        """Nobody else writes here, so the published version is the newest one, and holds the published rows."""
        told = self.line.table(table)
        dataset = lance.dataset(os.path.join(self.line.graph, told["path"]))
        if (dataset.version, dataset.count_rows()) != (told["version"], told["rows"]):
            return f"version {dataset.version} with {dataset.count_rows()} rows, the head says {told}"
        return None

    def dead_letters_agree(self, engine):
        rows = engine.rows(os.path.join(self.line.graph, REJECTS))
        if rows.num_rows != 2:
            return f"{rows.num_rows} dead letters, want 2"
        return difference(self.line.scan("_rejects"), rows, ["id"])

    def merges(self, engine, table):
        """On a copy: the engine upserts into a table that folds wrote, with the key filter."""
        source = os.path.join(self.line.graph, TABLES[table] + ".lance")
        path = os.path.join(self.line.data, "merged.lance")
        shutil.rmtree(path, ignore_errors=True)
        shutil.copytree(source, path)
        rows, merged = upsert_rows(self.line.scan(table), ["id"])
        engine.upsert(path, ["id"], rows)
        if wire.filtered_fields(path) != [0]:
            return f"the key filter covers fields {wire.filtered_fields(path)}, want [0]"
        return difference(merged, self.pylance.rows(path), ["id"])


def main(binary, data, node_directory):
    os.makedirs(data, exist_ok=True)
    report, c = Report(), Checks(binary, data, node_directory)
    engines = (c.pylance, c.lancedb)
    report.check(f"foldline dev --once with {FLIGHTS} flights", c.fill)
    report.check("upserts, deletes, a refused row and a dead letter over plain NATS", c.produce)
    report.check("rows of keys that are there, appended by pylance", c.append_again)
    report.check(f"{MAINTAINED_FOLDS} folds under compaction and cleanup", c.maintain)
    report.check("LanceDB connect lists the tables", c.opens_by_connect)
    for table, name in TABLES.items():
        report.check(f"{table}: foldline scan is what was sent", c.scan_is_the_input, table)
        report.check(f"{table}: the head is the newest version", c.head_is_the_latest, table)
        for engine in engines:
            report.check(f"{table}: {engine.name} reads the same rows", c.engine_agrees, engine, table, name + ".lance")
            report.check(f"{table}: {engine.name} merge-inserts with the key filter", c.merges, engine, table)
    for engine in engines:
        report.check(f"{engine.name} reads the heads that foldline reads", c.manifest_agrees, engine)
        report.check(f"{engine.name} reads the dead letters", c.dead_letters_agree, engine)
    report.exit()


if __name__ == "__main__":
    main(*sys.argv[1:])
