#!/usr/bin/env python3
"""tfevents: reads TensorBoard's event files without any code of ours: `tfevents.py FILE…`.

Checks the length of each record, and the masked crc32c of the length and of the data. Decodes the
data with `protoc --decode_raw`. Prints `tag<TAB>step<TAB>value` for every point, values with nine
digits. Exit code 1: a file is wrong; 77: protoc is not installed, and lengths and checksums are
right.
"""

import re
import shutil
import struct
import subprocess
import sys

NO_PROTOC = 77


def crc32c(data):
    """Uses Castagnoli's polynomial bit by bit: slow, but independent of our implementations."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def masked(crc):
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def records(content):
    """The data of every record; ValueError where the framing is wrong."""
    place = 0
    while place < len(content):
        if len(content) - place < 12:
            raise ValueError(f"byte {place}: {len(content) - place} bytes are too few for a head")
        length, length_crc = struct.unpack_from("<QI", content, place)
        if length_crc != masked(crc32c(content[place:place + 8])):
            raise ValueError(f"byte {place}: the length's checksum is wrong")
        if length > len(content) - place - 16:
            raise ValueError(f"byte {place}: a record of {length} bytes goes past the end")
        data = content[place + 12:place + 12 + length]
        (data_crc,) = struct.unpack_from("<I", content, place + 12 + length)
        if data_crc != masked(crc32c(data)):
            raise ValueError(f"byte {place}: the data's checksum is wrong")
        yield data
        place += 16 + length


def decode(data):
    """Returns a message as a list of (field, value). A value is protoc's text, or such a list."""
    run = subprocess.run(["protoc", "--decode_raw"], input=data, stdout=subprocess.PIPE,
                         stderr=subprocess.PIPE)
    if run.returncode:
        raise ValueError(f"protoc: {run.stderr.decode().strip()}")
    root = []
    open_messages = [root]
    for line in run.stdout.decode().splitlines():
        word = line.strip()
        if word == "}":
            open_messages.pop()
        elif word.endswith(" {"):
            message = []
            open_messages[-1].append((int(word[:-2]), message))
            open_messages.append(message)
        else:
            field, value = re.fullmatch(r"(\d+): (.*)", word).groups()
            open_messages[-1].append((int(field), value))
    return root


def one(message, field):
    """The value of a field that occurs once."""
    values = [value for name, value in message if name == field]
    if len(values) != 1:
        raise ValueError(f"field {field} occurs {len(values)} times in {message}")
    return values[0]


def points(message):
    """(tag, step, value) of every point of a decoded event."""
    step = int(one(message, 2))
    for field, value in one(message, 5):
        if field != 1:
            raise ValueError(f"field {field} in a summary")
        bits = int(one(value, 2), 16)
        yield one(value, 1).strip('"'), step, struct.unpack("<f", struct.pack("<I", bits))[0]


def read(path, with_protoc):
    with open(path, "rb") as file:
        content = file.read()
    count = 0
    for count, data in enumerate(records(content), 1):
        if not with_protoc:
            continue
        message = decode(data)
        time_s = struct.unpack("<d", struct.pack("<Q", int(one(message, 1), 16)))[0]
        if not 1e9 < time_s < 1e10:
            raise ValueError(f"record {count}: {time_s} is not a plausible time")
        if count == 1:
            if one(message, 3) != '"brain.Event:2"':
                raise ValueError("the first record does not hold the version")
            continue
        for tag, step, value in points(message):
            print(f"{tag}\t{step}\t{value:.9g}")
    if count == 0:
        raise ValueError("no record")


def main():
    with_protoc = shutil.which("protoc") is not None
    for path in sys.argv[1:]:
        try:
            read(path, with_protoc)
        except (OSError, ValueError) as error:
            print(f"{path}: {error}", file=sys.stderr)
            return 1
    if not with_protoc:
        print("tfevents: protoc is not installed (protobuf-compiler): lengths and checksums are "
              "right, but no record was decoded", file=sys.stderr)
        return NO_PROTOC
    return 0


if __name__ == "__main__":
    sys.exit(main())
