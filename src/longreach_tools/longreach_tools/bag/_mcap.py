"""
Check an MCAP file, and read the intact records of one that was not closed or is damaged.

The records are scanned from the start. Where bytes do not form a record, the scan continues at the
next ones that do; a chunk with a damaged header, or a truncated one, is read message by message if
it is not compressed. The messages of a chunk whose checksum does not match are not used, because
it does not say which of them is wrong. Only files as written by rosbag2 are supported: profile
``ros2``, and chunks without compression, with lz4 or with zstd. Times are in ns.

Layout of a record: one byte of type, eight of length, the content; values are little-endian.
Source: MCAP file format specification, version 0.
"""

from __future__ import annotations

import heapq
import importlib
import io
import re
import struct
import sys
import zlib
from array import array
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from operator import itemgetter
from pathlib import Path
from typing import BinaryIO, NamedTuple

from longreach_dynamics.errors import InputError

from ._topics import Message, Topic, topic_of

MAGIC = b'\x89MCAP0\r\n'

_HEADER, _FOOTER, _SCHEMA, _CHANNEL, _MESSAGE, _CHUNK, _INDEX, _DATA_END = 1, 2, 3, 4, 5, 6, 7, 15
_DEFINITIONS = (_HEADER, _SCHEMA, _CHANNEL)
RECORD = struct.Struct('<BQ')
_MESSAGE_HEAD = struct.Struct('<HIQQ')
_CHUNK_HEAD = struct.Struct('<QQQI')
_INDEX_HEAD = struct.Struct('<HI')
_INDEX_ENTRY = 16
_FOOTER_CONTENT = struct.Struct('<QQI')
# Bytes from the start of the footer to its checksum, and to the end of the file.
FOOTER_CHECKED = RECORD.size + 16
FOOTER_TO_END = RECORD.size + _FOOTER_CONTENT.size + len(MAGIC)
# Lengths of the records that end the messages: a wrong match would lose all messages after it.
DATA_END_SIZE = 4
_ENDS = {_FOOTER: _FOOTER_CONTENT.size, _DATA_END: DATA_END_SIZE}
_COMPRESSIONS = ('', 'lz4', 'zstd')
_DATA, _SUMMARY = 'data section', 'summary'
# Number of bad chunks that are described.
_NAMED = 3

# Possible start of a record after damage: a type whose content can be checked (the other types are
# not needed), and a length below 2^40.
_CANDIDATE = re.compile(rb'(?=[\x01\x03-\x07\x0f].{5}\x00\x00\x00)', re.DOTALL)
# Number of bytes that are searched at a time for the next record, and approximate size of the
# blocks in which messages outside of chunks are read back.
_WINDOW = _BLOCK_SIZE = 1 << 20


@dataclass
class _Block:
    """
    Part of the file with messages: the stored data of a chunk, or plain records.

    ``places`` are the positions of the messages' records in the data after decompression.
    """

    offset: int
    stored_size: int
    size: int
    compression: str = ''
    checksum: int = 0
    times: tuple[int, int] = (0, 0)
    places: array[int] = field(default_factory=lambda: array('Q'))


class _BadChunk(NamedTuple):
    """A chunk whose checksum does not match: its place, times, and messages by channel."""

    offset: int
    times: tuple[int, int]
    counts: dict[int, int]


class _Channel(NamedTuple):
    """A topic of the file, and the number of its schema."""

    topic: str
    schema: int
    serialization: str
    qos: str


class _UnreadableError(Exception):
    """The content of a record does not match its type."""


