"""Write rosbag2 recordings in mcap (metadata version 9) by rosbags, whole chunks at each flush."""

from __future__ import annotations

import contextlib
import shutil
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from longreach_dynamics.errors import InputError, LongreachError

from ._reading import store_of
from ._storage import open_bag
from ._topics import definition_in

if TYPE_CHECKING:
    from rosbags.interfaces import Connection, Qos


class BagWriter:
    """
    A new recording, for use in a ``with`` statement.

    After an exception inside the ``with``, the files are left as by a killed recorder, for
    ``longreach bag recover``; without any message they are removed.

    Parameters
    ----------
    path : path
        New directory; it must not exist.
    compress : bool
        Compress with zstd.

    Raises
    ------
    InputError
        If the directory exists.
    LongreachError
        From any method, if writing fails.
    """

    def __init__(self, path: str | Path, *, compress: bool = False) -> None:
        from rosbags.rosbag2 import CompressionFormat, CompressionMode, StoragePlugin, Writer

        from ._mcap import CheckedMcapWriter

        self.path = Path(path)
        if self.path.exists():
            raise InputError(f'{path}: exists already; give the name of a new directory')
        self._writer: Any = Writer(self.path, version=9, storage_plugin=StoragePlugin.MCAP)
        self._writer.STORAGE_PLUGINS = {StoragePlugin.MCAP: CheckedMcapWriter}
        if compress:
            self._writer.set_compression(CompressionMode.STORAGE, CompressionFormat.ZSTD)
        self.message_count = 0
        try:
            self._writer.open()
            # From now on readers see a recording, without messages yet.
            self.flush()
        except (OSError, LongreachError):
            self.abort()
            raise

    def add_topic(
        self, name: str, typename: str, definition: str, type_hash: str, qos: Sequence[Qos]
    ) -> Connection:
        """Add a topic; returns the connection for :meth:`write`."""
        added: Connection = self._writer.add_connection(
            name, typename, msgdef=definition, rihs01=type_hash, offered_qos_profiles=qos
        )
        return added

    def write(self, connection: Connection, time: int, data: bytes) -> None:
        """Write a message's CDR bytes with its bag time [ns]."""
        with self._naming_failure():
            self._writer.write(connection, time, data)
        self.message_count += 1

    def flush(self) -> None:
        """Flush written data to the operating system."""
        storage = self._writer.storage
        with self._naming_failure():
            # A chunk without messages has no start time by which readers could sort it.
            if storage.chunk.msgs:
                storage.close_chunk()
            storage.bio.flush()

    def close(self) -> None:
        """Write the index and the metadata."""
        from ._mcap import of_ros

        metadata = self.path / 'metadata.yaml'
        try:
            with self._naming_failure():
                self._writer.close()
                metadata.write_text(of_ros(metadata.read_text('utf-8')), 'utf-8')
        except LongreachError:
            self.abort()
            raise

    def abort(self) -> None:
        """Close the file without index and metadata; remove a recording without messages."""
        # The reason is already known: ignore further write errors.
        with contextlib.suppress(OSError):
            self._writer.abort()
        if not self.message_count:
            # The directory could not be created.
            shutil.rmtree(self.path, ignore_errors=True)

    @contextlib.contextmanager
    def _naming_failure(self) -> Iterator[None]:
        """Raise LongreachError with a remedy for a write that fails."""
        try:
            yield
        except OSError as error:
            remedy = 'make room'
            if self.message_count:
                remedy += (
                    f', and save what was written: longreach bag recover {self.path} --out NEW'
                )
            raise LongreachError(f'{self.path}: writing failed: {error}; {remedy}') from error

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *details: object) -> None:
        if kind is None:
            self.close()
        else:
            self.abort()


def recover(
    path: str | Path, output: str | Path, say: Callable[[str], None] = lambda _: None
) -> int:
    """Write an intact recording of the readable part of any; return the number of messages."""
    with open_bag(path, check=True) as bag:
        if not bag.message_count:
            reason = f'{bag.problem}; ' if bag.problem else ''
            raise InputError(f'{path}: {reason}no readable message; nothing to recover')
        stores = store_of(bag, list(bag.topics), repair=True)
        unreadable = Counter[str]()
        unchecked = 'no checksums' in bag.checksums
        writer = BagWriter(output)
        try:
            with writer:
                connections = {
                    topic.name: writer.add_topic(
                        topic.name,
                        topic.typename,
                        *definition_in(stores[topic.name], topic.typename),
                        topic.qos,
                    )
                    for topic in bag.topics.values()
                }
                for name, time, data in bag.messages():
                    if unchecked:
                        try:
                            stores[name].deserialize_cdr(data, bag.topics[name].typename)
                        except InputError:
                            unreadable[name] += 1
                            continue
                    writer.write(connections[name], time, data)
        except BaseException as error:
            shutil.rmtree(output, ignore_errors=True)
            if isinstance(error.__cause__, OSError):
                # Of this recording nothing is left to recover.
                raise LongreachError(
                    f'{output}: writing failed: {error.__cause__}; make room'
                ) from error
            raise
        if bag.problem:
            say(f'{path}: {bag.problem}')
        if unchecked:
            say(f'{path}: {bag.checksums}; a changed bit in a message is not noticed')
        for name, count in unreadable.items():
            say(f'{path}: {count} more messages of {name} are damaged and were skipped')
        return writer.message_count
