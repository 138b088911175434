"""Guards: what our protocol leans on in the real engines, one named check for each, so that an upgrade that changes one of them is noticed.

    check_guards.py RACES_BINARY FOLDLINE_BINARY GRAPH_DATA DIRECTORY NODE_DIRECTORY SAME_CORE

GRAPH_DATA is the data directory of a stopped line that has a table node:Airport; guards work on copies. SAME_CORE is "yes" for the engine release
that the format's description is of. Each guard says in its first line what rests on it.
"""

import inspect
import os
import shutil
import sys

import lance

import guards_keys
import guards_lancedb
import guards_tables
import races_spec
from engines import LanceDB
from line import Line
from races_engine import Engine, Ours
from report import Report


class Guards:
    """What a guard works with: both sides, and fresh tables."""

    def __init__(self, races, foldline, data, directory, node, newer):
        self.ours, self.engine, self.lancedb = Ours(races), Engine(), LanceDB(node)
        self.foldline, self.data, self.newer = foldline, data, newer
        self.directory, self.made = directory, 0
        shutil.rmtree(directory, ignore_errors=True)
        os.makedirs(directory)
        self.template = self.path("template")
        self.ours.ask("make", self.template)
        lance.dataset(self.template).delete(f"v in ({', '.join(map(str, races_spec.Model.DELETED))})")

    def path(self, name):
        return os.path.join(self.directory, f"{name}.lance")

    def table(self):
        """A copy of the races' table, at its base version."""
        return self._copy(self.template, self.path(f"table{self.made}"))

    def line(self):
        """A copy of the line."""
        return Line(self.foldline, self._copy(self.data, os.path.join(self.directory, f"line{self.made}")))

    def _copy(self, source, target):
        self.made += 1
        return shutil.copytree(source, target)


def main(races, foldline, data, directory, node, same_core):
    report = Report()
    guards = Guards(races, foldline, data, directory, node, same_core != "yes")
    for module in (guards_keys, guards_tables, guards_lancedb):
        for name, guard in inspect.getmembers(module, inspect.isfunction):
            if guard.__module__ == module.__name__ and not name.startswith("_"):
                report.check(f"guard {name}: {inspect.getdoc(guard).splitlines()[0]}", guard, guards)
    report.exit()


if __name__ == "__main__":
    main(*sys.argv[1:])