class McapSource:
    """The intact records of an MCAP file, which may be not closed, truncated, or damaged."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._profile: str | None = None
        self._schemas: dict[int, tuple[str, str, str]] = {}
        self._channels: dict[int, _Channel] = {}
        self._counts: dict[int, int] = {}
        self._times: tuple[int, int] | None = None
        # Start and end of the parts without records, in bytes from the start of the file.
        self._lost: list[tuple[int, int]] = []
        self._bad_chunks: list[_BadChunk] = []
        self._bad: _BadChunk | None = None
        self._checked_sections: list[str] = []
        self._bad_sections: list[str] = []
        self._chunks = self._checked_chunks = 0
        self._blocks: list[_Block] = []
        self._plain = _Block(-1, 0, 0)
        with path.open('rb') as file:
            self._scan(file)
        # If the header is damaged, use the encoding of the messages.
        cdr = any(channel.serialization == 'cdr' for channel in self._channels.values())
        if self._profile != 'ros2' and not (self._profile is None and cdr):
            raise InputError(
                f'{path}: truncated before its first record, or not a recording of ROS 2'
            )
        # A channel without type cannot be read.
        self._topics = {n: c.topic for n, c in self._channels.items() if c.schema in self._schemas}
        self.topics = [self._topic(number) for number in self._topics]
        self.start_time, self.end_time = self._times or (0, 0)
        self.damage = list(filter(None, [self._describe_damage()]))
        self.checksums = self._describe_checksums()

    def _topic(self, number: int) -> Topic:
        """Return the topic of a channel."""
        channel = self._channels[number]
        typename, encoding, definition = self._schemas[channel.schema]
        count = self._counts.get(number, 0)
        return topic_of(channel.topic, typename, count, encoding, definition, channel.qos)

    def messages(self, names: Collection[str], start: int) -> Iterator[Message]:
        """Yield messages of some topics from a time on, in the order of time, then of the file."""
        # Memory holds only the blocks that overlap in time.
        waiting: list[tuple[int, int, str, bytes]] = []
        order = 0
        with self._path.open('rb') as file:
            for block in sorted(self._blocks, key=lambda block: block.times):
                while waiting and waiting[0][0] < block.times[0]:
                    time, _, topic, data = heapq.heappop(waiting)
                    yield topic, time, data
                content = _load(file, block)
                for place in block.places:
                    _, length = RECORD.unpack_from(content, place)
                    begin = place + RECORD.size
                    channel, _, time, _ = _MESSAGE_HEAD.unpack_from(content, begin)
                    topic = self._topics.get(channel, '')
                    if time >= start and topic in names:
                        data = content[begin + _MESSAGE_HEAD.size : begin + length]
                        heapq.heappush(waiting, (time, order, topic, data))
                    order += 1
        for time, _, topic, data in sorted(waiting, key=itemgetter(0, 1)):
            yield topic, time, data

    def _describe_damage(self) -> str:
        """Return what is damaged, empty for an intact file."""
        name, parts = self._path.name, []
        if self._lost:
            size = sum(end - begin for begin, end in self._lost)
            parts.append(f'{size} bytes of {name}, the first at byte {self._lost[0][0]}')
        for offset, times, counts in self._bad_chunks[:_NAMED]:
            found = [f'{n} {self._topics[k]}' for k, n in counts.items() if k in self._topics]
            first, last = (time * 1e-9 for time in times)
            parts.append(
                f'chunk at byte {offset} of {name} ({first:.13g} s to {last:.13g} s;'
                f' {", ".join(found) or "topics unknown"}): its checksum does not match'
            )
        if len(self._bad_chunks) > _NAMED:
            parts.append(f'{len(self._bad_chunks) - _NAMED} more chunks')
        # The checksum of the data section covers the chunks and all bytes between them.
        if _DATA in self._bad_sections and not parts:
            parts.append(f'{name} outside its chunks: the checksum of its data does not match')
        if _SUMMARY in self._bad_sections:
            parts.append(f'summary of {name}: its checksum does not match')
        return '; '.join(parts)

    def _describe_checksums(self) -> str:
        """Return which checksums the file has."""
        sections = ', '.join(self._checked_sections)
        if self._checked_chunks:
            chunks = f'{self._checked_chunks} of {self._chunks} chunks'
            return f'checksums of {", ".join([chunks, *self._checked_sections])}'
        if self._blocks:
            return 'no checksums of messages' + (f' but of {sections}' if sections else '')
        return f'checksums of {sections}' if sections else 'no checksums'

    # --- scan --------------------------------------------------------------------------------

    def _scan(self, file: BinaryIO) -> None:
        """Find the readable part of the file."""
        size = file.seek(0, 2)
        if _read(file, 0, len(MAGIC)) != MAGIC:
            raise InputError(
                f'{self._path}: {"an empty file" if size == 0 else "not an MCAP file"}; '
                'expected a file written by longreach bag record or ros2 bag record'
            )
        self._read_summary(file, size)
        for kind, begin, length in self._records(file, len(MAGIC), size, self._lost):
            if kind in (_FOOTER, _DATA_END):
                self._end_data(file, begin, kind)
                break
            if kind == _INDEX and self._bad is not None:
                number, entries = _INDEX_HEAD.unpack(_read(file, begin, _INDEX_HEAD.size))
                self._bad.counts.setdefault(number, entries // _INDEX_ENTRY)
            elif kind == _CHUNK:
                self._add_chunk(file, begin, length)
            elif kind == _MESSAGE:
                self._add_message(file, begin, length)

    def _records(
        self, file: BinaryIO, begin: int, end: int, lost: list[tuple[int, int]]
    ) -> Iterator[tuple[int, int, int]]:
        """Yield type, position of the content, and its length for each intact record."""
        position = begin
        record = self._sound(file, position, end)
        while position < end:
            if record is None:
                behind = self._next(file, position + 1, end, end)
                lost.append((position, behind))
                position, record = behind, self._sound(file, behind, end)
                continue
            kind, length = record
            content, behind = position + RECORD.size, position + RECORD.size + length
            if kind in _DEFINITIONS:
                self._define(kind, _read(file, content, length))
            following = self._sound(file, behind, end)
            if following is None and behind < end and kind == _MESSAGE:
                # Either the damage starts after this message, or its length is wrong.
                inner = self._next(file, position + 1, behind, end)
                if inner < behind:
                    lost.append((position, inner))
                    position, record = inner, self._sound(file, inner, end)
                    continue
            yield kind, content, length
            position, record = behind, following

    def _read_summary(self, file: BinaryIO, size: int) -> None:
        """Read the definitions that a closed file repeats at its end."""
        footer = size - FOOTER_TO_END
        mark = RECORD.pack(_FOOTER, _FOOTER_CONTENT.size)
        if footer < 0 or _read(file, footer, RECORD.size) != mark:
            return
        start, _, checksum = read_footer(file, footer)
        if checksum:
            self._checked_sections.append(_SUMMARY)
            if _summary_fault(file, footer):
                self._bad_sections.append(_SUMMARY)
                return
        if start:
            for _ in self._records(file, start, footer, self._lost):
                pass

    def _end_data(self, file: BinaryIO, content: int, kind: int) -> None:
        """Check the data section, which ends with the record of this kind and content."""
        # Without its end a data section cannot be checked, and the end is damaged.
        expected = 0 if kind == _FOOTER else int.from_bytes(_read(file, content, 4), 'little')
        if expected:
            self._checked_sections.insert(0, _DATA)
        if kind == _FOOTER or expected not in (0, checksum_of(file, 0, content - RECORD.size)):
            self._bad_sections.insert(0, _DATA)

    def _add_message(self, file: BinaryIO, content: int, length: int) -> None:
        """Add a message outside of chunks, whose content is at a position of the file."""
        begin, end = content - RECORD.size, content + length
        channel, _, time, _ = _MESSAGE_HEAD.unpack(_read(file, content, _MESSAGE_HEAD.size))
        self._count(channel, time)
        plain = self._plain
        if begin != plain.offset + plain.size or plain.size > _BLOCK_SIZE:
            plain = self._plain = _Block(begin, 0, 0, times=(time, time))
            self._blocks.append(plain)
        plain.places.append(begin - plain.offset)
        plain.size = plain.stored_size = end - plain.offset
        plain.times = (min(time, plain.times[0]), max(time, plain.times[1]))

    def _add_chunk(self, file: BinaryIO, begin: int, length: int) -> None:
        """Add a chunk whose content is at a position of the file."""
        start, end, size, checksum = _CHUNK_HEAD.unpack(_read(file, begin, _CHUNK_HEAD.size))
        fields = _Fields(_read(file, begin + _CHUNK_HEAD.size, min(length, 64)))
        compression, stored_size = fields.text(), fields.number('<Q')
        offset = begin + _CHUNK_HEAD.size + fields.position
        block = _Block(offset, stored_size, size, compression, checksum)
        self._bad = None
        self._chunks += 1
        self._checked_chunks += bool(checksum)
        try:
            data = _load(file, block)
        except _UnreadableError:
            if checksum:
                self._bad = _BadChunk(begin - RECORD.size, (start, end), {})
                self._bad_chunks.append(self._bad)
            elif compression:
                self._lost.append((begin, begin + length))
            if compression:
                return
            # Without a checksum, read message by message; else, only the definitions.
            data = _read(file, offset, stored_size)
            block = _Block(offset, stored_size, stored_size)
        lost: list[tuple[int, int]] = []
        found = []
        for kind, content, size in self._records(io.BytesIO(data), 0, len(data), lost):
            if kind == _MESSAGE:
                channel, _, time, _ = _MESSAGE_HEAD.unpack_from(data, content)
                found.append((channel, time, content - RECORD.size, content + size))
        if self._bad is not None:
            return
        if not checksum:
            # Times outside the chunk's range are damaged, or the range is if most are outside.
            within = [item for item in found if start <= item[1] <= end]
            if 2 * len(within) >= len(found):
                lost += [item[2:] for item in found if not start <= item[1] <= end]
                found = within
        for channel, time, place, _ in found:
            self._count(channel, time)
            block.places.append(place)
        if found:
            block.times = (min(item[1] for item in found), max(item[1] for item in found))
            self._blocks.append(block)
        if lost and compression:
            lost = [(0, stored_size)]
        self._lost += [(offset + first, offset + last) for first, last in lost]

    def _count(self, channel: int, time: int) -> None:
        """Count a message of a channel whose definition is known."""
        first, last = self._times or (time, time)
        self._times = (min(first, time), max(last, time))
        self._counts[channel] = self._counts.get(channel, 0) + 1

    def _sound(self, file: BinaryIO, position: int, end: int) -> tuple[int, int] | None:
        """Return type and length of a record confirmed by its content, or None."""
        head = _read(file, position, RECORD.size + _CHUNK_HEAD.size + 32)
        if len(head) < RECORD.size or position + RECORD.size > end:
            return None
        kind, length = RECORD.unpack_from(head)
        behind = position + RECORD.size + length
        if not _HEADER <= kind <= _DATA_END or behind > end:
            return None
        fields = _Fields(head[RECORD.size :])
        try:
            if kind == _MESSAGE:
                sound = fields.numbers(_MESSAGE_HEAD)[0] in self._channels
                sound = sound and length >= _MESSAGE_HEAD.size
            elif kind == _CHUNK:
                fields.numbers(_CHUNK_HEAD)
                sound = fields.text() in _COMPRESSIONS
                sound = sound and fields.number('<Q') + fields.position == length
            elif kind == _INDEX:
                size = fields.numbers(_INDEX_HEAD)[1]
                sound = size + _INDEX_HEAD.size == length and size % _INDEX_ENTRY == 0
            elif kind in _DEFINITIONS:
                sound = self._define(kind, _read(file, position + RECORD.size, length), dry=True)
            else:
                # The content of other types is not used: check the following record.
                after = _read(file, behind, 1)
                sound = behind == end or _HEADER <= after[0] <= _DATA_END
                sound = sound and length == _ENDS.get(kind, length)
        except _UnreadableError:
            return None
        return (kind, length) if sound else None

    def _next(self, file: BinaryIO, begin: int, limit: int, end: int) -> int:
        """Return the start of two intact records, or of the last one; the limit if none."""
        while begin < limit:
            window = _read(file, begin, min(_WINDOW, limit + RECORD.size - begin))
            for match in _CANDIDATE.finditer(window):
                position = begin + match.start()
                record = self._sound(file, position, end) if position < limit else None
                if record is not None:
                    behind = position + RECORD.size + record[1]
                    if behind == end or self._sound(file, behind, end) is not None:
                        return position
            if len(window) < _WINDOW:
                break
            begin += len(window) - RECORD.size
        return limit

    def _define(self, kind: int, content: bytes, dry: bool = False) -> bool:
        """Read a header, schema or channel record; return whether its fields fill it."""
        fields = _Fields(content)
        if kind == _HEADER:
            profile, _ = fields.text(), fields.text()
            if not dry:
                self._profile = profile
        elif kind == _SCHEMA:
            number = fields.number('<H')
            texts = fields.text(), fields.text(), fields.text()
            if not dry:
                self._schemas.setdefault(number, texts)
        else:
            number, schema = fields.number('<H'), fields.number('<H')
            topic, serialization = fields.text(), fields.text()
            metadata = _Fields(fields.block())
            pairs = {}
            while metadata.left:
                key = metadata.text()
                pairs[key] = metadata.text()
            if not dry:
                qos = pairs.get('offered_qos_profiles', '')
                channel = _Channel(topic, schema, serialization, qos)
                self._channels.setdefault(number, channel)
        return not fields.left


class _Fields:
    """Reads the fields of a record in turn; raises if the record is too short."""

    def __init__(self, content: bytes) -> None:
        self._content = content
        self.position = 0

    @property
    def left(self) -> int:
        """Number of bytes not yet read."""
        return len(self._content) - self.position

    def take(self, size: int) -> bytes:
        """Return the next bytes."""
        if size > self.left:
            raise _UnreadableError
        self.position += size
        return self._content[self.position - size : self.position]

    def numbers(self, layout: struct.Struct) -> tuple[int, ...]:
        """Return values of a layout."""
        return layout.unpack(self.take(layout.size))

    def number(self, layout: str) -> int:
        """Return one value."""
        return self.numbers(struct.Struct(layout))[0]

    def block(self) -> bytes:
        """Return a block of bytes with a length prefix."""
        return self.take(self.number('<I'))

    def text(self) -> str:
        """Return a string with a length prefix."""
        try:
            return self.block().decode()
        except UnicodeDecodeError as error:
            raise _UnreadableError from error


def fault_at_end(path: Path) -> str:
    """Return why the end of an MCAP file, by which it is read, cannot be used; empty if it can."""
    with path.open('rb') as file:
        footer = file.seek(0, 2) - FOOTER_TO_END
        if footer < len(MAGIC) or _read(file, footer + FOOTER_TO_END - len(MAGIC), 8) != MAGIC:
            return 'truncated, its end is missing'
        return 'the checksum of its summary does not match' * _summary_fault(file, footer)


def read_footer(file: BinaryIO, footer: int) -> tuple[int, int, int]:
    """Return start of the summary (0: none), start of its offsets, and its checksum (0: none)."""
    start, offsets, checksum = _FOOTER_CONTENT.unpack(_read(file, footer + RECORD.size, 20))
    return start, offsets, checksum


def _summary_fault(file: BinaryIO, footer: int) -> bool:
    """Return whether a closed file's summary has a checksum that does not match."""
    start, _, expected = read_footer(file, footer)
    begin = min(start or footer, footer)
    return expected not in (0, expected and checksum_of(file, begin, footer + FOOTER_CHECKED))


