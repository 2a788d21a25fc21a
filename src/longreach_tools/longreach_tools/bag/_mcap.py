"""
MCAP files by rosbags, with the checksums that it leaves out, also those that are damaged.

Layout of a record: one byte of type, eight of length, the content; values are little-endian.
Source: MCAP file format specification, version 0.
"""

from __future__ import annotations

import contextlib
import io
import struct
import zlib
from collections import Counter
from collections.abc import Collection, Generator
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from rosbags.rosbag2 import ReaderError
from rosbags.rosbag2.storage_mcap import (
    MAXSIZE,
    ChunkInfo,
    McapReader,
    McapWriter,
    msgsrc,
    read_sized,
    read_string,
)

from longreach_dynamics.errors import InputError

if TYPE_CHECKING:
    from rosbags.rosbag2 import CompressionMode

_MAGIC = b'\x89MCAP0\r\n'
_FOOTER, _SCHEMA, _CHANNEL, _MESSAGE, _CHUNK, _INDEX, _DATA_END = 2, 3, 4, 5, 6, 7, 15
# Records of the data section, with header, attachments and metadata.
_OF_DATA = (1, _SCHEMA, _CHANNEL, _MESSAGE, _CHUNK, _INDEX, 9, 12)
_RECORD = struct.Struct('<BQ')
_INDEX_HEAD = struct.Struct('<BQHI')
_MESSAGE_HEAD = struct.Struct('<BQHIQQ')
_CHUNK_HEAD = struct.Struct('<BQQQQI')
_DATA_END_RECORD = struct.Struct('<BQI')
_FOOTER_CONTENT = struct.Struct('<QQI')
# Bytes from the start of the footer to its checksum, and to the end of the file.
_FOOTER_CHECKED = _RECORD.size + 16
_FOOTER_TO_END = _RECORD.size + _FOOTER_CONTENT.size + len(_MAGIC)
# Bytes of a chunk's record before its checksum.
_TO_CHECKSUM = _RECORD.size + 24
_PROFILE = b'\x04\x00\x00\x00ros2'
# Number of bytes that are read at a time.
_WINDOW = 1 << 16


def open_mcap(path: Path, check: bool) -> McapReader:
    """Return an open reader: by the index where that serves, of what is intact otherwise."""
    if not check and not fault_at_end(path):
        reader = McapReader(path)
        reader.open()
        # It leaves out messages that no index counts, and refuses those that are not in order.
        if reader.chunks and all(
            one.channel_count or one.message_start_time > one.message_end_time
            for one in reader.chunks
        ):
            return reader
        reader.close()
    intact = IntactMcap(path)
    intact.open()
    return intact


