"""
Read the intact records of an MCAP file that was not closed, is truncated, or is damaged.

The records are scanned from the start. Where bytes do not form a record, the scan continues at the
next ones that do; a chunk with a damaged header, or a truncated one, is read message by message if
it is not compressed. The file is not changed. Only files as written by rosbag2 are supported:
profile ``ros2``, and chunks without compression, with lz4 or with zstd.

Layout of a record: one byte of type, eight of length, the content; values are little-endian.
Source: MCAP file format specification, version 0.
"""

from __future__ import annotations

import dataclasses
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
from typing import BinaryIO

from longreach_dynamics.errors import InputError

__all__ = ['MAGIC', 'BrokenMcap', 'Channel', 'is_whole', 'read_broken']

MAGIC = b'\x89MCAP0\r\n'

_HEADER, _FOOTER, _SCHEMA, _CHANNEL, _MESSAGE, _CHUNK, _INDEX, _DATA_END = 1, 2, 3, 4, 5, 6, 7, 15
_DEFINITIONS = (_HEADER, _SCHEMA, _CHANNEL)
_RECORD = struct.Struct('<BQ')
_MESSAGE_HEAD = struct.Struct('<HIQQ')
_CHUNK_HEAD = struct.Struct('<QQQI')
_INDEX_HEAD = struct.Struct('<HI')
_INDEX_ENTRY = 16
_FOOTER_CONTENT = struct.Struct('<QQI')
# Lengths of the records that end the messages: a wrong match would lose all messages after it.
_ENDS = {_FOOTER: _FOOTER_CONTENT.size, _DATA_END: 4}
_COMPRESSIONS = ('', 'lz4', 'zstd')

# Possible start of a record after damage: a type whose content can be checked (the other types are
# not needed), and a length below 2^40.
_CANDIDATE = re.compile(rb'(?=[\x01\x03-\x07\x0f].{5}\x00\x00\x00)', re.DOTALL)
# Number of bytes that are searched at a time for the next record.
_WINDOW = 1 << 20
# Approximate size of the blocks in which messages outside of chunks are read back [bytes].
_BLOCK_SIZE = 1 << 20


@dataclass
class Channel:
    """A topic of the file: type, definition, and number of intact messages."""

    topic: str
    schema: int
    serialization: str
    offered_qos_profiles: str
    typename: str = ''
    definition_encoding: str = ''
    definition: str = ''
    count: int = 0


@dataclass(frozen=True)
class _Block:
    """
    Part of the file with messages: the stored data of a chunk, or plain records.

    ``places`` are the positions of the messages' records in the data after decompression.
    """

    offset: int
    stored_size: int
    size: int
    compression: str
    checksum: int = 0
    times: tuple[int, int] = (0, 0)
    places: array[int] = field(default_factory=lambda: array('Q'))


@dataclass
class BrokenMcap:
    """
    The readable part of an MCAP file.

    Attributes
    ----------
    path : Path
        The file.
    channels : dict
        By the file's channel number.
    start_time, end_time : int
        Earliest and latest message [ns]; 0 without messages.
    lost : list of tuple of int
        Start and end of the damaged parts, in bytes from the start of the file.
    """

    path: Path
    channels: dict[int, Channel] = field(default_factory=dict)
    start_time: int = 0
    end_time: int = 0
    lost: list[tuple[int, int]] = field(default_factory=list)
    _blocks: list[_Block] = field(default_factory=list)

    def messages(self, channels: Collection[int]) -> Iterator[tuple[int, int, bytes]]:
        """
        Yield (channel number, time [ns], CDR bytes) in the order of time, then of the file.

        Memory holds only the blocks that overlap in time.
        """
        waiting: list[tuple[int, int, int, bytes]] = []
        order = 0
        with self.path.open('rb') as file:
            for block in sorted(self._blocks, key=lambda block: block.times):
                while waiting and waiting[0][0] < block.times[0]:
                    time, _, channel, data = heapq.heappop(waiting)
                    yield channel, time, data
                content = _load(file, block)
                for place in block.places:
                    _, length = _RECORD.unpack_from(content, place)
                    begin = place + _RECORD.size
                    channel, _, time, _ = _MESSAGE_HEAD.unpack_from(content, begin)
                    if channel in channels:
                        data = content[begin + _MESSAGE_HEAD.size : begin + length]
                        heapq.heappush(waiting, (time, order, channel, data))
                    order += 1
        for time, _, channel, data in sorted(waiting, key=itemgetter(0, 1)):
            yield channel, time, data


