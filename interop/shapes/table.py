"""The results of a run of shapes as a table.  python table.py DIR, the folder of run.sh."""

import os
import sys

VERSIONS = ("2_0", "2_1", "2_2")
OURS = ("2.0", "2.1", "2.2")


def results(path):
    out = {}
    for line in open(path):
        words = line.split()
        if words[:1] == ["ok"] or words[:1] == ["FAIL"]:
            out[words[1].rstrip(":").removesuffix(".lance")] = words[0]
    return out


def main(folder):
    read = results(os.path.join(folder, "read.log"))
    ours = {v: results(os.path.join(folder, "check-%s.log" % v)) for v in OURS}
    shapes = sorted({name[:-4] for name in read})
    print("# Shapes of data, by version and direction\n")
    print("Made by `make interop`. Every shape is a table of 5,000 rows, of one column, that LanceDB wrote and we read in")
    print("full, in part and by row address (left), and that we wrote again in each version and LanceDB read in full, in")
    print("a range and at scattered rows (right; once for each version that it came from). Values are compared one by one.")
    print("Version 2.0 has no null structs: the engine's read as structs of nulls, and we refuse to write any.\n")
    print("| shape | we read 2.0 | 2.1 | 2.2 | LanceDB reads our 2.0 | 2.1 | 2.2 |")
    print("|---|---|---|---|---|---|---|")
    for shape in shapes:
        left = [read.get(shape + "_" + v, "-") for v in VERSIONS]
        right = []
        for v in OURS:
            found = [ours[v][shape + "_" + o] for o in VERSIONS if shape + "_" + o in ours[v]]
            right.append("-" if not found else "ok x%d" % len(found) if set(found) == {"ok"} else "FAIL")
        print("| %s | %s |" % (shape, " | ".join(left + right)))


main(sys.argv[1])
