"""Guards of key filters: when the engine writes one, of what, and how it compares two. Packages fence and lance rest on these."""

import base64

import lance
import pyarrow as pa

import wire
from races_engine import BASE

FILTER_BYTES = 32768


def _rows(keys, v=0):
    return pa.table({"id": list(keys), "v": [v] * len(keys), "w": pa.nulls(len(keys), pa.int64())})


def _merge(dataset, rows, on="id"):
    return dataset.merge_insert(on).when_matched_update_all().when_not_matched_insert_all()


def _upsert(g, path, rows, version=None, retries=None, use_index=None):
    dataset = lance.dataset(path, version=version)
    merge = _merge(dataset, rows)
    if retries is not None:
        merge = merge.conflict_retries(retries)
    if use_index is not None:
        merge = merge.use_index(use_index)
    return g.engine.outcome(lambda: merge.execute(rows.cast(dataset.schema)))


def _count(path, key):
    return lance.dataset(path).count_rows(f"id = '{key}'")


def btree_on_the_key_writes_no_filter(g):
    """README: a writer without a filter is only noticed. The remedy that we document, use_index(false), brings it back."""
    path = g.table()
    lance.dataset(path).create_scalar_index("id", "BTREE")
    base = lance.dataset(path).version
    assert _upsert(g, path, _rows(["new"])) == "ok"
    assert wire.inserted_rows(path) is None, "the indexed path writes a filter now"
    assert _upsert(g, path, _rows(["new"]), version=base, retries=0) == "ok" and _count(path, "new") == 2, "two inserts of a key do not both land"
    assert _upsert(g, path, _rows(["other"]), use_index=False) == "ok"
    assert wire.inserted_rows(path) is not None, "use_index(false) writes no filter"


def racing_upserts_of_a_new_key_leave_one_row(g):
    """Report C60: the engine's second writer runs again and updates."""
    path = g.table()
    base = lance.dataset(path).version
    for v in (1, 2):
        assert _upsert(g, path, _rows(["new"], v), version=base) == "ok"
    assert lance.dataset(path).to_table(["v"], filter="id = 'new'")["v"].to_pylist() == [2]


def an_unfenced_writer_after_ours_makes_a_duplicate(g):
    """The duplicate alarm of the key index exists for this: a filter protects only against writers that compare it."""
    path = g.table()
    append = g.engine.append(path, lance.dataset(path, version=BASE))
    assert g.ours.plan(path, "update_taken", 0, 3)() == "ok"
    assert g.engine.outcome(append) == "ok"
    lance.dataset(path).insert(_rows(["k400"]).cast(lance.dataset(path).schema))
    assert _count(path, "k400") == 2


def every_keyed_merge_carries_a_filter(g):
    """fence.Covers asks for a filter on every update; the engine's own are no exception. One that inserts nothing is all zeros."""
    path = g.table()
    assert _upsert(g, path, _rows(["k1"], 5)) == "ok"
    found = wire.inserted_rows(path)
    assert found is not None and not any(_bits(found)), "an update alone sets bits"
    only_insert = lance.dataset(path).merge_insert("id").when_not_matched_insert_all()
    only_insert.execute(_rows(["k1", "k600"]).cast(lance.dataset(path).schema))
    assert sum(b.bit_count() for b in _bits(wire.inserted_rows(path))) == 8, "an inserted key sets another number of bits than 8"


def append_delete_and_update_carry_no_filter(g):
    """lance's rule: an update without a filter is a conflict for one with."""
    path = g.table()
    for change in (lambda d: d.insert(_rows(["k700"]).cast(d.schema)), lambda d: d.delete("id = 'k700'"), lambda d: d.update({"v": "v"}, "id = 'k1'")):
        change(lance.dataset(path))
        assert wire.inserted_rows(path) is None


