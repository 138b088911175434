"""Just enough of the protobuf wire format to look into manifests and transactions, and to make some, without anyone's generated code."""

import os
import struct
import uuid

import lance

OPERATION_UPDATE, UPDATE_INSERTED_ROWS, FILTER_FIELD_IDS = 108, 8, 1


def fields(data):
    """The fields of a message: number → list of values (int, or bytes of a nested message)."""
    out = {}
    for number, value, _ in walk(data):
        out.setdefault(number, []).append(value)
    return out


def walk(data):
    """The fields of a message in order: number, value, and the bytes of the whole field."""
    at = 0
    while at < len(data):
        start = at
        tag, at = _varint(data, at)
        kind = tag & 7
        if kind == 0:
            value, at = _varint(data, at)
        elif kind == 1:
            value, at = struct.unpack_from("<Q", data, at)[0], at + 8
        elif kind == 2:
            n, at = _varint(data, at)
            value, at = data[at:at + n], at + n
            assert len(value) == n, "a field ends after its message"
        elif kind == 5:
            value, at = struct.unpack_from("<I", data, at)[0], at + 4
        else:
            raise ValueError(f"wire type {kind}")
        yield tag >> 3, value, data[start:at]


def _varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at


def packed(values):
    """The numbers of a repeated integer field, packed or not."""
    out = []
    for value in values:
        if isinstance(value, int):
            out.append(value)
            continue
        at = 0
        while at < len(value):
            number, at = _varint(value, at)
            out.append(number)
    return out


def varint(value):
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def field(number, value):
    """One field of a message, an int as a varint or bytes as a nested message."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    return varint(number << 3 | 2) + varint(len(value)) + value


def manifest_path(path, version):
    return os.path.join(path, "_versions", f"{(1 << 64) - 1 - version:020d}.manifest")


class Manifest:
    """The file of a version: its manifest message, and the sections before it."""

    INDEX_SECTION, TIMESTAMP, TRANSACTION_FILE, TRANSACTION_SECTION = 6, 7, 12, 21
    # Where releases after 10.0.0 put the transaction's offset.
    TRANSACTION_SECTIONS = (TRANSACTION_SECTION, 23)

    def __init__(self, path, version):
        self.path, self.version = path, version
        with open(manifest_path(path, version), "rb") as f:
            self.data = f.read()
        assert self.data[-4:] == b"LANC", self.data[-4:]
        self.message = self.section(struct.unpack("<Q", self.data[-16:-8])[0])
        self.fields = fields(self.message)

    def section(self, at):
        size = struct.unpack_from("<I", self.data, at)[0]
        return self.data[at + 4:at + 4 + size]

    def transaction(self):
        """The bytes of the transaction that made the version, inline or in a file of its own."""
        for number in self.TRANSACTION_SECTIONS:
            if number in self.fields:
                return self.section(self.fields[number][0])
        with open(os.path.join(self.path, "_transactions", self.fields[self.TRANSACTION_FILE][0].decode()), "rb") as f:
            return f.read()

    def strings(self, number):
        """A map<string, string> of the manifest."""
        entries = (fields(e) for e in self.fields.get(number, []))
        return {e[1][0].decode(): e.get(2, [b""])[0].decode() for e in entries}


def write_manifest(path, version, message, transaction, index=None):
    """Makes a version of a manifest message that says nothing about version, sections and transaction file."""
    sections = b"" if index is None else struct.pack("<I", len(index)) + index
    message += field(3, version) + field(Manifest.TRANSACTION_SECTION, len(sections))
    if index is not None:
        message += field(Manifest.INDEX_SECTION, 0)
    at = len(sections) + 4 + len(transaction)
    data = sections + struct.pack("<I", len(transaction)) + transaction + struct.pack("<I", len(message)) + message
    with open(manifest_path(path, version), "xb") as f:
        f.write(data + struct.pack("<QHH", at, 0, 2) + b"LANC")


def place(path, base, operation, body=b""):
    """Puts a version on top of base that has its content and claims to be made by an operation, by its number in the transaction."""
    m = Manifest(path, base)
    own = {3, m.INDEX_SECTION, m.TRANSACTION_FILE, *m.TRANSACTION_SECTIONS}
    message = b"".join(raw for number, _, raw in walk(m.message) if number not in own)
    transaction = field(1, base) + field(2, str(uuid.uuid4()).encode()) + field(operation, body)
    index = m.section(m.fields[m.INDEX_SECTION][0]) if m.INDEX_SECTION in m.fields else None
    write_manifest(path, base + 1, message, transaction, index)


def age(path, seconds):
    """Dates all versions of a table back, in place."""
    for name in os.listdir(os.path.join(path, "_versions")):
        if not name.endswith(".manifest"):
            continue
        name = os.path.join(path, "_versions", name)
        with open(name, "r+b") as f:
            data = f.read()
            at = struct.unpack("<Q", data[-16:-8])[0] + 4
            for number, value, raw in walk(data[at:-16]):
                if number == Manifest.TIMESTAMP:
                    old = fields(value)[1][0]
                    new = raw.replace(field(1, old), field(1, old - seconds), 1)
                    assert len(new) == len(raw), "the date needs other bytes"
                    f.seek(at)
                    f.write(new)
                at += len(raw)


def inserted_rows(path, version=None):
    """The key filter of the transaction that made a version, the newest by default; None when it carries none."""
    tx = fields(Manifest(path, version or lance.dataset(path).version).transaction())
    if OPERATION_UPDATE not in tx:
        return None
    update = fields(tx[OPERATION_UPDATE][0])
    return fields(update[UPDATE_INSERTED_ROWS][0]) if UPDATE_INSERTED_ROWS in update else None


def filtered_fields(path):
    """The field ids of the key filter of the newest version's transaction; None when it carries none."""
    found = inserted_rows(path)
    return None if found is None else packed(found.get(FILTER_FIELD_IDS, []))
