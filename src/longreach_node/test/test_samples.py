"""Which samples a controller answers, without ROS."""

import math
from unittest.mock import Mock

import pytest

from longreach_node.samples import (
    ASKED_AGAIN,
    STALE,
    Kind,
    Pairs,
    Sample,
    SampleStream,
    Staleness,
)

T, NS = 0.01, 10_000_000
PERIOD = 5_000_000  # of the streams [ns]


# --- halves ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ('halves', 'whole', 'unpaired'),
    [
        # The second half completes a pair, whichever it is; one topic may run ahead.
        ([(0, 0), (1, 0), (1, 5), (0, 5)], [0, 5], [0, 0]),
        ([(0, 1), (0, 2), (0, 3), (1, 1), (1, 2), (1, 3)], [1, 2, 3], [0, 0]),
        # A later pair gives up what waits from before; its other half completes nothing.
        ([(0, 0), (0, 1), (1, 2), (1, 3), (0, 3), (1, 0)], [3], [2, 1]),
        # No more than three wait.
        ([(0, 0), (0, 1), (0, 2), (0, 3), (0, 4), (1, 1), (1, 2)], [2], [2, 1]),
    ],
)
def test_pairs(halves, whole, unpaired):
    pairs = Pairs(most=3)
    found = [pairs.add(half, stamp, (half, stamp)) for half, stamp in halves]
    assert [s for s in found if s] == [Sample(s, (0, s), (1, s)) for s in whole]
    assert pairs.unpaired == unpaired


def test_a_repeated_half_replaces_the_one_that_waits_and_clear_forgets():
    pairs = Pairs()
    pairs.add(0, 6, 'old')
    pairs.add(0, 6, 'new')
    assert pairs.add(1, 6, 'b') == Sample(6, 'new', 'b')
    pairs.add(0, 7, 'a')
    pairs.clear()
    assert pairs.add(1, 7, 'b') is None
    assert pairs.unpaired == [0, 0]


# --- the order of a stream -------------------------------------------------------------------


def order(latest=100, lockstep=False, whole=True):
    """Return a stream whose latest cycle was answered at the wall time 10 s."""
    new = SampleStream(Mock(), T, lockstep, whole_cycles=whole)
    new.latest, new.answered_at = latest * NS, 10.0
    return new


@pytest.mark.parametrize(
    ('stamp', 'kind'),
    [
        (101 * NS, Kind.NEW),
        (151 * NS, Kind.NEW),
        (100 * NS, Kind.DUPLICATE),
        (99 * NS, Kind.LATE),
        (50 * NS, Kind.LATE),
        # 0.5 s back is late, more may be a restart.
        (50 * NS - 1, Kind.OLDER),
        (0, Kind.OLDER),
        (-1, Kind.INVALID),
        (-(2**31) * 10**9, Kind.INVALID),
        # A jitter below half a cycle moves nothing.
        (101 * NS - 4_999_999, Kind.NEW),
        (100 * NS + 4_999_999, Kind.DUPLICATE),
        (100 * NS - 4_999_999, Kind.DUPLICATE),
    ],
)
def test_kinds(stamp, kind):
    assert order().kind_of(Sample(stamp, '', None), 10.0) is kind
    first = Kind.NEW if stamp >= 0 else Kind.INVALID
    assert SampleStream(Mock(), T, False).kind_of(Sample(stamp, '', None), 10.0) is first


@pytest.mark.parametrize(
    ('whole', 'latest', 'more', 'kind'),
    [
        # A wall clock's stamp has no exact double; the difference of two has.
        (True, 1_795_177_166_480_740_619, NS, Kind.NEW),
        (True, 1_795_177_166_480_740_619, 1, Kind.DUPLICATE),
        # Without a cycle time any later stamp is the next.
        (False, 100 * NS, 1, Kind.NEW),
        (False, 100 * NS, 10**12, Kind.NEW),
        (False, 100 * NS, 0, Kind.DUPLICATE),
        (False, 100 * NS, -1, Kind.LATE),
    ],
)
def test_differences_count(whole, latest, more, kind):
    stream = order(whole=whole)
    stream.latest = latest
    assert stream.kind_of(Sample(latest + more, '', None), 10.0) is kind


AGAIN = 10.0 + 2.0 * ASKED_AGAIN
LATE, OLDER, NEW, RESTART = Kind.LATE, Kind.OLDER, Kind.NEW, Kind.RESTART


@pytest.mark.parametrize(
    ('latest', 'lockstep', 'arrivals', 'expected'),
    [
        # What does not go on from an older sample has not begun anew.
        *((200, False, [(7, 10), (second, 10)], [OLDER, OLDER]) for second in (7, 3, 7 + 51)),
        # It has when the older sample is sent again later.
        (100, False, [(7, 10), (7, 10.01), (7, AGAIN)], [OLDER, OLDER, RESTART]),
        # Soon after the start only time zero may begin anew.
        (20, False, [(10, 10), (11, 10), (0, 10), (1, 10)], [LATE, LATE, OLDER, RESTART]),
        (20, False, [(0, 10), (0, 11)], [OLDER, RESTART]),
        # In lockstep, soon after the start, it may be a doubled message.
        (20, True, [(0, 10)], [OLDER]),
        (20, True, [(0, 11)], [RESTART]),
    ],
)
def test_order(latest, lockstep, arrivals, expected):
    stream, found = order(latest, lockstep), []
    for cycle, now in arrivals:
        kind = stream.kind_of(Sample(cycle * NS, f'{cycle}', None), now)
        if kind in (NEW, RESTART):
            stream.latest = cycle * NS
        found.append(kind)
    assert found == expected