def the_filter_is_ours_bit_by_bit(g):
    """lance.Bloom: hash, blocks, size and parameters."""
    path = g.table()
    assert _upsert(g, path, _rows([f"theirs{i}" for i in range(50)])) == "ok"
    found = wire.inserted_rows(path)
    assert _bits(found) == base64.b64decode(g.ours.ask("bloom", "theirs", 50)), "the bitmaps differ"
    (bloom,) = found[3]
    assert wire.fields(bloom)[2] == [FILTER_BYTES * 8] and wire.fields(bloom)[3] == [8192], "other parameters"


def two_filters_conflict_when_they_share_a_bit(g):
    """fence.SameKey asks for real keys because of this: disjoint sets of 50 keys conflict about as often as not, of 200 always."""
    shared = {}
    for count in (1, 50, 200):
        for turn in range(6):
            ours, theirs = f"ours{turn}-", f"theirs{turn}-"
            a, b = (base64.b64decode(g.ours.ask("bloom", prefix, count)) for prefix in (ours, theirs))
            want = any(x & y for x, y in zip(a, b))
            shared.setdefault(count, []).append(want)
            path = g.table()
            assert g.ours.plan(path, f"filter_{ours}:{count}", 0, 0)() == "ok"
            got = _upsert(g, path, _rows([f"{theirs}{i}" for i in range(count)]), version=BASE, retries=0)
            assert got == ("retry" if want else "ok"), f"{count} x {count} keys: {got}, a bit is shared: {want}"
    assert not any(shared[1]) and all(shared[200]) and any(shared[50]) and not all(shared[50]), shared


def one_shared_bit_is_enough(g):
    """It is no membership test: a filter with one of the key's eight bits conflicts."""
    assert _against(g, "filter_bit") == "retry"


def filters_of_other_shapes_conflict(g):
    """fence's rule for theirs is the same; an exact filter against a bloom is in the races."""
    for shape in ("fields", "items", "probability", "short", "nothing"):
        assert (got := _against(g, f"filter_{shape}")) == "retry", f"{shape}: {got}"
    assert _against(g, "filter_empty") == "ok", "a bloom of nothing"


def keys_in_another_order_write_no_filter(g):
    """fence.Covers wants exactly the primary key in its order."""
    path = g.path("composite")
    position = lambda n: {"lance-schema:unenforced-primary-key": "true", "lance-schema:unenforced-primary-key:position": str(n)}
    schema = pa.schema([pa.field("x", pa.string(), False, position(2)), pa.field("y", pa.int64(), False, position(1))])
    rows = lambda n: pa.table({"x": ["a"], "y": [n]}, schema=schema)
    lance.write_dataset(rows(1), path)
    for on, has in ((["y", "x"], True), (["x", "y"], False)):
        _merge(lance.dataset(path), None, on).execute(rows(2 + has))
        assert (wire.inserted_rows(path) is not None) == has, f"on {on}: filter {not has}"


def keys_of_other_types_are_left_out(g):
    """fence.NewFilter refuses such keys: the engine's filter would hold nothing."""
    schema = pa.schema([pa.field("id", pa.int16(), False, {"lance-schema:unenforced-primary-key": "true"})])
    path = g.path("int16")
    lance.write_dataset(pa.table({"id": [1]}, schema=schema), path)
    _merge(lance.dataset(path), None).execute(pa.table({"id": [2]}, schema=schema))
    bits = _bits(wire.inserted_rows(path))
    # Releases after 10.0.0 saturate the filter instead, which conflicts with everything.
    assert not any(bits) or g.newer and all(b == 0xFF for b in bits), "some keys are in"


def _against(g, operation):
    """Outcome of the engine's insert of "k400" after a filter of ours."""
    path = g.table()
    assert g.ours.plan(path, operation, 0, 0)() == "ok"
    return _upsert(g, path, _rows(["k400"]), version=BASE, retries=0)


def _bits(found):
    return wire.fields(found[3][0])[1][0]