def is_whole(path: Path) -> bool:
    """Return whether a file has the first and last bytes of a closed MCAP file."""
    with path.open('rb') as file:
        if file.read(len(MAGIC)) != MAGIC:
            return False
        size = file.seek(0, 2)
        if size < 3 * len(MAGIC):
            return False
        file.seek(-len(MAGIC), 2)
        return file.read() == MAGIC


def read_broken(path: Path) -> BrokenMcap:
    """
    Find the readable part of an MCAP file.

    Raises
    ------
    InputError
        If it is not an MCAP file of ROS 2 or ends within its first record.
    """
    scan = _Scan(BrokenMcap(path))
    with path.open('rb') as file:
        size = file.seek(0, 2)
        file.seek(0)
        if file.read(len(MAGIC)) != MAGIC:
            raise InputError(
                f'{path}: {"an empty file" if size == 0 else "not an MCAP file"}; '
                'expected a file written by longreach bag record or ros2 bag record'
            )
        scan.read_summary(file, size)
        for kind, begin, length in scan.records(file, len(MAGIC), size, scan.result.lost):
            if kind in (_FOOTER, _DATA_END):
                break
            if kind == _CHUNK:
                scan.chunk(file, begin, length)
            elif kind == _MESSAGE:
                scan.message(file, begin, length)
    # If the header is damaged, use the encoding of the messages.
    cdr = any(channel.serialization == 'cdr' for channel in scan.result.channels.values())
    if scan.profile != 'ros2' and not (scan.profile is None and cdr):
        raise InputError(f'{path}: truncated before its first record, or not a recording of ROS 2')
    scan.finish()
    return scan.result


class _UnreadableError(Exception):
    """The content of a record does not match its type."""


