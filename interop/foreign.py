"""Another program beside a fold: one operation per line on standard input, as JSON {"path", "operation"}, each answered by "ok" or the error.

The operations and what has to come of them are in publisher/between_test.go.
"""

import json
import sys
from datetime import timedelta

import lance
import pyarrow as pa

THEIRS = 555  # theirValue


def rows(*ids, value=THEIRS):
    return pa.table({"id": pa.array(ids, pa.string()), "v": pa.array([value] * len(ids), pa.int64())},
                    schema=pa.schema([pa.field("id", pa.string(), nullable=False), pa.field("v", pa.int64())]))


def merge(path, key):
    lance.dataset(path).merge_insert("id").when_matched_update_all().when_not_matched_insert_all().execute(rows(key))


def append(path, key="z"):
    lance.write_dataset(rows(key), path, mode="append")


def clean_up(path):
    lance.dataset(path).cleanup_old_versions(older_than=timedelta(0))


def metadata(path):
    lance.dataset(path).update_metadata({"their": "key"})


def append_and_clean_up(path):
    append(path)
    metadata(path)
    clean_up(path)


def drop_and_add(path):
    lance.dataset(path).drop_columns(["v"])
    lance.dataset(path).add_columns(pa.field("v", pa.int64()))


OPERATIONS = {
    "merge our new key": lambda p: merge(p, "u"),
    "merge our strict key": lambda p: merge(p, "n"),
    "merge our deleted key": lambda p: merge(p, "b"),
    "merge another key": lambda p: merge(p, "z"),
    "delete our key": lambda p: lance.dataset(p).delete("id = 'a'"),
    "append another key": append,
    "overwrite": lambda p: lance.write_dataset(rows("other", value=1), p, mode="overwrite"),
    "restore": lambda p: lance.dataset(p, version=1).restore(),
    "compact": lambda p: lance.dataset(p).optimize.compact_files(),
    "clean up": clean_up,
    "append and clean up": append_and_clean_up,
    "add a column": lambda p: lance.dataset(p).add_columns(pa.field("theirs", pa.string())),
    "drop a column": lambda p: lance.dataset(p).drop_columns(["v"]),
    "rename a column": lambda p: lance.dataset(p).alter_columns({"path": "v", "name": "w"}),
    "drop and add a column": drop_and_add,
    "change metadata": metadata,
}

for line in sys.stdin:
    job = json.loads(line)
    before = lance.dataset(job["path"]).version
    try:
        OPERATIONS[job["operation"]](job["path"])
        changed = lance.dataset(job["path"]).version > before or job["operation"] == "clean up"
        print("ok" if changed else "nothing was committed", flush=True)
    except Exception as e:  # noqa: BLE001 the caller reports it
        print(repr(e).replace("\n", " "), flush=True)
