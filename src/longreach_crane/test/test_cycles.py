"""Which cycle a sample belongs to, by its stamp."""

from __future__ import annotations

import pytest

from longreach_crane.cycles import Arrival, Kind, classify

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
        # 0.5 s back is late, more is a restart.
        (50 * NS - 1, Arrival(Kind.RESTART)),
        (0, Arrival(Kind.RESTART)),
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
