"""Guards of versions and files: what the engine carries on, numbers, removes and leaves alone. Packages publisher, fold/keyindex and lance rest on
these."""

import datetime
import os
import shutil

import lance
import pyarrow as pa

import wire
from races_engine import BASE

NOW = datetime.timedelta(0)
WITNESS = {"foldline.graph": "g", "foldline.table": "t", "foldline.fold": "f", "foldline.cut": "c", "foldline.epoch": "7"}


def metadata_is_carried_by_every_later_commit(g):
    """The witness of a fold and the epoch of a barrier are in the table's metadata, which publisher asks after a crash."""
    path = _witnessed(g)
    stale = lance.dataset(path)
    rows = pa.table({"id": ["m1"], "v": [1], "w": [None]}, schema=stale.schema)
    merge = lambda d: d.merge_insert("id").when_matched_update_all().when_not_matched_insert_all().execute(rows)
    for name, change in {
        "merge": merge, "append": lambda d: d.insert(rows), "delete": lambda d: d.delete("id = 'k1'"), "update": lambda d: d.update({"v": "v"}, "id = 'k2'"),
        "compaction": lambda d: d.optimize.compact_files(), "index": lambda d: d.create_scalar_index("v", "BTREE"),
        "index optimization": lambda d: d.optimize.optimize_indices(), "add column": lambda d: d.add_columns({"y": "v"}),
        "config": lambda d: d.update_config({"a": "b"}), "metadata of others": lambda d: d.update_metadata({"a": "b"}),
        "cleanup": lambda d: d.cleanup_old_versions(NOW), "drop column": lambda d: d.drop_columns(["y"]),
        "stale append": lambda _: lance.LanceDataset.insert(stale, rows),
        "overwrite": lambda d: lance.write_dataset(rows, path, mode="overwrite"),
    }.items():
        change(lance.dataset(path))
        got = _metadata(path)
        assert got.items() >= WITNESS.items(), f"after {name}: {got}"
    assert "a" in _metadata(path)


def restore_rewinds_metadata(g):
    """fence.CheckEpoch reads the transactions between for this, and publisher freezes such a table."""
    path = _witnessed(g)
    lance.dataset(path, version=BASE).restore()
    assert "foldline.fold" not in _metadata(path)


def cleanup_takes_transactions(g):
    """Why a fold is not looked up by transaction: after a cleanup only the newest version's is left (fence.ErrUnseen)."""
    path = _witnessed(g)
    lance.dataset(path).delete("id = 'k1'")
    lance.dataset(path).cleanup_old_versions(NOW)
    assert [v["version"] for v in lance.dataset(path).versions()] == [BASE + 2]


def cleanup_leaves_an_empty_slot(g):
    """lance.Commit lists after its put because of this: a put into the slot succeeds, and nobody ever reads it."""
    path = g.table()
    assert g.ours.plan(path, "config", 0, 0)() == "ok"
    ours = g.ours.plan(path, "append", 0, 0, BASE + 1)
    for n in range(3):
        lance.dataset(path).insert(pa.table({"id": [f"m{n}"], "v": [n], "w": [None]}, schema=lance.dataset(path).schema))
    lance.dataset(path).cleanup_old_versions(NOW)
    slot = wire.manifest_path(path, BASE + 2)
    assert not os.path.exists(slot)
    count, outcome = lance.dataset(path).count_rows(), ours()
    assert os.path.exists(slot), "the put did not meet an empty slot"
    assert lance.dataset(path).version == BASE + 4 and lance.dataset(path).count_rows() == count, "the engine reads the slot"
    assert outcome == "retry", f"{outcome}: our commit fell into the hole"


def cleanup_spares_young_files_of_nobody(g):
    """Files of a prepared fold, and of a commit on its way, are named by no version for a while."""
    path = g.table()
    orphan, foreign = os.path.join(path, "data", f"{'0' * 50}.lance"), os.path.join(path, "data", "notes.md")
    for name in (orphan, foreign):
        with open(name, "wb") as f:
            f.write(b"x")
    lance.dataset(path).optimize.compact_files()
    removed = lance.dataset(path).cleanup_old_versions(NOW)
    assert removed.old_versions > 0 and os.path.exists(orphan) and os.path.exists(foreign), removed


def cleanup_takes_files_of_old_versions_at_any_age(g):
    """A reader of a version that was cleaned up finds nothing; heads resolves again."""
    path = g.table()
    before = set(os.listdir(os.path.join(path, "data")))
    lance.dataset(path).optimize.compact_files()
    lance.dataset(path).cleanup_old_versions(NOW)
    assert not before & set(os.listdir(os.path.join(path, "data")))


