"""Which cycle a sample belongs to, by its stamp."""

from __future__ import annotations

import pytest

from longreach_dynamics.cycles import ASKED_AGAIN, Arrival, Kind, SampleOrder, classify

T = 0.01
NS = 10_000_000


@pytest.mark.parametrize(
    ('stamp', 'arrival'),
    [
        (101 * NS, Arrival(Kind.NEW, 0)),
        (102 * NS, Arrival(Kind.NEW, 1)),
        (151 * NS, Arrival(Kind.NEW, 50)),
        (100 * NS, Arrival(Kind.DUPLICATE)),
        (99 * NS, Arrival(Kind.LATE)),
        (50 * NS, Arrival(Kind.LATE)),
        # 0.5 s back is late, more may be a restart.
        (50 * NS - 1, Arrival(Kind.OLDER)),
        (0, Arrival(Kind.OLDER)),
        (-1, Arrival(Kind.INVALID)),
        (-(2**31) * 10**9, Arrival(Kind.INVALID)),
        # A jitter below half a cycle moves nothing.
        (101 * NS + 4_999_999, Arrival(Kind.NEW, 0)),
        (101 * NS - 4_999_999, Arrival(Kind.NEW, 0)),
        (101 * NS + 5_000_001, Arrival(Kind.NEW, 1)),
        (100 * NS + 4_999_999, Arrival(Kind.DUPLICATE)),
        (100 * NS - 4_999_999, Arrival(Kind.DUPLICATE)),
    ],
)
def test_kinds(stamp: int, arrival: Arrival) -> None:
    assert classify(stamp, 100 * NS, T, 0.5) == arrival


def test_a_wall_clock_stamp_is_exact() -> None:
    # 1.8e18 ns has no exact double; the difference of two stamps has.
    latest = 1_795_177_166_480_740_619
    assert classify(latest + NS, latest, T, 0.5) == Arrival(Kind.NEW, 0)
    assert classify(latest + 3 * NS, latest, T, 0.5) == Arrival(Kind.NEW, 2)
    assert classify(latest + 1, latest, T, 0.5) == Arrival(Kind.DUPLICATE)


def test_another_cycle_time() -> None:
    assert classify(140_000_000, 100_000_000, 0.02, 0.5) == Arrival(Kind.NEW, 1)


def test_without_a_cycle_time_any_later_stamp_is_the_next() -> None:
    assert classify(101, 100, 0.0, 0.5) == Arrival(Kind.NEW, 0)
    assert classify(10**12, 100, 0.0, 0.5) == Arrival(Kind.NEW, 0)
    assert classify(100, 100, 0.0, 0.5) == Arrival(Kind.DUPLICATE)
    assert classify(99, 100, 0.0, 0.5) == Arrival(Kind.LATE)


# --- the order of a stream ----------------------------------------------------------------------


def order(latest: int = 100, lockstep: bool = False) -> SampleOrder[str]:
    """Return the order of a stream whose latest cycle was answered at the wall time 10 s."""
    new: SampleOrder[str] = SampleOrder(T, 0.5, lockstep)
    new.accept(latest * NS)
    new.answer(10.0)
    return new


def kinds(stream: SampleOrder[str], *arrivals: tuple[int, float]) -> list[Kind]:
    """Return the kinds of samples (cycle, wall time); those that are used are accepted."""
    found = []
    for cycle, now in arrivals:
        kind = stream.arrive(cycle * NS, f'{cycle}', now).kind
        if kind in (Kind.NEW, Kind.RESTART):
            stream.accept(cycle * NS)
        found.append(kind)
    return found


def test_a_single_older_sample_is_no_restart() -> None:
    stream = order()
    assert kinds(stream, (7, 10.0), (101, 10.0), (8, 10.0), (102, 10.0)) == [
        Kind.OLDER,
        Kind.NEW,
        Kind.OLDER,
        Kind.NEW,
    ]
    assert stream.kept is None


def test_time_that_goes_on_from_an_older_sample_has_begun_anew() -> None:
    stream = order()
    assert kinds(stream, (7, 10.0), (8, 10.0)) == [Kind.OLDER, Kind.RESTART]
    assert stream.kept is not None
    assert (stream.kept.stamp, stream.kept.payload) == (7 * NS, '7')


@pytest.mark.parametrize('second', [7, 3, 7 + 51])
def test_what_does_not_go_on_from_the_older_sample(second: int) -> None:
    stream = order(latest=200)
    assert kinds(stream, (7, 10.0), (second, 10.0)) == [Kind.OLDER, Kind.OLDER]


def test_an_older_sample_that_is_repeated_has_begun_anew() -> None:
    stream = order()
    late = 10.0 + 2.0 * ASKED_AGAIN
    assert kinds(stream, (7, 10.0), (7, 10.01), (7, late)) == [
        Kind.OLDER,
        Kind.OLDER,
        Kind.RESTART,
    ]


def test_soon_after_the_start_only_time_zero_may_begin_anew() -> None:
    stream = order(latest=20)
    assert kinds(stream, (10, 10.0), (11, 10.0), (0, 10.0), (1, 10.0)) == [
        Kind.LATE,
        Kind.LATE,
        Kind.OLDER,
        Kind.RESTART,
    ]
    stream = order(latest=20)
    assert kinds(stream, (0, 10.0), (0, 11.0)) == [Kind.OLDER, Kind.RESTART]


def test_in_lockstep_time_zero_begins_anew_at_once() -> None:
    assert kinds(order(lockstep=True), (0, 10.0)) == [Kind.RESTART]
    # Soon after the start it may be a doubled message; sent again later it is not.
    near = order(latest=20, lockstep=True)
    assert kinds(near, (0, 10.0)) == [Kind.OLDER]
    assert kinds(order(latest=20, lockstep=True), (0, 11.0)) == [Kind.RESTART]


def test_a_repeated_sample_asks_for_its_answer() -> None:
    stream = order()
    assert kinds(stream, (100, 10.0), (100, 10.0 + 2.0 * ASKED_AGAIN)) == [
        Kind.DUPLICATE,
        Kind.REPEATED,
    ]


def test_negative_stamps_are_never_used() -> None:
    assert SampleOrder(T, 0.5).arrive(-NS, '', 0.0).kind is Kind.INVALID
    stream = order()
    for cycle in (-(2**31) * 100, -(2**31) * 100 + 1):
        assert stream.arrive(cycle * NS, '', 10.0).kind is Kind.INVALID
    assert kinds(stream, (101, 10.0)) == [Kind.NEW]
