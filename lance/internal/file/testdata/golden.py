"""Has the real engine (pylance) write the golden data files, and writes down the values it was given.

    python golden.py golden

Every shape is a file <shape>.<version>.lance with one column. values.txt holds one line per shape: its name, its
number of rows and the SHA-256 of its values' canonical text, one row a line: N for null, 1 and 0 for booleans,
integers, dates, times and the unscaled value of decimals in decimal, floats as the hex of their IEEE bits, strings
quoted, binaries in hex, [a,b] for lists and {f:v} for structs.
"""
import decimal
import hashlib
import os
import random
import struct
import sys

import pyarrow as pa
from lance.file import LanceFileWriter

random.seed(7)
pick = random.randrange
chance = lambda p: random.random() < p
text = lambda n: " ".join(random.choice(["graph", "node", "edge", "vector", "memory", "likes"]) for _ in range(n))
hexes = lambda n: "".join(random.choice("0123456789abcdef") for _ in range(n))
floats = lambda n: [struct.unpack("f", struct.pack("f", random.random()))[0] for _ in range(n)]
maybe = lambda p, f: lambda i: None if chance(p) else f(i)

LIST = pa.list_(pa.int32())
PAIR = pa.struct([("a", pa.int32()), ("b", pa.string())])
pair = lambda i: {"a": None if chance(0.1) else i, "b": None if chance(0.1) else text(1)}