class IntactMcap(McapReader):
    """
    Reads what is intact; ``damage`` says what is left out, '' for nothing.

    By a summary that is intact, otherwise record by record up to the first that is broken. A
    damaged chunk is left out as a whole: nothing says which of its messages are wrong.
    """

    damage = checksums = ''

    def _open(self) -> None:
        assert self.bio is not None
        file, damage = self.bio, []
        # Of messages that are not in chunks: time, begin of the content and size, channel.
        self._single: list[tuple[int, int, int, int]] = []
        ending = _ending(file)
        if ending and ending[2]:
            self.data_end = ending[0]
            self.read_index()
        spans = [
            (c.chunk_start_offset, c.chunk_start_offset + c.chunk_length) for c in self.chunks
        ]
        if not spans:
            spans, lost = self._scan(file)
            if lost:
                damage.append(f'the last {lost} bytes')
        self.chunks.clear()
        self._unchecked = 0
        bad = [begin for begin, end in spans if not self._add(file, begin, end)]
        if bad:
            first, last = struct.unpack('<QQ', _read(file, bad[0] + _RECORD.size, 16))
            damage.append(
                f'{len(bad)} of {len(spans)} chunks, the first at byte {bad[0]}'
                f' ({first * 1e-9:.13g} s to {last * 1e-9:.13g} s)'
            )
        if ending and not damage and _has_damaged_data(file, ending[0]):
            damage.append('bytes outside of its chunks')
        if ending and ending[2] is False:
            damage.append('its summary')
        if damage:
            self.damage = f'{Path(str(self.path)).name}: {", ".join(damage)}'
        checked = self.chunks and not self._unchecked
        self.checksums = 'checksums of messages' if checked else 'no checksums of messages'
        self._summarise()

    def _scan(self, file: BinaryIO) -> tuple[list[tuple[int, int]], int]:
        """Return begin and end of the chunks, and the number of bytes behind the last record."""
        spans: list[tuple[int, int]] = []
        begin, size = len(_MAGIC), file.seek(0, 2)
        if _read(file, begin + _RECORD.size, len(_PROFILE)) != _PROFILE:
            raise InputError(
                f'{self.path}: truncated before its first record, or not a recording of ROS 2'
            )
        while begin < size:
            head = _read(file, begin, _INDEX_HEAD.size).ljust(_INDEX_HEAD.size, b'\0')
            kind, length, _, entries = _INDEX_HEAD.unpack(head)
            end = begin + _RECORD.size + length
            if (kind, length) == (_DATA_END, 4):
                return spans, 0
            # A damaged kind must not pass for a record that has no messages.
            if kind not in _OF_DATA or end > size or (kind == _INDEX and length != entries + 6):
                break
            if kind == _MESSAGE:
                content = begin + _MESSAGE_HEAD.size
                if spans or content > end:
                    break
                *_, channel, _, time, _ = _MESSAGE_HEAD.unpack(_read(file, begin, content - begin))
                if channel not in self.channels:
                    break
                self._single.append((time, content, end - content, channel))
            elif kind == _CHUNK:
                spans.append((begin, end))
            elif kind in (_SCHEMA, _CHANNEL):
                self.data_start, self.data_end = begin, end
                try:
                    self.meta_scan()
                except (ReaderError, struct.error, ValueError):
                    break
            begin = end
        return spans, size - begin

    def _add(self, file: BinaryIO, begin: int, end: int) -> bool:
        """Add a chunk with its topics; return False if it is damaged."""
        self.data_start, self.data_end = begin, end
        # Readers that trust damaged bytes can raise any exception.
        with contextlib.suppress(Exception):
            self.meta_scan()
            found = self.statistics
            if found is None or found.chunk_count != 1:
                return False
            fields = io.BytesIO(_read(file, begin, end - begin))
            *_, size, checksum = _CHUNK_HEAD.unpack(fields.read(_CHUNK_HEAD.size))
            compression, stored = read_string(fields), read_sized(fields)
            chunk = ChunkInfo(
                found.start_time, found.end_time, begin, end - begin, {}, 0, compression,
                len(stored), size, found.channel_message_counts,
            )  # fmt: skip
            if not checksum:
                # This reads the messages, too, of which the one above looks at the heads.
                list(msgsrc(chunk, {}, 0, MAXSIZE, file))
                self._unchecked += 1
            if found.message_count:
                self.chunks.append(chunk)
            return True
        return False

    def _summarise(self) -> None:
        """Count the messages."""
        self.data_start = self.data_end = 0
        self._single.sort()
        counts = Counter(channel for *_, channel in self._single)
        for chunk in self.chunks:
            counts.update(chunk.channel_count)
        first, last = (self._single[0][0], self._single[-1][0]) if self._single else (0, -1)
        types = {schema.name for schema in self.schemas.values()}
        self.connections = [
            one._replace(msgcount=counts[one.id])
            for one in self.connections
            if one.msgtype in types
        ]
        self.metadata = self.metadata._replace(
            message_count=sum(one.msgcount for one in self.connections),
            start_time=min((one.message_start_time for one in self.chunks), default=first),
            end_time=max((one.message_end_time for one in self.chunks), default=last) + 1,
        )

    def messages(
        self, connections: Collection[Any], start: int | None = None, stop: int | None = None
    ) -> Generator[tuple[Any, int, bytes], None, None]:
        """Yield connection, time [ns] and bytes of messages in the order of time."""
        if self.chunks:
            yield from super().messages(connections, start, stop)
        assert self.bio is not None
        wanted = {one.id: one for one in connections}
        for time, begin, size, channel in self._single:
            if channel in wanted and (start or 0) <= time < (stop or MAXSIZE):
                yield wanted[channel], time, _read(self.bio, begin, size)


