"""Guards of LanceDB's own calls: names, and what plain optimize() removes. heads, publisher and the layout of a graph rest on these."""

import os

import lance

import wire

EIGHT_DAYS = 8 * 24 * 3600
MANIFEST = "_foldline/__manifest"


def optimize_removes_versions_older_than_a_week(g):
    """A head may name one of them: the folder adopts the newest version, heads resolves again."""
    path = g.table()
    name = os.path.basename(path).removesuffix(".lance")
    young = g.lancedb.optimize(g.directory, name)
    assert young["prune"]["oldVersionsRemoved"] == 0, young
    versions = [v["version"] for v in lance.dataset(path).versions()]
    wire.age(path, EIGHT_DAYS)
    lance.dataset(path).delete("id = 'k1'")
    old = g.lancedb.optimize(g.directory, name)
    assert old["prune"]["oldVersionsRemoved"] >= len(versions), old
    assert versions[-1] not in [v["version"] for v in lance.dataset(path).versions()]


def optimize_stops_at_an_old_tag(g):
    """We never pin a head by a tag: the user's maintenance would fail, after it has compacted."""
    path = g.table()
    lance.dataset(path).tags.create("kept", 2)
    wire.age(path, EIGHT_DAYS)
    try:
        g.lancedb.optimize(g.directory, os.path.basename(path).removesuffix(".lance"))
    except RuntimeError as e:
        assert "tagged version" in str(e), e
        return
    raise AssertionError("an old tagged version does not stop optimize()")


def optimize_takes_the_version_that_a_head_names(g):
    """What a head named is gone after a week without folds: foldline says so, and the next fold publishes what is there."""
    line = g.line()
    rows = line.scan("node:Airport").num_rows
    table = os.path.join(line.graph, "node_Airport.lance")
    wire.age(table, EIGHT_DAYS)
    before = lance.dataset(table).version
    lance.dataset(table).delete("false")  # optimize() keeps the newest: let there be a newer one
    g.lancedb.optimize(line.graph, "node_Airport")
    if before in [v["version"] for v in lance.dataset(table).versions()]:
        raise AssertionError(f"version {before} is still there")
    try:
        line.scan("node:Airport")
    except RuntimeError as e:
        assert "not found" in str(e), e
    else:
        raise AssertionError("foldline reads a version that is gone")
    more = os.path.join(line.data, "more.ndjson")
    with open(more, "w") as f:
        f.write('{"id":"GUARD"}\n')
    line.fill({"node:Airport": more})
    assert line.scan("node:Airport").num_rows == rows + 1


def optimize_of_the_manifest_is_refused_by_heads(g):
    """Nobody reaches the manifest through the root. Who opens it and compacts it joins its two fragments; heads refuses that version, nothing is
    published on it, and taking the versions of others away mends the graph."""
    line = g.line()
    heads = line.heads()
    manifest = os.path.join(line.graph, MANIFEST + ".lance")
    before = lance.dataset(manifest).version
    done = g.lancedb.optimize(os.path.dirname(manifest), os.path.basename(MANIFEST))
    assert done["compaction"]["fragmentsRemoved"] == 2, done
    for call in (line.heads, lambda: line.run("dev", "--once")):
        try:
            call()
        except RuntimeError as e:
            assert "ended with 6" in str(e) and "not the hot one and the registry" in str(e), e
        else:
            raise AssertionError("foldline works on a manifest of another layout")
    for version in range(before + 1, lance.dataset(manifest).version + 1):
        os.remove(wire.manifest_path(manifest, version))
    assert line.heads()["tables"] == heads["tables"]
    line.run("dev", "--once")


def the_names_of_a_graph_are_lancedbs(g):
    """Table paths are KIND_NAME.lance: a colon is no name, and what does not end in .lance is not listed."""
    line = g.line()
    os.makedirs(os.path.join(line.graph, "other"), exist_ok=True)
    assert "node_Airport" in g.lancedb.names(line.graph) and not [n for n in g.lancedb.names(line.graph) if n.startswith("_")]
    try:
        g.lancedb.rows(os.path.join(line.graph, "node:Airport.lance"))
    except RuntimeError as e:
        assert "alphanumeric" in str(e), e
        return
    raise AssertionError("LanceDB takes a colon in a name")


def a_namespace_keeps_to_its_own_manifest(g):
    """connectNamespace makes <root>/__manifest; ours is below _foldline, and both work side by side."""
    line = g.line()
    heads = line.heads()
    assert "node_Airport" in g.lancedb.namespace(line.graph)
    assert line.heads() == heads
