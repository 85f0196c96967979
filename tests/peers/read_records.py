"""Reads a record database as docs/formats/records.md describes it: read_records.py training.mdb

Checks every checksum, and prints one line of JSON. Needs the package lmdb. It shares no code with
the program that writes the databases.
"""

import hashlib
import json
import struct
import sys
import zlib

NO_LMDB = 77

RECORD = struct.Struct("<4sHBBIIIIQII")
DESCRIPTION = struct.Struct("<4sIQIIII32sII")
PATHS, ORIGIN, CLASSES, DATASET, LAST = 2**63, 2**64 - 4, 2**64 - 3, 2**64 - 2, 2**64 - 1


def main(path):
    try:
        import lmdb
    except ImportError:
        sys.exit(NO_LMDB)
    env = lmdb.open(path, subdir=False, readonly=True, lock=False)
    with env.begin() as transaction:

        def get(number):
            return transaction.get(struct.pack(">Q", number))

        def text(number):
            value = get(number)
            return None if value is None else value.decode()

        description = get(LAST)
        magic, version, count, classes, *shape, digest, crc, _ = DESCRIPTION.unpack(description)
        assert (magic, version) == (b"RDES", 1)
        assert crc == zlib.crc32(description[:64])
        total = hashlib.sha256()
        labels, ids, payloads = [], [], []
        for index in range(count):
            value = get(index)
            total.update(value)
            magic, version, encoding, channels, label, height, width, size, id, crc, _ = (
                RECORD.unpack(value[: RECORD.size])
            )
            payload = value[RECORD.size :]
            assert (magic, version) == (b"RREC", 1) and len(payload) == size
            assert crc == zlib.crc32(payload, zlib.crc32(value[:32]))
            assert encoding == 1 or size == channels * height * width
            labels.append(label)
            ids.append(id)
            payloads.append(hashlib.sha256(payload).hexdigest()[:8])
        assert total.digest() == digest
        names = text(CLASSES)
        result = {
            "count": count,
            "classes": classes,
            "shape": shape,
            "sha256": digest.hex(),
            "dataset": text(DATASET),
            "class_names": [] if names is None else names.split("\n"),
            "origin": text(ORIGIN),
            "labels": labels,
            "ids": ids,
            "payloads": payloads,
            "paths": [text(PATHS + index) for index in range(count)],
        }
    print(json.dumps(result))


main(sys.argv[1])
