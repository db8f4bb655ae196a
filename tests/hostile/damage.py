# SPDX-License-Identifier: Apache-2.0
"""Damages files: bytes of any, lines of a text, values of a JSON, rows of an SQLite file, records of a capture whose checksums stay right. All draw from the generator they are given."""

import json
import sqlite3
import struct

ESCAPES = ["\x1b]0;X\x07", "\x1b[31m", "\x9b2J", "\u202e", "\r", "\b\b", "\x00", "<script>alert(1)</script>", "=1+1", "%s%n", "../../x", "\ud800"]
NUMBERS = [0, -1, 1, 2, 255, 256, 65535, 2**31 - 1, -2**31, 2**31, 2**32, 2**53, 2**62, 2**63 - 1, -2**63, 2**63, 2**64, 10**30, 0.5, -0.0, 1e-300, 1e308, 1e400, -1e400]
TELLING = [0, 1, 0x1b, 0x7F, 0x80, 0xFF, *b'"[{,-\\:\n']
TEXTS = ["", "x", "a" * 5000, "nccl:all_reduce", "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)", "step 1", "ProfilerStep#7", "NaN", "1e999", *ESCAPES]


def damaged_bytes(whole, random):
    data = bytearray(whole)
    for _ in range(random.choice((1, 1, 2, 4, 16))):
        if not data:
            break
        at = random.randrange(len(data))
        how = random.randrange(8)
        if how == 0:
            data[at] = random.randrange(256)
        elif how == 1:
            data[at] = random.choice(TELLING)
        elif how == 2:
            data[at] ^= 1 << random.randrange(8)
        elif how == 3:
            data[at:at] = data[at:at + random.randrange(64)]
        elif how == 4:
            del data[at:at + random.choice((1, 8, 64, 4096))]
        elif how == 5:
            data[at:at + 8] = struct.pack("<Q", random.choice([number for number in NUMBERS if isinstance(number, int)]) & (2**64 - 1))
        elif how == 6:
            count = random.choice((4, 64, 4096))
            data[at:at + count] = bytes(min(count, len(data) - at))
        else:
            data[at:at] = random.choice(TEXTS).encode("utf-8", "surrogatepass")
    if random.random() < 0.1:
        del data[random.randrange(len(data) + 1):]
    return bytes(data)


def damaged_lines(whole, random):
    """Of a text whose lines and words have a meaning each."""
    lines = whole.decode("utf-8", "replace").split("\n")
    for _ in range(random.choice((1, 1, 2, 5))):
        at = random.randrange(len(lines))
        how = random.randrange(6)
        if how == 0:
            lines.insert(at, random.choice(lines))
        elif how == 1 and len(lines) > 1:
            del lines[at]
        elif how == 2:
            lines[at] = lines[at] * random.choice((2, 100))
        else:
            for separator in random.sample([",", "=", " ", ":", '"'], 5):
                words = lines[at].split(separator)
                if len(words) > 1:
                    words[random.randrange(len(words))] = str(random.choice(NUMBERS + TEXTS))
                    lines[at] = separator.join(words)
                    break
    return "\n".join(lines).encode("utf-8", "surrogatepass")


def _value(random):
    kind = random.randrange(8)
    if kind == 0:
        return random.choice([None, True, False, [], {}, [[]], {"": None}])
    if kind < 4:
        return random.choice(NUMBERS)
    if kind < 7:
        return random.choice(TEXTS)
    return [random.choice(NUMBERS)] * random.choice((1, 3, 1000))


