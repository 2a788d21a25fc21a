"""
Write rosbag2 recordings (metadata version 9, as ROS 2 Jazzy does) by way of rosbags.

What is written reaches the file at each :meth:`BagWriter.flush`, so that a recorder that is killed
loses only what came after the last one. An MCAP file then consists of whole chunks, an SQLite file
of committed transactions.
"""

from __future__ import annotations

import contextlib
import shutil
import sqlite3
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from longreach_dynamics.errors import InputError, LongreachError

from ._reading import is_message, store_of
from ._storage import open_bag
from ._types import definition_in, need_rosbags

if TYPE_CHECKING:
    from rosbags.interfaces import Connection, Qos

__all__ = ['STORAGES', 'BagWriter', 'recover']

STORAGES = ('mcap', 'sqlite3')


class BagWriter:
    """
    A new recording; use it in a ``with`` statement.

    An error inside the ``with`` leaves the files as a killed recorder would, for
    ``longreach bag recover``; without any message in them they are removed.

    Parameters
    ----------
    path : path
        Directory to be made; it must not exist.
    storage : str
        ``mcap`` or ``sqlite3``.
    compress : bool
        Compress MCAP's chunks by zstd.
    notes : dict, optional
        Kept in the metadata as custom data.

    Raises
    ------
    InputError
        If the directory exists, or the storage does not fit.
    LongreachError
        From any method, if the disk refuses.
    """

    def __init__(
        self,
        path: str | Path,
        storage: str = 'mcap',
        *,
        compress: bool = False,
        notes: dict[str, str] | None = None,
    ) -> None:
        need_rosbags()
        from rosbags.rosbag2 import CompressionFormat, CompressionMode, StoragePlugin, Writer

        self.path = Path(path)
        if self.path.exists():
            raise InputError(f'{path}: exists already; give the name of a new directory')
        if storage not in STORAGES:
            raise InputError(f'storage {storage!r}; allowed: {", ".join(STORAGES)}')
        if compress and storage != 'mcap':
            raise InputError(f'compression with storage {storage}; it needs --storage mcap')
        self._writer = Writer(self.path, version=9, storage_plugin=StoragePlugin[storage.upper()])
        if compress:
            self._writer.set_compression(CompressionMode.STORAGE, CompressionFormat.ZSTD)
        for key, value in (notes or {}).items():
            self._writer.set_custom_data(key, value)
        self.message_count = 0
        try:
            self._writer.open()
            self._number_file()
            # From now on a reader beside this writer sees a recording, without messages yet.
            self.flush()
        except (OSError, sqlite3.Error, LongreachError) as error:
            self.abort()
            if isinstance(error, sqlite3.Error):
                raise self._failure(error) from error
            raise

    def _number_file(self) -> None:
        """Name the storage file NAME_0, as rosbag2 does: ``ros2 bag reindex`` takes no other."""
        storage: Any = self._writer.storage
        numbered = storage.path.with_stem(f'{storage.path.stem}_0')
        if hasattr(storage, 'conn'):
            # SQLite finds its journal by the name under which the file was opened.
            storage.conn.commit()
            storage.conn.close()
        storage.path.rename(numbered)
        storage.path = numbered
        if hasattr(storage, 'conn'):
            storage.conn = sqlite3.connect(numbered)
            storage.cursor = storage.conn.cursor()

    def add_topic(
        self, name: str, typename: str, definition: str, type_hash: str, qos: Sequence[Qos]
    ) -> Connection:
        """Add a topic; the result is what :meth:`write` takes."""
        return self._writer.add_connection(
            name, typename, msgdef=definition, rihs01=type_hash, offered_qos_profiles=qos
        )

    def write(self, connection: Connection, time: int, data: bytes) -> None:
        """Write a message's CDR bytes with its bag time [ns]."""
        try:
            self._writer.write(connection, time, data)
        except (OSError, sqlite3.Error) as error:
            raise self._failure(error) from error
        self.message_count += 1

    def flush(self) -> None:
        """Hand everything written so far to the operating system."""
        from rosbags.rosbag2.storage_mcap import McapWriter
        from rosbags.rosbag2.storage_sqlite3 import Sqlite3Writer

        storage = self._writer.storage
        try:
            if isinstance(storage, McapWriter):
                # A chunk without messages has no start time that readers could sort it by.
                if storage.chunk.msgs:
                    storage.close_chunk()
                storage.bio.flush()
            elif isinstance(storage, Sqlite3Writer):
                storage.conn.commit()
        except (OSError, sqlite3.Error) as error:
            raise self._failure(error) from error

    def close(self) -> None:
        """Write the index and the metadata."""
        try:
            self._writer.close()
        except (OSError, sqlite3.Error) as error:
            self.abort()
            raise self._failure(error) from error

    def abort(self) -> None:
        """Close the file without index and metadata; remove a recording without messages."""
        # The reason for the abort is known already: what the disk still refuses is no news.
        with contextlib.suppress(OSError, sqlite3.Error):
            self._writer.abort()
        if not self.message_count:
            # There is no directory yet where it could not even be made.
            shutil.rmtree(self.path, ignore_errors=True)

    def _failure(self, error: Exception) -> LongreachError:
        """Return the error for a recording that cannot be written on."""
        remedy = 'make room'
        if self.message_count:
            remedy += (
                f', and save what was written: longreach bag recover {self.path} --output NEW'
            )
        return LongreachError(f'{self.path}: writing failed: {error}; {remedy}')

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *details: object) -> None:
        if kind is None:
            self.close()
        else:
            self.abort()


def recover(
    path: str | Path,
    output: str | Path,
    storage: str | None = None,
    say: Callable[[str], None] | None = None,
) -> int:
    """
    Write a proper recording of what can be read from a damaged one.

    A whole recording is copied; so another storage can be chosen for it.

    Parameters
    ----------
    path, output : path
        What to read, and the new directory.
    storage : str, optional
        ``mcap`` or ``sqlite3``; by default the same as before.
    say : callable, optional
        Takes a line about what was lost.

    Returns
    -------
    int
        The number of messages.

    Raises
    ------
    InputError
        If nothing can be read, or the output exists. The output is then not made.
    """
    with open_bag(path, accept_damage=True, check=True) as bag:
        if not bag.message_count:
            raise InputError(f'{path}: no message is left; nothing to recover')
        stores = store_of(bag, list(bag.topics), repair=True)
        unreadable = Counter[str]()
        writer = BagWriter(output, storage or bag.storage)
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
                    if bag.damaged and not is_message(
                        stores[name], bag.topics[name].typename, data
                    ):
                        unreadable[name] += 1
                    else:
                        writer.write(connections[name], time, data)
        except BaseException:
            shutil.rmtree(output, ignore_errors=True)
            raise
        if say is not None:
            if bag.problem:
                say(f'{path}: {bag.problem}')
            for name, count in unreadable.items():
                say(f'{path}: {count} more of {name} have damaged content and were left out')
        return writer.message_count
