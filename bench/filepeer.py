"""Writes and scans data files with the real engine, for a measurement that times the answers.

The requests are those of lance/internal/cmd/filepeer."""

from lance.file import LanceFileReader, LanceFileWriter

from peer import load, serve

BATCH_ROWS = 8192


class Peer:
    def load(self, path):
        self.schema, self.batches = load(path)
        return sum(b.num_rows for b in self.batches)

    def write(self, path):
        with LanceFileWriter(path, self.schema, version="2.1") as writer:
            for batch in self.batches:
                writer.write_batch(batch)
        return writer.size_bytes

    def scan(self, path):
        return sum(b.num_rows for b in LanceFileReader(path).read_all(batch_size=BATCH_ROWS).to_batches())


if __name__ == "__main__":
    peer = Peer()
    serve({"load": peer.load, "write": peer.write, "scan": peer.scan})
