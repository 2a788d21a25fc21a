"""MCAP files with checksums, by the writer of rosbags, which leaves them out."""

from __future__ import annotations

import zlib
from pathlib import Path
from typing import TYPE_CHECKING

from rosbags.rosbag2.storage_mcap import McapWriter

from ._mcap import DATA_END_SIZE, FOOTER_CHECKED, FOOTER_TO_END, RECORD, checksum_of, read_footer

if TYPE_CHECKING:
    from rosbags.interfaces import Connection

# Size of a chunk [bytes]: it is lost as a whole if its checksum does not match.
_CHUNK_SIZE = 1 << 16

# Bytes of a chunk's record before its checksum.
_TO_CHECKSUM = 33


class CheckedMcapWriter(McapWriter):
    """Writes the checksums of chunks, data section and summary, as in the MCAP specification."""

    # Of the bytes before the end of the last chunk.
    _checksum = 0
    _counted = 0

    def write(self, connection: Connection, timestamp: int, data: bytes | memoryview) -> None:
        """Write a message; close the chunk when it is large enough."""
        super().write(connection, timestamp, data)
        if self.chunk.bio.tell() > _CHUNK_SIZE:
            self.close_chunk()

    def close_chunk(self) -> None:
        """Write the chunk and its indexes, then its checksum."""
        begin, checksum = self.bio.tell(), zlib.crc32(self.chunk.bio.getbuffer())
        super().close_chunk()
        self.bio.flush()
        # A second time: the file is open for writing only.
        with self.path.open('r+b') as file:
            file.seek(begin + _TO_CHECKSUM)
            file.write(checksum.to_bytes(4, 'little'))
            file.seek(self._counted)
            self._checksum = zlib.crc32(file.read(), self._checksum)
            self._counted = file.tell()

    def close(self, version: int, metadata: str) -> None:
        """Write index and metadata, then the other checksums."""
        super().close(version, metadata)
        _write_checksums(self.path, self._checksum, self._counted)


def _write_checksums(path: Path, data_checksum: int, counted: int) -> None:
    """
    Write the checksums of data section and summary into a file that was closed without.

    ``data_checksum`` is that of the first ``counted`` bytes.
    """
    with path.open('r+b') as file:
        footer = file.seek(0, 2) - FOOTER_TO_END
        start, *_ = read_footer(file, footer)
        data_end = start - RECORD.size - DATA_END_SIZE
        checksum = checksum_of(file, counted, data_end, data_checksum)
        file.seek(data_end + RECORD.size)
        file.write(checksum.to_bytes(4, 'little'))
        checksum = checksum_of(file, start, footer + FOOTER_CHECKED)
        file.seek(footer + FOOTER_CHECKED)
        file.write(checksum.to_bytes(4, 'little'))
