"""The frame of a program that a measurement drives: see internal/peer."""

import sys

import pyarrow as pa


def load(path):
    """Schema and batches of an Arrow IPC file."""
    with pa.ipc.open_file(path) as reader:
        return reader.schema, [reader.get_batch(i) for i in range(reader.num_record_batches)]


def serve(verbs):
    """Answers requests, a verb and an argument a line, until there are none."""
    for line in sys.stdin:
        verb, _, argument = line.rstrip("\n").partition(" ")
        try:
            answer = f"={verbs[verb](argument)}"
        except Exception as fault:  # told to the measurement, which ends
            answer = f"!{fault!r}"
        print(answer, flush=True)