# --- answers ---------------------------------------------------------------------------------


class Stream:
    """A node that answers each sample, at a steady time."""

    def __init__(self, lockstep=False, answers=True):
        self.samples = SampleStream(self, 0.005, lockstep)
        self.answers = answers
        self.now = 10.0
        self.done = []
        self.due = []
        self.notes = []

    def run(self, sample, report):
        self.done.append(sample.stamp // PERIOD)
        self.due.append(report)
        self.samples.done(sample.stamp, self.answers, self.now)

    def send_again(self):
        self.done.append('again')

    def forget(self):
        self.done.append('forget')

    def inform(self, text):
        self.notes.append(text)

    warn = inform

    def send(self, *indices):
        """Send both halves, and return which cycles ran; again and forget by name."""
        self.done = []
        for k in indices:
            for half in (0, 1):
                self.samples.take(half, round(k * PERIOD), f'{k}', self.now)
        return self.done


def test_what_is_missing_is_counted():
    stream = Stream()
    stream.send(0, 1)
    stream.samples.take(1, 2 * PERIOD, 'half', stream.now)
    assert stream.send(4) == [4]
    counts = stream.samples.counts
    assert (counts['missed'], counts['unpaired']) == (2, 1)
    assert stream.samples.grown()
    assert not stream.samples.grown()
    assert any('2 samples missing before the one of 0.020000 s' in n for n in stream.notes)
    assert any('1 of hydraulics; do both come from one plant?' in n for n in stream.notes)


def test_another_rate_is_said():
    for indices in ((0, 0.2), [0.7 * k for k in range(60)], [1.1 * k for k in range(60)]):
        stream = Stream()
        stream.send(*indices)
        text = "s after the one before; sample_rate = 200 Hz shall be the plant's publish_rate"
        assert text in stream.notes[0]
    jitter = [k + 0.3 * math.sin(k) for k in range(200)]
    stream = Stream()
    stream.send(*jitter)
    assert not stream.notes


def test_single_older_samples_change_nothing():
    stream = Stream()
    assert stream.send(150, 3, 151, 4, 152, -7) == [150, 151, 152]
    assert stream.samples.counts['late'] == 3
    older = 'older sample of 0.015000 s, after 0.750000 s, is not used'
    assert any(older in note for note in stream.notes)
    assert any('allowed: stamps from 0 on' in note for note in stream.notes)


def test_time_that_begins_anew():
    stream = Stream()
    stream.send(150, 151)
    assert stream.send(3) == []
    assert stream.send(4, 5) == ['forget', 3, 4, 5]
    assert stream.notes[-1] == 'time began anew: sample of 0.020000 s, after 0.755000 s'
    in_lockstep = Stream(lockstep=True)
    in_lockstep.send(150, 151)
    assert in_lockstep.send(0, 1) == ['forget', 0, 1]


def test_a_plant_that_asks_again():
    stream = Stream(lockstep=True)
    stream.send(0, 1)
    stream.now += 1.0
    assert stream.send(1) == ['again']
    assert stream.send(1) == []
    # What had no command may have one now.
    silent = Stream(answers=False)
    silent.send(0, 1)
    assert silent.send(1) == [1]


def test_diagnostics_are_due_once_a_second():
    stream = Stream()
    stream.send(50, 150, 200, 250, 600)
    assert stream.due == [True, False, True, False, True]


# --- stale messages --------------------------------------------------------------------------


def test_what_waited_while_the_process_stood_still_is_not_used():
    stale, ns = Staleness(), round(1e9)
    skew = 17 * ns  # between the clocks of two computers
    assert not stale.is_stale(0, skew, 0.0)
    assert not stale.is_stale(ns, ns + skew + ns // 10, 1.1)
    # Stopped from 2 s to 7 s: what was sent in between comes at once.
    verdicts = [stale.is_stale(k * ns // 10, 7 * ns + skew, 7.0) for k in range(20, 71)]
    fresh = sum(not verdict for verdict in verdicts)
    assert verdicts == [True] * (51 - fresh) + [False] * fresh
    assert fresh == int(STALE * 10) + 1


def test_a_process_that_stops_when_it_is_late_already():
    stale, ns = Staleness(), round(1e9)
    assert not stale.is_stale(0, 0, 0.0)
    assert stale.is_stale(ns, 2 * ns, 2.0)
    # Stopped for a long time: the first message after it is older still.
    assert stale.is_stale(ns + 1, 20 * ns, 20.0)
    assert stale.is_stale(18 * ns, 20 * ns, 20.0)
    assert not stale.is_stale(20 * ns, 20 * ns, 20.0)


def test_a_clock_that_is_set_is_not_an_end_of_everything():
    stale, ns = Staleness(), round(1e9)
    jump = 3600 * ns
    verdicts = []
    for k in range(100):
        sent = k * ns // 10
        verdicts.append(stale.is_stale(sent, sent + (jump if k >= 20 else 0), 0.1 * k))
    assert True in verdicts
    assert not any(verdicts[75:])


def test_clocks_that_drift_apart():
    stale, ns = Staleness(), round(1e9)
    # Three hours at 100 ppm: more than a second.
    verdicts = [stale.is_stale(k * ns, k * ns + k * ns // 10_000, float(k)) for k in range(10_800)]
    assert not any(verdicts)


@pytest.mark.parametrize('lockstep', [True, False])
def test_lockstep_uses_stale_samples(lockstep):
    samples = Stream(lockstep).samples
    assert not samples.is_stale(0, 0, 0.0)
    assert samples.is_stale(0, 10**9, 1.0) is not lockstep
    assert samples.counts['stale'] == (0 if lockstep else 1)
