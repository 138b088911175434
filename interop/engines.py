"""The two engines behind one face: pylance in this process, LanceDB in a Node process.

An engine reads a table as a pyarrow Table, and merge-inserts rows into one by key.
"""

import json
import os
import subprocess
import tempfile

import lance
import pyarrow as pa

HERE = os.path.dirname(os.path.abspath(__file__))


class Pylance:
    def __init__(self):
        self.name = f"pylance {lance.__version__}"

    def rows(self, path):
        table = lance.dataset(path).to_table()
        assert table.num_rows == lance.dataset(path).count_rows(), "count_rows differs from the rows read"
        return table

    def upsert(self, path, keys, rows):
        merge = lance.dataset(path).merge_insert(keys)
        return merge.when_matched_update_all().when_not_matched_insert_all().execute(rows)


class LanceDB:
    """LanceDB for Node, installed in node_dir. A table is opened as connect(parent) + openTable(name)."""

    def __init__(self, node_dir):
        self.node_dir = node_dir
        with open(os.path.join(node_dir, "node_modules/@lancedb/lancedb/package.json")) as f:
            self.name = f"LanceDB {json.load(f)['version']}"

    def names(self, database):
        return json.loads(self._run("names", os.path.abspath(database)))

    def namespace(self, database):
        return json.loads(self._run("namespace", os.path.abspath(database)))

    def optimize(self, database, name):
        """A plain optimize(), with its statistics."""
        return json.loads(self._run("optimize", os.path.abspath(database), name))

    def rows(self, path):
        with tempfile.NamedTemporaryFile(suffix=".arrow") as out:
            self._run("rows", *_split(path), out.name)
            with pa.ipc.open_stream(out.name) as stream:
                return stream.read_all()

    def upsert(self, path, keys, rows):
        with tempfile.NamedTemporaryFile(suffix=".arrow") as out:
            with pa.ipc.new_stream(out.name, rows.schema) as stream:
                # One batch: apache-arrow for JavaScript writes a batch of nulls alone without their bitmap.
                stream.write_table(rows.combine_chunks())
            return json.loads(self._run("upsert", *_split(path), ",".join(keys), out.name))

    def make(self, path, rows, version, stable, gone):
        """A table of two fragments with a scalar, a text and a vector index, from which the rows that gone names are deleted."""
        with tempfile.NamedTemporaryFile(suffix=".arrow") as out:
            with pa.ipc.new_stream(out.name, rows.schema) as stream:
                stream.write_table(rows.combine_chunks())
            self._run("make", *_split(path), out.name, version, "true" if stable else "false", gone)

    def _run(self, *args):
        done = subprocess.run(
            ["node", os.path.join(HERE, "lancedb.mjs"), *args],
            cwd=self.node_dir, capture_output=True, text=True, timeout=300)
        if done.returncode != 0:
            raise RuntimeError(f"lancedb {args[0]} {args[1:]}:\n{done.stderr[-4000:]}")
        return done.stdout


def _split(path):
    database, name = os.path.split(os.path.abspath(path))
    assert name.endswith(".lance"), name
    return database, name.removesuffix(".lance")
