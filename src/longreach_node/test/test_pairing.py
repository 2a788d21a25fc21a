"""Messages that belong together by their stamps."""

from __future__ import annotations

from longreach_node.pairing import Pair, Pairs


def test_the_second_half_completes_a_pair_whichever_it_is() -> None:
    pairs: Pairs[str, str] = Pairs()
    assert pairs.add_first(0, 'a0') is None
    assert pairs.add_second(0, 'b0') == Pair(0, 'a0', 'b0')
    assert pairs.add_second(5, 'b5') is None
    assert pairs.add_first(5, 'a5') == Pair(5, 'a5', 'b5')
    assert pairs.unpaired == [0, 0]


def test_one_topic_may_run_ahead() -> None:
    pairs: Pairs[int, int] = Pairs()
    for stamp in range(10):
        assert pairs.add_first(stamp, stamp) is None
    assert [pairs.add_second(stamp, -stamp) for stamp in range(10)] == [
        Pair(stamp, stamp, -stamp) for stamp in range(10)
    ]
    assert pairs.unpaired == [0, 0]


def test_a_later_pair_gives_up_what_waits_from_before() -> None:
    pairs: Pairs[str, str] = Pairs()
    pairs.add_first(0, 'a')
    pairs.add_first(1, 'a')
    pairs.add_second(2, 'b')
    pairs.add_second(3, 'b')
    assert pairs.add_first(3, 'a') == Pair(3, 'a', 'b')
    assert pairs.unpaired == [2, 1]
    # The other half of what was given up waits anew, and completes nothing.
    assert pairs.add_second(0, 'b') is None


def test_a_repeated_half_replaces_the_one_that_waits() -> None:
    pairs: Pairs[str, str] = Pairs()
    pairs.add_first(0, 'old')
    pairs.add_first(0, 'new')
    assert pairs.add_second(0, 'b') == Pair(0, 'new', 'b')
    assert pairs.unpaired == [0, 0]


def test_no_more_than_so_many_wait() -> None:
    pairs: Pairs[int, int] = Pairs(most=3)
    for stamp in range(5):
        pairs.add_first(stamp, stamp)
    assert pairs.unpaired == [2, 0]
    assert pairs.add_second(1, 1) is None
    assert pairs.add_second(2, 2) == Pair(2, 2, 2)


def test_clear_forgets_without_counting() -> None:
    pairs: Pairs[int, int] = Pairs()
    pairs.add_first(0, 0)
    pairs.clear()
    assert pairs.add_second(0, 0) is None
    assert pairs.unpaired == [0, 0]