def checksum_of(file: BinaryIO, begin: int, end: int, checksum: int = 0) -> int:
    """Return the CRC-32 of a part of a file, continued from that of the bytes before."""
    file.seek(begin)
    while begin < end and (data := file.read(min(_BLOCK_SIZE, end - begin))):
        checksum = zlib.crc32(data, checksum)
        begin += len(data)
    return checksum


def _read(file: BinaryIO, position: int, size: int) -> bytes:
    """Return bytes of a file; fewer at its end."""
    file.seek(position)
    return file.read(size)


def _load(file: BinaryIO, block: _Block) -> bytes:
    """Return the records of a block."""
    data = _read(file, block.offset, block.stored_size)
    # The libraries come with rosbags.
    if block.compression == 'zstd':
        modern = sys.version_info >= (3, 14)
        library = importlib.import_module('compression.zstd' if modern else 'backports.zstd')
        failure: type[Exception] = library.ZstdError
    elif block.compression == 'lz4':
        library, failure = importlib.import_module('lz4.frame'), RuntimeError
    try:
        data = bytes(library.decompress(data)) if block.compression else data
    except failure as error:
        raise _UnreadableError from error
    if len(data) != block.size or (block.checksum and zlib.crc32(data) != block.checksum):
        raise _UnreadableError
    return data
