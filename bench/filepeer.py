"""Writes and scans data files with the real engine, for a measurement that times the answers.

The protocol is that of lance/internal/cmd/filepeer."""

import sys

import pyarrow as pa
from lance.file import LanceFileReader, LanceFileWriter

BATCH_ROWS = 8192


class Peer:
    def load(self, path):
        with pa.ipc.open_file(path) as reader:
            self.schema = reader.schema
            self.batches = [reader.get_batch(i) for i in range(reader.num_record_batches)]
        return sum(b.num_rows for b in self.batches)

    def write(self, path):
        with LanceFileWriter(path, self.schema, version="2.1") as writer:
            for batch in self.batches:
                writer.write_batch(batch)
        return writer.size_bytes

    def scan(self, path):
        return sum(b.num_rows for b in LanceFileReader(path).read_all(batch_size=BATCH_ROWS).to_batches())


def main():
    peer = Peer()
    verbs = {"load": peer.load, "write": peer.write, "scan": peer.scan}
    for line in sys.stdin:
        verb, _, path = line.rstrip("\n").partition(" ")
        try:
            answer = f"={verbs[verb](path)}"
        except Exception as fault:  # told to the measurement, which ends
            answer = f"!{fault!r}"
        print(answer, flush=True)


if __name__ == "__main__":
    main()