def _places(value, found):
    """Every (container, key) below a value."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, below in items:
        found.append((value, key))
        _places(below, found)
    return found


def damaged_json(whole, random):
    """Values of a JSON document are others, missing, or there twice."""
    try:
        document = json.loads(whole)
    except ValueError:
        return damaged_bytes(whole, random)
    for _ in range(random.choice((1, 1, 2, 4, 12))):
        places = _places(document, [])
        if not places:
            break
        container, key = random.choice(places)
        how = random.randrange(8)
        if how == 0 and isinstance(container, dict):
            del container[key]
        elif how == 0:
            container.pop(key)
        elif how == 1 and isinstance(container, list):
            container.extend(_copy(container[key]) for _ in range(random.choice((1, 200))))
        elif how == 2 and isinstance(container, dict):
            container[random.choice(TEXTS)] = container.pop(key)
        elif how == 3 and isinstance(container[key], (int, float)) and abs(container[key]) < 1e300:
            container[key] = container[key] * random.choice((-1, 0, 1000, 10**12, 1e-9))
        elif how == 4 and isinstance(container[key], str):
            at = random.randrange(len(container[key]) + 1)
            container[key] = container[key][:at] + random.choice(TEXTS) + container[key][at:]
        elif how == 5:
            other, place = random.choice(places)
            container[key] = _copy(other[place]) if _is_in(other, place) else None
        else:
            container[key] = _value(random)
    return json.dumps(document).encode()


def _copy(value):
    """Of a small one: copies of copies of all of a document would have no end."""
    text = json.dumps(value)
    return json.loads(text) if len(text) < 20_000 else None


def _is_in(container, key):
    return key in container if isinstance(container, dict) else key < len(container)


HOSTILE_SQL = ["CREATE TRIGGER t AFTER UPDATE ON {0} BEGIN INSERT INTO {0} SELECT * FROM {0}; END", "CREATE TRIGGER t AFTER INSERT ON finding BEGIN DELETE FROM kernel; END",
               "ALTER TABLE {0} RENAME TO hidden; CREATE VIEW {0} AS WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT x FROM c",
               "DROP TABLE {0}", "ALTER TABLE {0} DROP COLUMN {1}", "ALTER TABLE {0} RENAME COLUMN {1} TO hidden", "PRAGMA user_version = 99", "PRAGMA application_id = 1",
               "CREATE INDEX i ON {0}(abs({1}))", "PRAGMA journal_mode = WAL", "PRAGMA writable_schema = ON; UPDATE sqlite_master SET sql = 'CREATE TABLE x(' WHERE name = '{0}'", "DELETE FROM {0}"]


def damage_database(path, random):
    """Rows of an SQLite file are others, and now and then its tables."""
    database = sqlite3.connect(path, isolation_level=None)
    database.execute("PRAGMA synchronous = OFF")
    last = []  # what would act on the changes of rows: triggers, and tables that are no longer there
    columns = database.execute("SELECT m.name, c.name FROM sqlite_master m JOIN pragma_table_info(m.name) c WHERE m.type = 'table' ORDER BY 1, 2").fetchall()
    try:
        for _ in range(random.choice((1, 1, 2, 6, 16))):
            table, column = random.choice(columns)
            try:
                if random.random() < 0.08:
                    last.append(random.choice(HOSTILE_SQL).format(table, column))
                    continue
                rows = random.choice(("", " WHERE rowid % 2", " WHERE rowid % 3 = 1", " WHERE rowid = (SELECT max(rowid) FROM {0})", " WHERE rowid = (SELECT min(rowid) FROM {0})")).format(table)
                value = random.choice([random.choice(NUMBERS), random.choice(TEXTS), None, b"\xff\xfe\x00", "column"])
                if value == "column":
                    factor = random.choice(("-1 * {0}", "{0} + 1", "{0} * 1000000007", "{0} || char(27) || '[31m'", "rowid", "-rowid", "{0} / 2")).format(column)
                    database.execute(f"UPDATE OR IGNORE {table} SET {column} = {factor}{rows}")
                else:
                    if isinstance(value, int) and not -2**63 <= value < 2**63:
                        value = float(value)
                    if isinstance(value, str):
                        value = value.encode("utf-8", "surrogatepass").decode("utf-8", "replace")
                    database.execute(f"UPDATE OR IGNORE {table} SET {column} = ?{rows}", (value,))
            except sqlite3.Error:  # the schema does not allow it
                pass
        for statements in last:
            try:
                database.executescript(statements)
            except sqlite3.Error:
                pass
    finally:
        database.close()


def _crc_table():
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (0x82F63B78 if byte & 1 else 0)
        table.append(byte)
    return table


_CRC = _crc_table()


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = _CRC[(crc ^ byte) & 0xFF] ^ crc >> 8
    return crc ^ 0xFFFFFFFF


FILE_HEADER_BYTES, BLOCK_HEADER_BYTES, CELL_BYTES = 4096, 64, 32
HEADER_SUM_AT = 72 + 32 + 256 + 64 + 128 + 512 + 32


def _blocks(data):
    at, found = FILE_HEADER_BYTES, []
    while at + BLOCK_HEADER_BYTES <= len(data) and data[at:at + 4] == b"RSBK":
        size = struct.unpack_from("<I", data, at + 8)[0]
        found.append((at, size))
        at += BLOCK_HEADER_BYTES + size
    return found


def damaged_capture(whole, random):
    """Fields of records, of block headers or of the file's header; the checksums of what was changed are put right."""
    data = bytearray(whole)
    blocks = _blocks(data)
    for _ in range(random.choice((1, 1, 3, 8))):
        if random.random() < 0.1 or not blocks:
            at = random.randrange(8, HEADER_SUM_AT)
            data[at:at + 4] = struct.pack("<I", random.choice((0, 1, 2**31, 2**32 - 1, random.getrandbits(32))))
            struct.pack_into("<Q", data, HEADER_SUM_AT, crc32c(data[:HEADER_SUM_AT]))
            continue
        at, size = random.choice(blocks)
        begin = at + BLOCK_HEADER_BYTES
        if size > 65536 or size == 0:
            continue
        how = random.randrange(10)
        if how == 0:  # the header
            field = random.choice((4, 12, 16, 20, 24, 32, 48))
            struct.pack_into("<I", data, at + field, random.choice((0, 1, 2**31, 2**32 - 1)))
        elif how == 1:  # two records change their places
            one, other = (begin + CELL_BYTES * random.randrange(size // CELL_BYTES) for _ in range(2))
            data[one:one + CELL_BYTES], data[other:other + CELL_BYTES] = data[other:other + CELL_BYTES], data[one:one + CELL_BYTES]
        elif how < 4:  # the head of a record
            cell = begin + CELL_BYTES * random.randrange(size // CELL_BYTES)
            data[cell + random.randrange(4)] = random.choice((0, 1, 2, 3, 5, 8, 20, 40, 255))
        else:
            field = begin + random.randrange(size // 4) * 4
            width = random.choice((1, 2, 4, 8))
            number = random.choice([number for number in NUMBERS if isinstance(number, int)] + [random.getrandbits(64)])
            data[field:field + width] = (number & (2**64 - 1)).to_bytes(8, "little")[:min(width, begin + size - field)]
        struct.pack_into("<I", data, at + 40, crc32c(data[begin:begin + size]))
        struct.pack_into("<I", data, at + 60, crc32c(data[at:at + 60]))
    return bytes(data)
