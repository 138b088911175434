"""Our commits race the engine's, in both orders, for every pair of operations that both sides can commit.

    check_races.py RACES_BINARY DIRECTORY SAME_CORE

Both sides plan on version 2 of a table with two fragments of ten rows; one lands, then the other tries. SAME_CORE is "yes" for the
engine release that the expectations below are of; a newer one may refuse more than they say, never less, and what it lands must
be taken by us as they say.
"""

import os
import shutil
import subprocess
import sys

import lance
import pyarrow as pa
from lance.fragment import write_fragments
from lance.optimize import Compaction, CompactionTask

from report import Report

BASE = 2
OPERATIONS = ["append", "delete", "update", "update_filter", "overwrite", "rewrite", "index", "merge", "project", "restore", "config"]
OURS_ONLY = ["reserve", "barrier"]

# The format's matrix: what the side that comes second gets, by its own operation and by the one that landed, in the order of
# OPERATIONS. o ok, R retryable, I incompatible, m merged deletion vectors; lower-case r: retryable on the same fragment only.
MATRIX = {
    "append":        "oooo I oooo I o",
    "delete":        "ommm I r oRo I o",
    "update":        "ommm I r oRo I o",
    "update_filter": "RmRR I r oRo I o",
    "overwrite":     "oooo R ooooo o",
    "rewrite":       "orrr I r RRo I o",
    "index":         "oooo I R RooIo",
    "merge":         "RRRR I R oRI I o",
    "project":       "oooo I o oRR I o",
    "restore":       "oooo o ooooo o",
    "config":        "oooo o ooooo o",
    "reserve":       "oooo I oooo I o",
    "barrier":       "oooo o ooooo o",
}


def expected(second, first, same_fragment, knows_rows):
    cell = MATRIX[second].replace(" ", "")[OPERATIONS.index(first)]
    # Every compaction here rewrites both fragments.
    same_fragment = same_fragment or "rewrite" in (second, first)
    if cell == "r":
        cell = "R" if same_fragment else "o"
    if cell == "m":
        cell = "o" if knows_rows or not same_fragment else "R"
    return {"o": "ok", "R": "retry", "I": "incompatible"}[cell]


class Ours:
    def __init__(self, binary):
        self.binary = binary

    def make(self, path):
        subprocess.run([self.binary, "make", path], check=True, timeout=60)

    def plan(self, path, operation, fragment):
        done = lambda: subprocess.run(
            [self.binary, "commit", path, str(BASE), operation, str(fragment)], check=True, timeout=60, capture_output=True, text=True)
        return lambda: done().stdout.strip()


class Engine:
    """plan() prepares an operation on the base version, as far as the engine's interface lets it, and returns the commit."""

    def plan(self, path, operation, fragment):
        dataset = lance.dataset(path, version=BASE)
        commit = getattr(self, operation)(path, dataset, fragment)
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

    def append(self, path, dataset, _):
        return self.low(path, lance.LanceOperation.Append(write_fragments(self.rows(dataset, 300, 303), dataset)))

    def delete(self, path, dataset, fragment):
        return self.low(path, lance.LanceOperation.Delete([self.deleted(dataset, fragment)], [], "v = 7"))

    def update(self, path, dataset, fragment):
        fresh = write_fragments(self.rows(dataset, fragment * 10 + 7, fragment * 10 + 8), dataset)
        return self.low(path, lance.LanceOperation.Update([], [self.deleted(dataset, fragment)], fresh, []))

    def update_filter(self, path, dataset, fragment):
        merge = dataset.merge_insert("id").when_matched_update_all().when_not_matched_insert_all().conflict_retries(0)
        rows = pa.concat_tables([self.rows(dataset, fragment * 10 + 7, fragment * 10 + 8), self.rows(dataset, 400, 401)])
        return lambda: merge.execute(rows)

    def overwrite(self, path, dataset, _):
        return self.low(path, lance.LanceOperation.Overwrite(dataset.schema, write_fragments(self.rows(dataset, 500, 503), dataset)))

    def rewrite(self, path, dataset, _):
        done = [task.execute(dataset) for task in Compaction.plan(dataset, {}).tasks]
        return lambda: Compaction.commit(dataset, done)

    def index(self, path, dataset, _):
        return lambda: dataset.create_scalar_index("v", "BTREE")

    def merge(self, path, dataset, _):
        return lambda: dataset.add_columns({"y": "v + 1"})

    def project(self, path, dataset, _):
        return lambda: dataset.drop_columns(["w"])

    def restore(self, path, dataset, _):
        return self.low(path, lance.LanceOperation.Restore(1))

    def config(self, path, dataset, _):
        return lambda: dataset.update_config({"theirs": "1"})

    def rows(self, dataset, start, stop):
        numbers = list(range(start, stop))
        return pa.table({"id": [f"k{n}" for n in numbers], "v": numbers, "w": [None] * len(numbers)}, schema=dataset.schema)

    def deleted(self, dataset, fragment):
        return dataset.get_fragment(fragment).delete(f"v = {fragment * 10 + 7}")


def race(template, path, first, second, want, stricter_is_fine):
    """first and second are (side, operation, fragment): both plan, first lands, then second tries."""
    shutil.rmtree(path, ignore_errors=True)
    shutil.copytree(template, path)
    (a, a_operation, a_fragment), (b, b_operation, b_fragment) = first, second
    lands, tries = a.plan(path, a_operation, a_fragment), b.plan(path, b_operation, b_fragment)
    if (landed := lands()) != "ok":
        return f"the first commit: {landed}"
    got = tries()
    if got != want and not (stricter_is_fine and want != "incompatible" and got != "ok"):
        return f"{got}, want {want}"
    dataset = lance.dataset(path)
    # The engine's compaction reserves fragment ids in a version of its own.
    reserved = "rewrite" == (a_operation if isinstance(a, Engine) else b_operation)
    if not 0 <= dataset.version - (BASE + 1 + (got == "ok")) <= reserved:
        return f"version {dataset.version} after {got}"
    dataset.to_table()
    dataset.validate()
    return None


def main(binary, directory, same_core):
    report = Report()
    ours, engine = Ours(binary), Engine()
    os.makedirs(directory, exist_ok=True)
    template = os.path.join(directory, "template.lance")
    ours.make(template)
    path = os.path.join(directory, "race.lance")
    for ours_operation in [o for o in OPERATIONS if o != "index"] + OURS_ONLY:
        for theirs in OPERATIONS:
            for same in [True, False]:
                fragment = 0 if same else 1
                where = "same fragment" if same else "other fragment"
                want = expected(ours_operation, theirs, same, True)
                report.check(f"{ours_operation} of ours after {theirs} of the engine, {where}", race, template, path,
                             (engine, theirs, fragment), (ours, ours_operation, 0), want, False)
                if ours_operation in OURS_ONLY:
                    continue
                want = expected(theirs, ours_operation, same, theirs == "update_filter")
                report.check(f"{theirs} of the engine after {ours_operation} of ours, {where}", race, template, path,
                             (ours, ours_operation, 0), (engine, theirs, fragment), want, same_core != "yes")
    report.exit()


if __name__ == "__main__":
    main(*sys.argv[1:])