def cleanup_stops_at_a_tag(g):
    """We never tag a version to keep it: that ends other people's maintenance."""
    path = g.table()
    lance.dataset(path).tags.create("kept", BASE - 1)
    try:
        lance.dataset(path).cleanup_old_versions(NOW)
    except OSError as e:
        assert "tag" in str(e), e
        return
    raise AssertionError("a tagged version does not stop a cleanup")


def half_written_names_are_ignored(g):
    """objstore stages below other names in the same directory, and a crash leaves them there."""
    path = g.table()
    newest = wire.manifest_path(path, BASE)
    for name in (".tmp-123-1", f"{os.path.basename(newest)}.123.tmp", f"{os.path.basename(newest)}#1"):
        shutil.copyfile(newest, os.path.join(path, "_versions", name))
    assert lance.dataset(path).version == BASE
    lance.dataset(path).delete("id = 'k1'")
    assert lance.dataset(path).version == BASE + 1


def a_transaction_inside_the_manifest_is_enough(g):
    """We write no transaction files; a stale writer of the engine reads ours from the manifest."""
    path = g.table()
    stale = lance.dataset(path)
    assert g.ours.plan(path, "update_filter", 0, 3)() == "ok"
    assert wire.Manifest.TRANSACTION_FILE not in wire.Manifest(path, BASE + 1).fields
    stale.delete("id = 'k7'")
    assert lance.dataset(path).version == BASE + 2


def overwrite_numbers_fragments_from_zero(g):
    """fold/keyindex compares versions by the path of the file that holds the key, never by fragment id. Releases after 10.0.0 go on numbering."""
    path = g.table()
    before = _key_files(path)
    schema = lance.dataset(path).schema
    lance.write_dataset(pa.table({"id": ["m1"], "v": [1], "w": [None]}, schema=schema), path, mode="overwrite")
    after = _key_files(path)
    assert after.keys() == ({2} if g.newer else {0}) and not set(after.values()) & set(before.values()), after


def restore_brings_deleted_rows_back(g):
    """fold/keyindex reads a fragment again when its deletions have shrunk."""
    path = g.table()
    lance.dataset(path, version=BASE - 1).restore()
    assert lance.dataset(path).count_rows() == 20 and _key_files(path) == _key_files(path, BASE)


def a_column_rewrite_keeps_the_fragment(g):
    """fold/keyindex compares the key column's file alone: a new file for another column moves no key."""
    path = g.table()
    before = _key_files(path)
    lance.dataset(path).alter_columns({"path": "v", "data_type": pa.int32()})
    assert _key_files(path) == before
    files = lance.dataset(path).get_fragment(0).metadata.files
    assert len(files) > 1, "the new type of v is in the old file"


def our_update_and_compaction_keep_answers_of_an_index(g):
    """Rows that we write or rewrite leave an index and are scanned; lance carries the entry as it is."""
    path = g.table()
    lance.dataset(path).create_scalar_index("v", "BTREE")
    for operation, v, key in (("update", 1003, "k3"), ("rewrite", 2, "k2")):
        assert g.ours.plan(path, operation, 0, 3, lance.dataset(path).version)() == "ok"
        dataset = lance.dataset(path)
        assert "ScalarIndexQuery" in dataset.scanner(filter=f"v = {v}").explain_plan(), "the index is not used"
        assert dataset.to_table(["id"], filter=f"v = {v}")["id"].to_pylist() == [key], f"after {operation}"


def a_compaction_reserves_first(g):
    """lance's rows of the matrix for ReserveFragments: theirs lands one or two versions, and the rewrite is stamped with what it read."""
    path = g.table()
    lance.dataset(path).optimize.compact_files()
    tx = wire.fields(wire.Manifest(path, lance.dataset(path).version).transaction())
    assert lance.dataset(path).version == BASE + 2 and tx[1] == [BASE] and 104 in tx, f"version {lance.dataset(path).version}, {tx.keys()}"


def large_deletions_are_bitmaps(g):
    """lance reads both forms at any size; the engine changes over at 5,000 rows."""
    path = g.path("deletions")
    lance.write_dataset(pa.table({"v": range(12000)}), path)
    for upto, suffix in ((4999, ".arrow"), (5001, ".bin")):
        lance.dataset(path).delete(f"v < {upto}")
        newest = max(os.scandir(os.path.join(path, "_deletions")), key=lambda e: int(e.name.split("-")[1])).name
        assert newest.endswith(suffix), newest


def _witnessed(g):
    path = g.table()
    assert g.ours.plan(path, "witness", 0, 3)() == "ok"
    assert _metadata(path) == WITNESS
    return path


def _metadata(path):
    return wire.Manifest(path, lance.dataset(path).version).strings(19)


def _key_files(path, version=None):
    """Fragment id → path of the file that holds the first column."""
    return {f.fragment_id: next(d.path for d in f.metadata.files if 0 in d.fields) for f in lance.dataset(path, version=version).get_fragments()}
