"""Flights by the rule of thumb: reproducible rows over the airports and routes of examples/flights."""

import json
import os
import random

EXAMPLES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "examples", "flights")


def airports():
    return _rows("airports.ndjson")


def flights(n):
    routes = _rows("routes.ndjson")
    rng = random.Random(20010101)
    rows = []
    for i in range(n):
        route = rng.choice(routes)
        rows.append({
            "id": f"F{i:06d}",
            "src": route["src"],
            "dst": route["dst"],
            "departed": f"2001-{rng.randint(1, 12):02d}-{rng.randint(1, 28):02d}T{rng.randint(0, 23):02d}:{rng.randint(0, 59):02d}:00.000000Z",
            "delay": rng.randint(-60, 600),
            "distance": route["distance"],
        })
    return rows


def ndjson(rows):
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def _rows(name):
    with open(os.path.join(EXAMPLES, name), encoding="utf-8") as f:
        return [json.loads(line) for line in f]
