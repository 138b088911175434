"""Makes the tables of this folder with pylance, in the folder given as argument.

Each holds the rows id = "k%06d" % i, v = i for i below 150 but 7, in two fragments, the first with an array-form deletion file, a
BTREE index on v and one tag; "bitmap" holds 12,000 rows of which the even ones are deleted by a bitmap-form file.
"""
import sys

import lance
import pyarrow as pa

SCHEMA = pa.schema([
    pa.field("id", pa.string(), nullable=False, metadata={"lance-schema:unenforced-primary-key": "true"}),
    pa.field("v", pa.int64()),
])


def rows(start, stop):
    numbers = list(range(start, stop))
    return pa.table({"id": [f"k{i:06d}" for i in numbers], "v": numbers}, schema=SCHEMA)


for version in ["2.0", "2.1", "2.2"]:
    for stable in [False, True]:
        path = f"{sys.argv[1]}/v{version.replace('.', '')}{'_stable' if stable else ''}.lance"
        lance.write_dataset(rows(0, 100), path, data_storage_version=version, enable_stable_row_ids=stable)
        table = lance.write_dataset(rows(100, 150), path, mode="append")
        table.delete("id = 'k000007'")
        table.create_scalar_index("v", "BTREE")
        lance.dataset(path).tags.create("made", lance.dataset(path).version)

path = f"{sys.argv[1]}/bitmap.lance"
table = lance.write_dataset(rows(0, 12000), path)
table.delete("v % 2 = 0")
