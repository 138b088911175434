"""Just enough of the protobuf wire format to look into a transaction without anyone's generated code."""

import os
import struct

import lance

OPERATION_UPDATE, UPDATE_INSERTED_ROWS, FILTER_FIELD_IDS = 108, 8, 1


def fields(data):
    """The fields of a message: number → list of values (int, or bytes of a nested message)."""
    out, at = {}, 0
    while at < len(data):
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
        out.setdefault(tag >> 3, []).append(value)
    return out


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


def transaction(path, version):
    """The bytes of the transaction that made a version, inline in its manifest or in a file of its own."""
    name = os.path.join(path, "_versions", f"{(1 << 64) - 1 - version:020d}.manifest")
    with open(name, "rb") as f:
        data = f.read()
    at, magic = struct.unpack("<Q", data[-16:-8])[0], data[-4:]
    assert magic == b"LANC", magic
    size = struct.unpack_from("<I", data, at)[0]
    manifest = fields(data[at + 4:at + 4 + size])
    if 21 in manifest:  # transaction_section: the offset of the inline copy
        at = manifest[21][0]
        size = struct.unpack_from("<I", data, at)[0]
        return data[at + 4:at + 4 + size]
    with open(os.path.join(path, "_transactions", manifest[12][0].decode()), "rb") as f:
        return f.read()


def filtered_fields(path):
    """The field ids of the key filter of the newest version's transaction; None when it carries none."""
    version = lance.dataset(path).version
    tx = fields(transaction(path, version))
    if OPERATION_UPDATE not in tx:
        return None
    update = fields(tx[OPERATION_UPDATE][0])
    if UPDATE_INSERTED_ROWS not in update:
        return None
    return packed(fields(update[UPDATE_INSERTED_ROWS][0]).get(FILTER_FIELD_IDS, []))