class _Scan:
    """State of the scan through the records."""

    def __init__(self, result: BrokenMcap) -> None:
        self.result = result
        self.profile: str | None = None
        self._schemas: dict[int, tuple[str, str, str]] = {}
        self._counted = False
        self._plain = _Block(0, 0, 0, '')

    def records(
        self, file: BinaryIO, begin: int, end: int, lost: list[tuple[int, int]]
    ) -> Iterator[tuple[int, int, int]]:
        """
        Yield type, position of the content, and its length for each intact record.

        Parameters
        ----------
        file : file object
            The MCAP file, or the data of a chunk.
        begin, end : int
            The part to be scanned [bytes].
        lost : list
            Appended to: start and end of each part without intact records.
        """
        position = begin
        record = self._sound(file, position, end)
        while position < end:
            if record is None:
                behind = self._next(file, position + 1, end, end)
                lost.append((position, behind))
                position, record = behind, self._sound(file, behind, end)
                continue
            kind, length = record
            content, behind = position + _RECORD.size, position + _RECORD.size + length
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

    def read_summary(self, file: BinaryIO, size: int) -> None:
        """Read the definitions that a closed file repeats at its end."""
        footer = size - len(MAGIC) - _FOOTER_CONTENT.size - _RECORD.size
        if footer < 0 or _read(file, footer, _RECORD.size) != _RECORD.pack(
            _FOOTER, _FOOTER_CONTENT.size
        ):
            return
        start, _, _ = _FOOTER_CONTENT.unpack(_read(file, footer + _RECORD.size, 20))
        if start:
            for _ in self.records(file, start, footer, self.result.lost):
                pass

    def message(self, file: BinaryIO, content: int, length: int) -> None:
        """Add a message outside of chunks, whose content is at a position of the file."""
        begin, end = content - _RECORD.size, content + length
        channel, _, time, _ = _MESSAGE_HEAD.unpack(_read(file, content, _MESSAGE_HEAD.size))
        self._count(channel, time)
        plain = self._plain
        if begin != plain.offset + plain.size or plain.size > _BLOCK_SIZE:
            self.close_block()
            plain = _Block(begin, 0, 0, '', times=(time, time))
        plain.places.append(begin - plain.offset)
        size = end - plain.offset
        times = (min(time, plain.times[0]), max(time, plain.times[1]))
        self._plain = _Block(plain.offset, size, size, '', times=times, places=plain.places)

    def finish(self) -> None:
        """Assign types to the channels; a channel without type cannot be read."""
        self.close_block()
        channels = self.result.channels
        for number, channel in list(channels.items()):
            texts = self._schemas.get(channel.schema)
            if texts is None:
                del channels[number]
            else:
                channel.typename, channel.definition_encoding, channel.definition = texts

    def close_block(self) -> None:
        """End the current run of messages outside of chunks."""
        if self._plain.places:
            self.result._blocks.append(self._plain)
        self._plain = _Block(0, 0, 0, '')

    def chunk(self, file: BinaryIO, begin: int, length: int) -> None:
        """Add a chunk whose content is at a position of the file."""
        start, end, size, checksum = _CHUNK_HEAD.unpack(_read(file, begin, _CHUNK_HEAD.size))
        fields = _Fields(_read(file, begin + _CHUNK_HEAD.size, min(length, 64)))
        compression, stored_size = fields.text(), fields.number('<Q')
        offset = begin + _CHUNK_HEAD.size + fields.position
        block = _Block(offset, stored_size, size, compression, checksum)
        try:
            data = _load(file, block)
        except _UnreadableError:
            if compression:
                self.result.lost.append((begin, begin + length))
                return
            # If the checksum is wrong, read message by message.
            data = _read(file, offset, stored_size)
            block = _Block(offset, stored_size, stored_size, '')
        lost: list[tuple[int, int]] = []
        found = []
        for kind, content, size in self.records(io.BytesIO(data), 0, len(data), lost):
            if kind == _MESSAGE:
                channel, _, time, _ = _MESSAGE_HEAD.unpack_from(data, content)
                found.append((channel, time, content - _RECORD.size, content + size))
        # A time outside the chunk's range is damaged; or the range is, if the checksum confirms
        # the messages or most of them are outside.
        within = [item for item in found if start <= item[1] <= end]
        if not block.checksum and 2 * len(within) >= len(found):
            lost += [item[2:] for item in found if not start <= item[1] <= end]
            found = within
        for channel, time, place, _ in found:
            self._count(channel, time)
            block.places.append(place)
        if found:
            times = (min(item[1] for item in found), max(item[1] for item in found))
            self.result._blocks.append(dataclasses.replace(block, times=times))
        if lost and compression:
            lost = [(0, stored_size)]
        self.result.lost += [(offset + first, offset + last) for first, last in lost]

    def _count(self, channel: int, time: int) -> None:
        """Count a message of a channel whose definition is known."""
        result = self.result
        result.start_time = min(result.start_time, time) if self._counted else time
        result.end_time = max(result.end_time, time)
        result.channels[channel].count += 1
        self._counted = True

    def _sound(self, file: BinaryIO, position: int, end: int) -> tuple[int, int] | None:
        """Return type and length of a record confirmed by its content, or None."""
        head = _read(file, position, _RECORD.size + _CHUNK_HEAD.size + 32)
        if len(head) < _RECORD.size or position + _RECORD.size > end:
            return None
        kind, length = _RECORD.unpack_from(head)
        behind = position + _RECORD.size + length
        if not _HEADER <= kind <= _DATA_END or behind > end:
            return None
        fields = _Fields(head[_RECORD.size :])
        try:
            if kind == _MESSAGE:
                sound = fields.numbers(_MESSAGE_HEAD)[0] in self.result.channels
                sound = sound and length >= _MESSAGE_HEAD.size
            elif kind == _CHUNK:
                fields.numbers(_CHUNK_HEAD)
                sound = fields.text() in _COMPRESSIONS
                sound = sound and fields.number('<Q') + fields.position == length
            elif kind == _INDEX:
                size = fields.numbers(_INDEX_HEAD)[1]
                sound = size + _INDEX_HEAD.size == length and size % _INDEX_ENTRY == 0
            elif kind in _DEFINITIONS:
                sound = self._define(kind, _read(file, position + _RECORD.size, length), dry=True)
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
            window = _read(file, begin, min(_WINDOW, limit + _RECORD.size - begin))
            for match in _CANDIDATE.finditer(window):
                position = begin + match.start()
                record = self._sound(file, position, end) if position < limit else None
                if record is not None:
                    behind = position + _RECORD.size + record[1]
                    if behind == end or self._sound(file, behind, end) is not None:
                        return position
            if len(window) < _WINDOW:
                break
            begin += len(window) - _RECORD.size
        return limit

    def _define(self, kind: int, content: bytes, dry: bool = False) -> bool:
        """Read a header, schema or channel record; return whether its fields fill it."""
        fields = _Fields(content)
        if kind == _HEADER:
            profile, _ = fields.text(), fields.text()
            if not dry:
                self.profile = profile
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
                channel = Channel(topic, schema, serialization, qos)
                self.result.channels.setdefault(number, channel)
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
