"""The two sides of a race. Each has plan(path, operation, fragment, row), which prepares an operation on the base version, and returns
the commit: a call that says "ok", "retry" or "incompatible"; and can(operation), which says whether it has that operation."""

import os
import subprocess
import uuid

import lance
import pyarrow as pa
from lance.dataset import Index
from lance.file import LanceFileWriter
from lance.fragment import DataFile, write_fragments
from lance.optimize import Compaction

import wire

BASE = 4

OPERATION_MEM_WAL, OPERATION_CLONE = 112, 113


class Ours:
    """The program races/, which stays for all requests."""

    # Operations that package lance commits; the others it only reads.
    COMMITS = {"append", "delete", "delete_half", "delete_blind", "update", "update_blind", "update_filter", "update_bloom", "update_taken", "overwrite",
               "rewrite", "merge", "project", "restore", "reserve", "config", "config_key", "config_schema", "config_field", "barrier"}
    name = "ours"

    def __init__(self, binary):
        self.process = subprocess.Popen([binary], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)

    def can(self, operation, _):
        return operation in self.COMMITS

    def plan(self, path, operation, fragment, _, version=BASE):
        number = self.ask("plan", path, version, operation, fragment)
        return lambda: self.ask("land", number)

    def ask(self, *request):
        print(*request, file=self.process.stdin, flush=True)
        answer = self.process.stdout.readline().rstrip("\n")
        if not answer.startswith("="):
            raise RuntimeError(f"{request}: {answer}")
        return answer[1:]


class Engine:
    """What the engine's interface has no call for is put into the table by hand ("memwal", "clone"), which can only come first. "reserve" is the
    engine's in compactions alone, so it is ours to land first."""

    BY_HAND = {"memwal": OPERATION_MEM_WAL, "clone": OPERATION_CLONE}
    name = "engine"

    def can(self, operation, first):
        return hasattr(self, operation) or first and operation in self.BY_HAND

    def plan(self, path, operation, fragment, row):
        if operation in self.BY_HAND:
            return lambda: wire.place(path, BASE, self.BY_HAND[operation]) or "ok"
        commit = getattr(self, operation)(path, lance.dataset(path, version=BASE), fragment, row)
        return lambda: self.outcome(commit)

    def outcome(self, commit):
        try:
            commit()
        except Exception as e:  # the engine has no classes of its own for these
            text = str(e)
            if "ncompatible" in text or "was preempted" in text and "Retryable" not in text:
                return "incompatible"
            if "Retryable" in text or "Too many concurrent writers" in text or "etryable commit conflict" in text:
                return "retry"
            raise
        return "ok"

    def low(self, path, operation):
        return lambda: lance.LanceDataset.commit(path, operation, read_version=BASE)

    def append(self, path, dataset, *_):
        return self.low(path, lance.LanceOperation.Append(write_fragments(self.rows(dataset, 300, 303), dataset)))

    def delete(self, path, dataset, fragment, row):
        return lambda: dataset.delete(f"v = {fragment * 10 + row}", conflict_retries=0)

    def delete_half(self, path, dataset, fragment, _):
        return lambda: dataset.delete(f"v >= {fragment * 10 + 5} and v < {fragment * 10 + 10}", conflict_retries=0)

    def delete_blind(self, path, dataset, fragment, row):
        return self.low(path, lance.LanceOperation.Delete([self.deleted(dataset, fragment, row)], [], f"v = {fragment * 10 + row}"))

    def update(self, path, dataset, fragment, row):
        return lambda: dataset.update({"v": "v + 1000"}, where=f"v = {fragment * 10 + row}", conflict_retries=0)

    def update_blind(self, path, dataset, fragment, row):
        fresh = write_fragments(self.rows(dataset, fragment * 10 + row, fragment * 10 + row + 1, 1000), dataset)
        return self.low(path, lance.LanceOperation.Update([], [self.deleted(dataset, fragment, row)], fresh, []))

    def update_filter(self, path, dataset, fragment, row):
        merge = dataset.merge_insert("id").when_matched_update_all().when_not_matched_insert_all().conflict_retries(0)
        key = fragment * 10 + row
        rows = pa.concat_tables([self.rows(dataset, key, key + 1, 1000), self.rows(dataset, 400, 401)])
        return lambda: merge.execute(rows)

    def overwrite(self, path, dataset, *_):
        return self.low(path, lance.LanceOperation.Overwrite(dataset.schema, write_fragments(self.rows(dataset, 500, 503), dataset)))

    def rewrite(self, path, dataset, fragment, _):
        plan = Compaction.plan(dataset, {"target_rows_per_fragment": 4, "materialize_deletions_threshold": 0.1})
        tasks = [t for t in plan.tasks if [f.id for f in t.fragments] == [fragment]]
        assert len(tasks) == 1, [t.fragments for t in plan.tasks]
        done = [t.execute(dataset) for t in tasks]
        return lambda: Compaction.commit(dataset, done)

    def index(self, path, dataset, fragment, _, name="of v"):
        """An entry for an index that covers one fragment; nothing reads the index."""
        entry = Index(str(uuid.uuid4()), name, [dataset.lance_schema.field("v").id()], BASE, {fragment}, 0,
                          index_details=("/lance.table.BTreeIndexDetails", b""))
        return self.low(path, lance.LanceOperation.CreateIndex([entry], []))

    def index_other(self, path, dataset, fragment, row):
        return self.index(path, dataset, fragment, row, name="another of v")

    def merge(self, path, dataset, *_):
        return lambda: dataset.add_columns({"y": "v + 1"})

    def project(self, path, dataset, *_):
        return lambda: dataset.drop_columns(["w"])

    def restore(self, path, dataset, *_):
        return self.low(path, lance.LanceOperation.Restore(BASE - 1))

    def config(self, path, dataset, *_):
        return lambda: dataset.update_config({"of theirs": "1"})

    def config_key(self, path, dataset, *_):
        return lambda: dataset.update_config({"of both": "theirs"})

    def config_schema(self, path, dataset, *_):
        return lambda: dataset.update_schema_metadata({"of theirs": "1"})

    def config_field(self, path, dataset, *_):
        return lambda: dataset.update_field_metadata({"v": {"of theirs": "1"}})

    def replacement(self, path, dataset, fragment, _):
        """The column that no file holds gets one for a fragment."""
        name = f"{uuid.uuid4().hex}.lance"
        file = os.path.join(path, "data", name)
        schema = pa.schema([dataset.schema.field("w")])
        with LanceFileWriter(file, schema, version="2.1") as writer:
            writer.write_batch(pa.record_batch([pa.array(range(10), pa.int64())], schema=schema))
        new = DataFile(name, [dataset.lance_schema.field("w").id()], [0], 2, 1, os.path.getsize(file))
        return self.low(path, lance.LanceOperation.DataReplacement([lance.LanceOperation.DataReplacementGroup(fragment, new)]))

    def bases(self, path, dataset, *_):
        base = lance.DatasetBasePath(os.path.abspath(path) + ".base", "elsewhere")
        return lambda: dataset.add_bases([base])

    def rows(self, dataset, start, stop, add=0):
        numbers = range(start, stop)
        return pa.table({"id": [f"k{n}" for n in numbers], "v": [n + add for n in numbers], "w": [None] * len(numbers)}, schema=dataset.schema)

    def deleted(self, dataset, fragment, row):
        return dataset.get_fragment(fragment).delete(f"v = {fragment * 10 + row}")
