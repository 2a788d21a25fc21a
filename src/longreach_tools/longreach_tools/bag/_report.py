"""Results of ``longreach bag`` as text and as dictionaries for JSON."""

from __future__ import annotations

from array import array
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from longreach_tools.output import table

from ._reading import stamp_readers, store_of
from ._record import RecordSummary
from ._stamps import NANOSECONDS, StampReport, is_wall_clock, stamp_report
from ._storage import Bag, open_bag
from ._topics import qos_summary


class BagReport(NamedTuple):
    """A recording as JSON with stable keys and as text, and what is wrong with it."""

    as_dict: dict[str, Any]
    as_text: str
    problem: str


def inspect_bag(path: str | Path) -> BagReport:
    """Inspect a recording, including a damaged one."""
    with open_bag(path, check=True) as bag:
        stamps = _compare_stamps(bag)
        duration = (bag.end_time - bag.start_time) / NANOSECONDS
        entries = [
            {
                'name': topic.name,
                'type': topic.typename,
                'count': topic.count,
                'qos': qos_summary(topic.qos),
                'stamps': stamps[topic.name]._asdict() if topic.name in stamps else None,
            }
            for topic in bag.topics.values()
        ]
        result = {
            'bag': str(bag.path),
            'storage': bag.storage,
            'closed': not bag.problem,
            'problem': bag.problem or None,
            'checksums': bag.checksums,
            'start_ns': bag.start_time,
            'duration_s': duration,
            'messages': bag.message_count,
            'topics': entries,
        }
        state = 'closed properly'
        if bag.problem:
            state = f'{bag.problem}; {bag.message_count} messages recovered'
        lines = [
            f'bag       {bag.path}',
            f'storage   {bag.storage}, {state}',
            f'checks    {bag.checksums}',
            f'start     {_instant(bag.start_time)}',
            f'duration  {duration:.6f} s',
            f'messages  {bag.message_count}',
            '',
        ]
        rows = [
            (t.name, t.typename, str(t.count), qos_summary(t.qos), _in_words(stamps.get(t.name)))
            for t in bag.topics.values()
        ]
        lines.append(table(('topic', 'type', 'count', 'QoS', 'stamps'), rows, left=5))
        return BagReport(result, '\n'.join(lines), bag.problem)


def _compare_stamps(bag: Bag) -> dict[str, StampReport]:
    """Return the statistics of the stamps of each topic with one publisher."""
    stores = store_of(bag, list(bag.topics), missing_is_error=False, repair=True)
    readers = stamp_readers(bag, stores)
    stamps = {name: array('q') for name in readers if not bag.topics[name].is_shared}
    for name, _, data in bag.messages(list(stamps)):
        if (stamp := readers[name](data)) is not None:
            stamps[name].append(stamp)
    return {name: stamp_report(found) for name, found in stamps.items()}


def recording_as_dict(summary: RecordSummary) -> dict[str, Any]:
    """Return the result of a recording for JSON, with stable keys."""
    return {
        'bag': str(summary.bag),
        'messages': sum(topic.count for topic in summary.topics),
        'topics': [
            {
                'name': topic.name,
                'type': topic.typename,
                'count': topic.count,
                'lost': topic.lost,
                'stamps': topic.stamps._asdict(),
            }
            for topic in summary.topics
        ],
        'skipped': summary.skipped,
        'unseen': summary.unseen,
    }


def recording_as_text(summary: RecordSummary) -> str:
    """Return the result of a recording as a table, followed by problems."""
    rows = [(t.name, t.typename, str(t.count), str(t.lost)) for t in summary.topics]
    lines = [table(('topic', 'type', 'count', 'lost'), rows, left=4)]
    for topic in summary.topics:
        if topic.lost:
            lines.append(
                f'{topic.name}: {topic.lost} messages lost between publisher and recorder'
            )
        if findings := topic.stamps.sentence():
            lines.append(f'{topic.name}: {findings}')
    lines += [f'{name}: {reason}' for name, reason in summary.skipped.items()]
    lines += [f'{name}: did not appear' for name in summary.unseen]
    lines.append(f'{sum(topic.count for topic in summary.topics)} messages in {summary.bag}')
    return '\n'.join(lines)


def _in_words(stamps: StampReport | None) -> str:
    """Return the table cell on stamps."""
    if stamps is None:
        return 'not compared'
    period = 'no period' if stamps.period_s is None else f'every {stamps.period_s:.6g} s'
    return stamps.sentence() or period


def _instant(time: int) -> str:
    """Return a bag time [ns] as a date, or as seconds if it is simulation time."""
    seconds = f'{time / NANOSECONDS:.9f} s'
    if not is_wall_clock(time):
        return seconds
    return f'{datetime.fromtimestamp(time // NANOSECONDS, UTC):%Y-%m-%d %H:%M:%S} UTC ({seconds})'
