"""The conflict matrix of the Lance table format, as the engine of release 10.0.0 applies it: each cell that was seen in a run of that
engine. What comes second ("ours" in the format's words) is a row, what landed before it is a column.

o ok, R retryable, I incompatible. By what both touch: r retryable on the same fragment; m deletion vectors are merged, and only the same row is
retryable; k a key filter against none, and against one for which see VARIANTS. f, c, e, n, i are the format's conditions (f), (c), (e), "same name"
and (i).
"""

COLUMNS = ["append", "delete", "update", "overwrite", "rewrite", "index", "merge", "project",
           "restore", "reserve", "config", "replacement", "memwal", "clone", "bases"]

MATRIX = {
    "append":        "oooIoooo IoooIoo",
    "delete":        "ommIroRo IoorIoo",
    "update":        "ommIroRo Ioorooo",
    "update_filter": "RmkIroRo Ioorooo",
    "overwrite":     "oooRoooo ooooIoo",
    "rewrite":       "orrIrcRo Ioorooo",
    "index":         "oooIenoo IoooIoo",
    "merge":         "RRRIRoRI IooRIoo",
    "project":       "oooIooRR IoooIoo",
    "config":        "ooofoooo ooioooo",
}

# Rows that the format has from source alone. They are raced too.
SOURCE_ONLY = {
    "restore":       "oooooooo ooooIoo",
    "reserve":       "oooIoooo Ioooooo",
    "barrier":       "oooooooo ooooooo",
}

# A letter's outcome for the operations of the same names, and the pairs that show its other cases.
LETTERS = {"k": "R", "f": "o", "c": "r", "e": "r", "n": "R", "i": "o"}
VARIANTS = [  # second, first, outcome
    ("config_schema", "overwrite", "I"), ("config_field", "overwrite", "I"),
    ("config_key", "config_key", "I"), ("config_schema", "config_schema", "I"), ("config_field", "config_field", "I"),
    ("config_field", "config_schema", "o"), ("config", "config_key", "o"),
    ("index_other", "index", "o"),
    ("delete_blind", "delete", "r"), ("delete_blind", "update", "r"), ("update_blind", "delete", "r"), ("update_blind", "update", "r"),
    ("delete_half", "delete_half", "m"), ("update", "update_filter", "m"), ("delete", "update_filter", "m"),
    ("update_filter", "update_filter", "R"),  # an exact filter and a bloom are not comparable
    ("update_bloom", "update_filter", "m"), ("update_filter", "update_bloom", "m"),  # blooms of other keys
    ("update_taken", "update_filter", "R"), ("update_filter", "update_taken", "R"),  # of the same key
]

# What touches fragments, so that the place matters, and what touches rows.
ROWS = {"delete", "delete_blind", "update", "update_blind", "update_filter", "update_bloom", "update_taken"}
FRAGMENTS = ROWS | {"delete_half", "rewrite", "index", "index_other", "replacement"}


def pairs():
    """Every pair that the format calls seen on the engine: second, first."""
    return [(second, first) for second in MATRIX for first in COLUMNS]


def cases():
    """All that is raced: second, first, place, outcome as "ok", "retry" or "incompatible"."""
    cells = [(second, first, letter) for matrix in (MATRIX, SOURCE_ONLY) for second, row in matrix.items()
             for first, letter in zip(COLUMNS, row.replace(" ", ""), strict=True)]
    for second, first, letter in cells + VARIANTS:
        for place in places(second, first):
            yield second, first, place, outcome(second, first, LETTERS.get(letter, letter), place)


def places(second, first):
    if not (second in FRAGMENTS and first in FRAGMENTS):
        return ["anywhere"]
    return ["other fragment", "same fragment"] + ["same row"] * (second in ROWS and first in ROWS)


def outcome(second, first, letter, place):
    if letter == "m":
        letter = "R" if place == "same row" else "o"
    if letter == "r":
        letter = "o" if place == "other fragment" else "R"
    return {"o": "ok", "R": "retry", "I": "incompatible"}[letter]


class Model:
    """The rows, id to v, of the table that is raced on, as operations change them. Ours touches row 3 of its fragment, or the first five;
    the engine touches row 7, or in "same row" row 3, or the last five."""

    START = {f"k{n}": n for n in range(20)}
    DELETED = [5, 6, 15, 16]  # before the races begin

    def __init__(self):
        self.rows = {k: v for k, v in self.START.items() if v not in self.DELETED}

    def apply(self, operation, fragment, row, ours):
        key = f"k{fragment * 10 + row}"
        kind, _, variant = operation.partition("_")
        if operation == "append":
            self.rows |= numbered(100 if ours else 300, 3)
        elif operation == "overwrite":
            self.rows = numbered(200 if ours else 500, 3)
        elif operation == "restore":
            self.rows = dict(self.START)
        elif operation == "delete_half":
            for n in range(5):
                self.rows.pop(f"k{fragment * 10 + n + (0 if ours else 5)}", None)
        elif kind == "delete":
            del self.rows[key]
        elif kind == "update":
            self.rows[key] += 1000
            if variant in ("filter", "bloom", "taken"):
                self.rows |= numbered(150 if ours and variant != "taken" else 400, 1)


def numbered(first, count):
    return {f"k{n}": n for n in range(first, first + count)}