# --- checksums ------------------------------------------------------------------------------


def fault_at_end(path: Path) -> str:
    """Return why the end of an MCAP file, by which it is read, cannot be used; empty if it can."""
    with path.open('rb') as file:
        ending = _ending(file)
        if ending is None:
            return 'truncated, its end is missing'
        return 'the checksum of its summary does not match' * (ending[2] is False)


def _ending(file: BinaryIO) -> tuple[int, int, bool | None] | None:
    """Return starts of summary and footer of a closed file, and if its checksum (if any) fits."""
    footer = file.seek(0, 2) - _FOOTER_TO_END
    content = _read(file, footer, _FOOTER_TO_END) if footer > 0 else b''
    mark = _RECORD.pack(_FOOTER, _FOOTER_CONTENT.size)
    if not (content.startswith(mark) and content.endswith(_MAGIC)):
        return None
    start, _, checksum = _FOOTER_CONTENT.unpack_from(content, _RECORD.size)
    start = min(start or footer, footer)
    if not checksum:
        return start, footer, None
    return start, footer, checksum == _checksum(file, start, footer + _FOOTER_CHECKED)


def _has_damaged_data(file: BinaryIO, summary: int) -> bool:
    """Return whether a closed file's data section has a checksum that does not match."""
    begin = summary - _DATA_END_RECORD.size
    kind, length, checksum = _DATA_END_RECORD.unpack(_read(file, begin, _DATA_END_RECORD.size))
    if (kind, length) != (_DATA_END, 4):
        return True
    return bool(checksum) and checksum != _checksum(file, 0, begin)


def _checksum(file: BinaryIO, begin: int, end: int, checksum: int = 0) -> int:
    """Return the CRC-32 of a part of a file, continued from that of the bytes before."""
    file.seek(begin)
    while begin < end and (data := file.read(min(_WINDOW, end - begin))):
        checksum = zlib.crc32(data, checksum)
        begin += len(data)
    return checksum


def _read(file: BinaryIO, offset: int, size: int) -> bytes:
    """Return bytes of a file; fewer at its end."""
    file.seek(offset)
    return file.read(size)


class CheckedMcapWriter(McapWriter):
    """Writes the checksums of chunks, data section and summary."""

    # Of the bytes before the end of the last chunk.
    _checksum = 0
    _counted = 0

    def __init__(self, path: Path, compression: CompressionMode) -> None:
        super().__init__(path, compression)
        # As in rosbag2, which ``ros2 bag reindex`` requires.
        self.path = self.path.rename(path / f'{path.name}_0.mcap')

    def close_chunk(self) -> None:
        """Write the chunk and its indexes, then its checksum."""
        begin, checksum = self.bio.tell(), zlib.crc32(self.chunk.bio.getbuffer())
        super().close_chunk()
        self.bio.flush()
        # A second time: the file is open for writing only.
        with self.path.open('r+b') as file:
            file.seek(begin + _TO_CHECKSUM)
            file.write(checksum.to_bytes(4, 'little'))
            end = file.seek(0, 2)
            self._checksum = _checksum(file, self._counted, end, self._checksum)
            self._counted = end

    def close(self, version: int, metadata: str) -> None:
        """Write index and metadata, then the other checksums."""
        super().close(version, of_ros(metadata))
        with self.path.open('r+b') as file:
            ending = _ending(file)
            assert ending is not None
            start, footer, _ = ending
            data_end = start - _DATA_END_RECORD.size
            checksum = _checksum(file, self._counted, data_end, self._checksum)
            file.seek(data_end + _RECORD.size)
            file.write(checksum.to_bytes(4, 'little'))
            checksum = _checksum(file, start, footer + _FOOTER_CHECKED)
            file.seek(footer + _FOOTER_CHECKED)
            file.write(checksum.to_bytes(4, 'little'))


def of_ros(metadata: str) -> str:
    """Return metadata with a distribution, by which rosbag2 chooses a format, for rosbags."""
    return metadata.replace('ros_distro: rosbags', 'ros_distro: jazzy')
