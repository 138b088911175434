"""Checks are named, run to the end, and counted; one that failed makes the run fail."""

import sys
import time
import traceback


class Report:
    def __init__(self):
        self.done = self.failed = 0
        self.started = time.monotonic()

    def check(self, name, function, *args):
        """Runs one check: it raises, or returns a fault as text, or returns nothing when all is well."""
        self.done += 1
        try:
            fault = function(*args)
        except Exception:  # a check that breaks is a check that failed; the others still run
            fault = traceback.format_exc(limit=-3)
        if fault:
            self.failed += 1
            print(f"FAIL {name}\n     {fault}", flush=True)
        else:
            print(f"ok   {name}", flush=True)

    def exit(self):
        seconds = time.monotonic() - self.started
        print(f"{self.done - self.failed} of {self.done} checks passed in {seconds:.1f} s", flush=True)
        sys.exit(1 if self.failed or not self.done else 0)
