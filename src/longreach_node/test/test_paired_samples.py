"""Which samples of two halves a controller answers, without ROS."""

from __future__ import annotations

from longreach_node.paired_samples import (
    STALE,
    Again,
    Forget,
    Note,
    PairedSamples,
    Run,
    Staleness,
)

SAMPLE = 5_000_000  # [ns]


class Stream:
    """Samples at a steady time, of which each cycle runs and has a command."""

    def __init__(self, lockstep: bool = False, answers: bool = True) -> None:
        self.samples = PairedSamples(0.005, lockstep)
        self.answers = answers
        self.now = 10.0
        self.notes: list[str] = []

    def send(self, *indices: int) -> list[int | str]:
        """Send both halves, and return which cycles ran; again and forget by name."""
        done: list[int | str] = []
        for k in indices:
            stamp = k * SAMPLE
            for take in (self.samples.first, self.samples.second):
                actions = take(stamp, f'{k}', self.now)
                for action in actions:
                    if isinstance(action, Run):
                        done.append(action.pair.stamp // SAMPLE)
                        more = self.samples.done(action.pair.stamp, self.answers, self.now)
                        self.notes += [note.text for note in more if isinstance(note, Note)]
                    elif isinstance(action, Note):
                        self.notes.append(action.text)
                    else:
                        done.append(type(action).__name__)
        return done


def test_each_pair_is_a_cycle() -> None:
    stream = Stream()
    assert stream.send(0, 1, 2, 2, 3) == [0, 1, 2, 3]
    assert stream.notes == []
    assert not stream.samples.grown()


def test_what_is_missing_is_counted() -> None:
    stream = Stream()
    stream.send(0, 1)
    stream.samples.second(2 * SAMPLE, 'half', stream.now)
    assert stream.send(4) == [4]
    counts = stream.samples.counts
    assert (counts['missed'], counts['unpaired']) == (2, 1)
    assert stream.samples.grown()
    assert not stream.samples.grown()
    assert any('2 samples missing before the one of 0.020000 s' in n for n in stream.notes)
    assert any('1 of hydraulics; do both come from one plant?' in n for n in stream.notes)


def test_another_rate_is_said() -> None:
    stream = Stream()
    stream.send(0)
    for half in (stream.samples.first, stream.samples.second):
        actions = half(1_000_000, 'early', stream.now)
    (run,) = actions
    assert isinstance(run, Run)
    (note,) = stream.samples.done(run.pair.stamp, True, stream.now)
    assert isinstance(note, Note)
    assert "sample_rate = 200 Hz shall be the plant's publish_rate" in note.text


def test_single_older_samples_change_nothing() -> None:
    stream = Stream()
    assert stream.send(150, 3, 151, 4, 152, -7) == [150, 151, 152]
    assert stream.samples.counts['late'] == 3
    assert any(
        'older sample of 0.015000 s, after 0.750000 s, is not used' in n for n in stream.notes
    )
    assert any('allowed: stamps from 0 on' in n for n in stream.notes)


def test_time_that_begins_anew() -> None:
    stream = Stream()
    stream.send(150, 151)
    assert stream.send(3) == []
    assert stream.send(4, 5) == [Forget.__name__, 3, 4, 5]
    assert stream.notes[-1] == 'time began anew: sample of 0.020000 s, after 0.755000 s'
    in_lockstep = Stream(lockstep=True)
    in_lockstep.send(150, 151)
    assert in_lockstep.send(0, 1) == [Forget.__name__, 0, 1]


def test_a_plant_that_asks_again() -> None:
    stream = Stream(lockstep=True)
    stream.send(0, 1)
    stream.now += 1.0
    assert stream.send(1) == [Again.__name__]
    assert stream.send(1) == []
    # What had no command may have one now.
    silent = Stream(answers=False)
    silent.send(0, 1)
    assert silent.send(1) == [1]


def test_diagnostics_are_due_once_a_second() -> None:
    samples = PairedSamples(0.0, lockstep=False)
    due = []
    for stamp in (250_000_000, 750_000_000, 1_000_000_000, 1_250_000_000, 3_000_000_000):
        samples.first(stamp, '', 0.0)
        (run,) = samples.second(stamp, '', 0.0)
        assert isinstance(run, Run)
        due.append(run.report)
        samples.done(stamp, False, 0.0)
    assert due == [True, False, True, False, True]


def test_what_waited_while_the_process_stood_still_is_not_used() -> None:
    stale, ns = Staleness(), round(1e9)
    skew = 17 * ns  # between the clocks of two computers
    assert not stale.is_stale(0, skew, 0.0)
    assert not stale.is_stale(ns, ns + skew + ns // 10, 1.1)
    # Stopped from 2 s to 7 s: what was sent in between comes at once.
    verdicts = [stale.is_stale(k * ns // 10, 7 * ns + skew, 7.0) for k in range(20, 71)]
    fresh = sum(not verdict for verdict in verdicts)
    assert verdicts == [True] * (51 - fresh) + [False] * fresh
    assert fresh == int(STALE * 10) + 1


def test_a_process_that_stops_when_it_is_late_already() -> None:
    stale, ns = Staleness(), round(1e9)
    assert not stale.is_stale(0, 0, 0.0)
    assert stale.is_stale(ns, 2 * ns, 2.0)
    # Stopped for a long time: the first message after it is older still.
    assert stale.is_stale(ns + 1, 20 * ns, 20.0)
    assert stale.is_stale(18 * ns, 20 * ns, 20.0)
    assert not stale.is_stale(20 * ns, 20 * ns, 20.0)


def test_a_clock_that_is_set_is_not_an_end_of_everything() -> None:
    stale, ns = Staleness(), round(1e9)
    jump = 3600 * ns
    verdicts = []
    for k in range(100):
        sent = k * ns // 10
        verdicts.append(stale.is_stale(sent, sent + (jump if k >= 20 else 0), 0.1 * k))
    assert True in verdicts
    assert not any(verdicts[75:])


def test_clocks_that_drift_apart() -> None:
    stale, ns = Staleness(), round(1e9)
    # Three hours at 100 ppm: more than a second.
    verdicts = [stale.is_stale(k * ns, k * ns + k * ns // 10_000, float(k)) for k in range(10_800)]
    assert not any(verdicts)


def test_lockstep_and_stale_samples() -> None:
    for lockstep in (True, False):
        samples = PairedSamples(0.005, lockstep)
        assert samples.waited(0, 0, 0.0) is None
        assert (samples.waited(0, 10**9, 1.0) is None) == lockstep
        assert samples.counts['stale'] == (0 if lockstep else 1)
