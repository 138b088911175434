"""Makes tables and merges into them with the real engine, for a measurement that times the answers.

The requests are those of bench/cmd/tablepeer."""

import lance
import pyarrow as pa

from peer import load, serve


class Peer:
    def load(self, path):
        schema, batches = load(path)
        key = schema.get_field_index("id")
        schema = schema.set(key, schema.field(key).with_nullable(False).with_metadata({"lance-schema:unenforced-primary-key": "true"}))
        self.rows = pa.table(pa.Table.from_batches(batches).columns, schema=schema)
        return self.rows.num_rows

    def create(self, path):
        return lance.write_dataset(self.rows, path, data_storage_version="2.1").count_rows()

    def merge(self, path):
        done = lance.dataset(path).merge_insert("id").when_matched_update_all().when_not_matched_insert_all().execute(self.rows)
        return done["num_inserted_rows"]


if __name__ == "__main__":
    peer = Peer()
    serve({"load": peer.load, "create": peer.create, "merge": peer.merge})
