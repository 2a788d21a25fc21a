"""Results of ``longreach bag`` as text and as dictionaries for JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ._qos import summary as qos_summary
from ._reading import store_of
from ._record import RecordSummary
from ._stamps import StampReport, StampStatistics, is_shared, is_wall_clock, stamp_reader
from ._storage import open_bag

_NANOSECONDS = 1_000_000_000


@dataclass(frozen=True)
class _TopicReport:
    """Information about a topic."""

    name: str
    typename: str
    count: int
    qos: str
    stamps: StampReport | None


@dataclass(frozen=True)
class BagReport:
    """Information about a recording; times in ns."""

    path: Path
    storage: str
    problem: str
    checksums: str
    start_time: int
    end_time: int
    topics: list[_TopicReport]

    @property
    def message_count(self) -> int:
        """Number of messages of all topics."""
        return sum(topic.count for topic in self.topics)

    def as_dict(self) -> dict[str, Any]:
        """Return the report for JSON, with stable keys."""
        return {
            'bag': str(self.path),
            'storage': self.storage,
            'closed': not self.problem,
            'problem': self.problem or None,
            'checksums': self.checksums or None,
            'start_ns': self.start_time,
            'duration_s': (self.end_time - self.start_time) / _NANOSECONDS,
            'messages': self.message_count,
            'topics': [
                {
                    'name': topic.name,
                    'type': topic.typename,
                    'count': topic.count,
                    'qos': topic.qos,
                    'stamps': topic.stamps.as_dict() if topic.stamps else None,
                }
                for topic in self.topics
            ],
        }

    def as_text(self) -> str:
        """Return the report as text with a table."""
        state = 'closed properly' if self.checksums else 'closed properly, not searched for damage'
        if self.problem:
            state = f'{self.problem}; {self.message_count} messages recovered'
        lines = [
            f'bag       {self.path}',
            f'storage   {self.storage}, {state}',
            f'checks    {self.checksums or "not made"}',
            f'start     {_instant(self.start_time)}',
            f'duration  {(self.end_time - self.start_time) / _NANOSECONDS:.6f} s',
            f'messages  {self.message_count}',
            '',
        ]
        rows = [
            (t.name, t.typename, str(t.count), t.qos, _stamps_in_words(t.stamps))
            for t in self.topics
        ]
        return '\n'.join([*lines, *_table(('topic', 'type', 'count', 'QoS', 'stamps'), rows)])


def inspect_bag(path: str | Path, *, scan: bool = True) -> BagReport:
    """Inspect a recording, including a damaged one."""
    with open_bag(path, accept_damage=True, check=scan) as bag:
        reports: dict[str, StampReport] = {}
        if scan:
            stores = store_of(bag, list(bag.topics), missing_is_error=False, repair=True)
            readers = {
                name: reader
                for name, store in stores.items()
                if not is_shared(bag.topics[name].typename, len(bag.topics[name].qos))
                and (reader := stamp_reader(bag.topics[name].typename, store)) is not None
            }
            statistics = {name: StampStatistics() for name in readers}
            for name, _, data in bag.messages(list(readers)):
                if (stamp := readers[name](data)) is not None:
                    statistics[name].add(stamp)
            reports = {name: found.report() for name, found in statistics.items()}
        return BagReport(
            bag.path,
            bag.storage,
            bag.problem,
            bag.checksums,
            bag.start_time,
            bag.end_time,
            [
                _TopicReport(t.name, t.typename, t.count, qos_summary(t.qos), reports.get(t.name))
                for t in bag.topics.values()
            ],
        )


def recording_as_dict(summary: RecordSummary) -> dict[str, Any]:
    """Return the result of a recording for JSON, with stable keys."""
    return {
        'bag': str(summary.bag),
        'messages': summary.message_count,
        'topics': [
            {
                'name': topic.name,
                'type': topic.typename,
                'count': topic.count,
                'lost': topic.lost,
                'stamps': topic.stamps.as_dict(),
            }
            for topic in summary.topics
        ],
        'skipped': summary.skipped,
        'unseen': summary.unseen,
    }


def recording_as_text(summary: RecordSummary) -> str:
    """Return the result of a recording as a table, followed by problems."""
    rows = [(t.name, t.typename, str(t.count), str(t.lost)) for t in summary.topics]
    lines = _table(('topic', 'type', 'count', 'lost'), rows)
    for topic in summary.topics:
        if topic.lost:
            lines.append(
                f'{topic.name}: {topic.lost} messages lost between publisher and recorder'
            )
        if not topic.stamps.clean:
            lines.append(f'{topic.name}: {topic.stamps.sentence()}')
    lines += [f'{name}: {reason}' for name, reason in summary.skipped.items()]
    lines += [f'{name}: did not appear' for name in summary.unseen]
    lines.append(f'{summary.message_count} messages in {summary.bag}')
    return '\n'.join(lines)


def _stamps_in_words(stamps: StampReport | None) -> str:
    """Return the table cell on stamps."""
    if stamps is None:
        return 'not compared'
    if stamps.sentence():
        return stamps.sentence()
    return 'even' if stamps.period_s is None else f'every {stamps.period_s:.6g} s'


def _instant(time: int) -> str:
    """Return a bag time [ns] as a date, or as seconds if it is simulation time."""
    seconds = f'{time / _NANOSECONDS:.9f} s'
    if not is_wall_clock(time):
        return seconds
    return f'{datetime.fromtimestamp(time // _NANOSECONDS, UTC):%Y-%m-%d %H:%M:%S} UTC ({seconds})'


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Return the lines of a table."""
    widths = [max(len(row[column]) for row in (head, *rows)) for column in range(len(head))]
    return [
        '  '.join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in (head, *rows)
    ]
