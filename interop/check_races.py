"""Our commits race the engine's, in both orders, for every pair of the format's conflict matrix that was seen on the engine.

    check_races.py RACES_BINARY DIRECTORY SAME_CORE

Both sides plan on one version of a table; one lands, then the other tries: its outcome is the matrix's, and the rows are then those of
what landed, in that order, in both readers. What package lance does not commit (indexes, data replacement, ...) the engine lands itself, so
that every cell is run. SAME_CORE is "yes" for the engine release that the matrix is of; a newer one may refuse more, never less, and what it
lands must be taken by us as the matrix says. At the end the matrix is printed, and a pair that was not run is a failure.
"""

import json
import os
import shutil
import sys

import lance

import races_spec
from races_engine import BASE, Engine, Ours
from report import Report

LETTER = {"ok": "o", "retry": "R", "incompatible": "I"}


class Races:
    def __init__(self, binary, directory, stricter_is_fine):
        self.ours, self.engine, self.stricter_is_fine = Ours(binary), Engine(), stricter_is_fine
        self.template, self.path = os.path.join(directory, "template.lance"), os.path.join(directory, "race.lance")
        self.seen = {}  # (second, first) → by side that came second, the letters of the outcomes
        shutil.rmtree(directory, ignore_errors=True)
        os.makedirs(directory)
        self.ours.ask("make", self.template)
        lance.dataset(self.template).delete(f"v in ({', '.join(map(str, races_spec.Model.DELETED))})")
        assert lance.dataset(self.template).version == BASE

    def sides(self, second, first):
        """Who comes second and who first: the other side, or when that one cannot land an operation of the format's columns, the same."""
        for b, a in [(self.ours, self.engine), (self.engine, self.ours)]:
            if b.can(second, False) and (a.can(first, True) or first in races_spec.COLUMNS):
                yield b, a if a.can(first, True) else b

    def race(self, b, second, a, first, place, want):
        """a lands first, then b tries second."""
        shutil.rmtree(self.path, ignore_errors=True)
        shutil.copytree(self.template, self.path)
        (a_fragment, a_row), (b_fragment, b_row) = self.spot(a, b, place)
        lands, tries = a.plan(self.path, first, a_fragment, a_row), b.plan(self.path, second, b_fragment, b_row)
        if (landed := lands()) != "ok":
            return f"the first commit: {landed}"
        got = tries()
        self.seen.setdefault((second, first), {}).setdefault(b.name, []).append(LETTER[got])
        if got != want and not (b is self.engine and self.stricter_is_fine and want != "incompatible" and got != "ok"):
            return f"{got}, want {want}"
        model = races_spec.Model()
        model.apply(first, a_fragment, a_row, a is self.ours)
        if got == "ok":
            model.apply(second, b_fragment, b_row, b is self.ours)
        return self.compare(model.rows)

    def spot(self, a, b, place):
        """Fragment and row of the first and of the second: those of ours are 0 and 3."""
        apart = 1 if place == "other fragment" else 0
        row = 3 if place == "same row" else 7
        if a is b:
            return (0, 3), (apart, 3 if b is self.ours else row)
        return ((0, 3), (apart, row)) if a is self.ours else ((apart, row), (0, 3))

    def compare(self, want):
        dataset = lance.dataset(self.path)
        dataset.validate()
        rows = dataset.to_table(columns=["id", "v"])
        theirs = dict(zip(rows["id"].to_pylist(), rows["v"].to_pylist()))
        if len(theirs) != rows.num_rows or theirs != want:
            return f"the engine reads {rows.num_rows} rows, want {len(want)}: {sorted(theirs.items() ^ want.items())}"
        ours = json.loads(self.ours.ask("rows", self.path))
        if ours != want:
            return f"ours reads {sorted(ours.items() ^ want.items())} otherwise"
        return None

    def missing(self):
        """Pairs of the format that were not run in each order that both sides can commit."""
        for second, first in races_spec.pairs():
            wanted = {b.name for b, _ in self.sides(second, first)}
            if "engine" not in wanted or self.seen.get((second, first), {}).keys() != wanted:
                yield f"{second} after {first}"

    def matrix(self):
        """Rows come second, columns first; a cell has our outcomes, then the engine's: of other fragment, same fragment, same row."""
        seconds = [*races_spec.MATRIX, *races_spec.SOURCE_ONLY]
        cell = lambda key, side: "".join(self.seen.get(key, {}).get(side, "-"))
        table = [["second \\ first", *races_spec.COLUMNS]]
        table += [[s, *(f"{cell((s, f), 'ours')}/{cell((s, f), 'engine')}" for f in races_spec.COLUMNS)] for s in seconds]
        widths = [max(map(len, column)) for column in zip(*table)]
        return "\n".join("  ".join(text.ljust(w) for text, w in zip(row, widths)) for row in table)


def main(binary, directory, same_core):
    report, races = Report(), Races(binary, directory, same_core != "yes")
    for second, first, place, want in races_spec.cases():
        for b, a in races.sides(second, first):
            report.check(f"{second} of {b.name} after {first} of {a.name}, {place}", races.race, b, second, a, first, place, want)
    report.check("every pair of the format was raced in both orders", lambda: "; ".join(races.missing()))
    print(races.matrix())
    report.exit()


if __name__ == "__main__":
    main(*sys.argv[1:])
