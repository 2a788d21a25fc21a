"""SQLite files of recordings that are damaged, or whose recorder was killed."""

from __future__ import annotations

import contextlib
import re
import shutil
import sqlite3
import tempfile
from collections import Counter
from collections.abc import Collection, Iterator
from contextlib import ExitStack, closing
from pathlib import Path

from longreach_dynamics.errors import InputError

from ._topics import Message, topic_of

NO_CHECKSUMS = 'no checksums: sqlite3 has none; its pages are checked, but not the messages'

_TYPE = re.compile(r'\w+/\w+/\w+')
# Size of a row besides its data: four values, and the header of a message [bytes].
_SMALLEST_ROW = 20


def _open(file: Path) -> sqlite3.Connection:
    """Open a file that nobody changes."""
    return sqlite3.connect(f'{file.resolve().as_uri()}?immutable=1', uri=True)


class BrokenSqliteSource:
    """
    The rows of a damaged file that can be read individually.

    ``rows`` is the number of messages that it should have, ``times`` are their limits [ns].
    """

    def __init__(
        self, file: Path, rows: int, times: tuple[int, int], resources: ExitStack
    ) -> None:
        self._database = resources.enter_context(closing(_open(file)))
        # SQLite opens a truncated file only with it; nothing is written.
        self._database.execute('PRAGMA writable_schema = ON')
        query = 'SELECT id, name, type, offered_qos_profiles FROM topics'
        try:
            topics = [row for row in self._database.execute(query) if _TYPE.fullmatch(str(row[2]))]
        except sqlite3.Error as error:
            raise InputError(f'{file}: damaged or not a bag of ROS 2: {error}') from error
        definitions: dict[str, tuple[str, str]] = {}
        query = 'SELECT topic_type, encoding, encoded_message_definition FROM message_definitions'
        # Without definitions in the file, those of this machine are used.
        with contextlib.suppress(sqlite3.Error, UnicodeDecodeError):
            for typename, encoding, definition in self._database.execute(query):
                definitions[typename] = (encoding, definition)
        self._names = {number: name for number, name, *_ in topics}
        found = []
        for number in range(1, self._last_row(file, rows) + 1):
            row = self._row(number)
            if row is not None and times[0] <= row[1] <= times[1]:
                found.append((row[1], number, row[0]))
        # Row by row, because the index of times may be damaged.
        self._rows = sorted(found)
        self.start_time, self.end_time = ((found and self._rows[k][0]) or 0 for k in (0, -1))
        counts = Counter(topic for _, _, topic in found)
        self.topics = [
            topic_of(name, kind, counts[number], *definitions.get(kind, ('', '')), qos)
            for number, name, kind, qos in topics
        ]
        self.damage = [f'pages of {file.name}']
        self.checksums = NO_CHECKSUMS

    def messages(self, names: Collection[str], start: int) -> Iterator[Message]:
        """Yield messages of some topics from a time [ns] on, in the order of time."""
        for time, number, topic in self._rows:
            if time >= start and self._names[topic] in names:
                row = self._row(number)
                if row is not None:
                    yield self._names[topic], time, row[2]

    def _row(self, number: int) -> tuple[int, int, bytes] | None:
        """Return topic, time [ns] and data of a row, None if it cannot be read."""
        query = 'SELECT topic_id, timestamp, data FROM messages WHERE id = ?'
        try:
            row = self._database.execute(query, (number,)).fetchone()
        except (sqlite3.Error, UnicodeDecodeError):
            return None
        if row is None or row[0] not in self._names:
            return None
        return row if isinstance(row[1], int) and isinstance(row[2], bytes) else None

    def _last_row(self, file: Path, rows: int) -> int:
        """Return the largest possible row number."""
        size = file.stat().st_size
        with contextlib.suppress(sqlite3.Error):
            last = self._database.execute('SELECT max(id) FROM messages').fetchone()[0]
            if isinstance(last, int) and last < size:
                return max(last, rows)
        return rows or size // _SMALLEST_ROW


def is_whole(file: Path) -> bool:
    """Return whether all pages of an SQLite file are intact."""
    try:
        with closing(_open(file)) as database:
            (answer,) = database.execute('PRAGMA integrity_check(1)').fetchone()
            return bool(answer == 'ok')
    except sqlite3.Error:
        return False


def rolled_back(file: Path, resources: ExitStack) -> Path:
    """
    Return an SQLite file without an unfinished transaction, as a copy if it has one.

    SQLite would write to the recording to roll back a transaction of a killed recorder.
    """
    companions = [file.with_name(file.name + suffix) for suffix in ('-journal', '-wal')]
    unfinished = [companion for companion in companions if companion.is_file()]
    if not any(companion.stat().st_size for companion in unfinished):
        return file
    folder = Path(resources.enter_context(tempfile.TemporaryDirectory()))
    for source in (file, *unfinished):
        shutil.copy(source, folder)
    copy = folder / file.name
    with closing(sqlite3.connect(copy)) as connection:
        connection.execute('SELECT count(*) FROM sqlite_master').fetchone()
        connection.execute('PRAGMA journal_mode=DELETE')
    return copy