# name: (type, rows, value of row i)
SHAPES = {
    "bool": (pa.bool_(), 300, maybe(0.2, lambda i: chance(0.5))),
    "int8": (pa.int8(), 300, lambda i: pick(200) - 100),
    "uint16": (pa.uint16(), 1500, maybe(0.1, lambda i: pick(300))),
    "int32_packed": (pa.int32(), 3000, lambda i: pick(1000)),
    "int64_runs": (pa.int64(), 3000, lambda i: i // 200),
    "int64_wide": (pa.int64(), 200, lambda i: pick(1 << 62) - (1 << 61)),
    "int64_few": (pa.int64(), 2000, lambda i: random.choice([5, 10**12, -3])),
    "int64_nulls": (pa.int64(), 300, lambda i: None),
    "int64_same": (pa.int64(), 300, maybe(0.3, lambda i: 9)),
    "float16": (pa.float16(), 200, lambda i: pick(1000) / 8),
    "float32": (pa.float32(), 200, maybe(0.1, lambda i: floats(1)[0])),
    "float64": (pa.float64(), 200, lambda i: random.random()),
    "date32": (pa.date32(), 300, lambda i: 18000 + pick(500)),
    "timestamp": (pa.timestamp("us", "UTC"), 300, maybe(0.1, lambda i: 17 * 10**14 + pick(10**9))),
    "time64": (pa.time64("ns"), 100, lambda i: pick(86400 * 10**9)),
    "duration": (pa.duration("ms"), 100, maybe(0.1, lambda i: pick(10**6))),
    "decimal128": (pa.decimal128(20, 3), 100, maybe(0.1, lambda i: decimal.Decimal(pick(10**9) - 10**8).scaleb(-3))),
    "decimal256": (pa.decimal256(50, 3), 60, lambda i: decimal.Decimal(pick(10**9)).scaleb(-3)),
    "string_ids": (pa.string(), 4000, lambda i: "k%08d" % i),
    "string_few": (pa.string(), 500, maybe(0.2, lambda i: "value %d" % (i % 7))),
    "string_short": (pa.string(), 300, maybe(0.1, lambda i: text(pick(3)))),
    "string_wide": (pa.string(), 60, maybe(0.1, lambda i: text(60))),
    "string_huge": (pa.string(), 12, maybe(0.2, lambda i: text(7000) if i % 5 == 1 else "x")),
    "string_same": (pa.string(), 300, lambda i: "same"),
    "large_string": (pa.large_string(), 200, maybe(0.1, lambda i: text(pick(4)))),
    "binary": (pa.binary(), 200, maybe(0.1, lambda i: random.randbytes(pick(20)))),
    "fixed_binary": (pa.binary(7), 100, maybe(0.1, lambda i: random.randbytes(7))),
    "dictionary": (pa.dictionary(pa.int16(), pa.string()), 300, maybe(0.1, lambda i: "v%d" % pick(9))),
    "vector": (pa.list_(pa.float32(), 4), 150, maybe(0.2, lambda i: floats(4))),
    "vector_item_nulls": (pa.list_(pa.float32(), 4), 150, maybe(0.2, lambda i: [x if x < 0.5 else None for x in floats(4)])),
    "vector_wide": (pa.list_(pa.float32(), 96), 30, maybe(0.2, lambda i: floats(96))),
    "list": (LIST, 1500, maybe(0.1, lambda i: [None if chance(0.1) else pick(1000) for _ in range(pick(4))])),
    "list_string": (pa.list_(pa.string()), 300, maybe(0.1, lambda i: [None if chance(0.2) else text(1) for _ in range(pick(4))])),
    "list_list": (pa.large_list(LIST), 300, maybe(0.1, lambda i: [None if chance(0.1) else list(range(pick(3))) for _ in range(pick(4))])),
    "list_long": (LIST, 60, lambda i: list(range(5000)) if i == 7 else [] if i % 5 == 0 else None if i % 7 == 0 else [i]),
    "list_empty": (LIST, 200, lambda i: [] if i % 2 else None),
    "list_wide": (pa.list_(pa.string()), 40, maybe(0.1, lambda i: [None if chance(0.1) else text(50) for _ in range(pick(3))])),
    "list_vector": (pa.list_(pa.list_(pa.float32(), 2)), 100, maybe(0.1, lambda i: [floats(2) for _ in range(pick(3))])),
    "struct": (PAIR, 300, pair),
    "struct_nulls": (PAIR, 300, maybe(0.2, pair)),
    "list_struct": (pa.list_(PAIR), 200, maybe(0.1, lambda i: [pair(j) for j in range(pick(4))])),
    "struct_list": (pa.struct([("p", LIST), ("q", pa.struct([("r", pa.float64())]))]), 200,
                    maybe(0.1, lambda i: {"p": None if chance(0.1) else list(range(pick(4))), "q": None if chance(0.2) else {"r": random.random()}})),
}


def canonical(v, t):
    if v is None:
        return "N"
    if pa.types.is_boolean(t):
        return "1" if v else "0"
    if pa.types.is_floating(t):
        code = {16: "e", 32: "f", 64: "d"}[t.bit_width]
        return "%x" % int.from_bytes(struct.pack("<" + code, v), "little")
    if pa.types.is_decimal(t):
        return str(int(v.scaleb(t.scale)))
    if pa.types.is_dictionary(t):
        return canonical(v, t.value_type)
    if pa.types.is_string(t) or pa.types.is_large_string(t):
        return '"' + v + '"'
    if pa.types.is_binary(t) or pa.types.is_fixed_size_binary(t):
        return v.hex()
    if pa.types.is_struct(t):
        return "{" + ",".join(f.name + ":" + canonical(v[f.name], f.type) for f in t) + "}"
    if isinstance(v, list):
        return "[" + ",".join(canonical(x, t.value_type) for x in v) + "]"
    return str(v)


def main(folder):
    os.makedirs(folder, exist_ok=True)
    lines = []
    for name, (t, rows, value) in SHAPES.items():
        values = [value(i) for i in range(rows)]
        body = "".join(canonical(v, t) + "\n" for v in values)
        lines.append("%s %d %s\n" % (name, rows, hashlib.sha256(body.encode()).hexdigest()))
        array = pa.array(values, t.value_type).dictionary_encode().cast(t) if pa.types.is_dictionary(t) else pa.array(values, t)
        batch = pa.record_batch([array], ["c"])
        for version in ("2.0", "2.1", "2.2"):
            path = os.path.join(folder, "%s.%s.lance" % (name, version))
            try:
                writer = LanceFileWriter(path, batch.schema, version=version)
                writer.write_batch(batch)
                writer.close()
            except (OSError, ValueError) as e:  # 2.0 has no null structs
                print(name, version, str(e)[:80])
                os.path.exists(path) and os.remove(path)
    with open(os.path.join(folder, "values.txt"), "w") as f:
        f.writelines(lines)


main(sys.argv[1])
