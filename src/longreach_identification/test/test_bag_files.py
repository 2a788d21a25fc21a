"""Signals in messages: single numbers, arrays with names, lists of named entries."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np

from longreach_dynamics.runs import Source
from longreach_identification.bag_files import _Part, _TopicReader


def message(time: float, **fields: Any) -> SimpleNamespace:
    seconds = int(time)
    stamp = SimpleNamespace(sec=seconds, nanosec=round(1e9 * (time - seconds)))
    return SimpleNamespace(header=SimpleNamespace(stamp=stamp), **fields)


def read(source: Source, *messages: SimpleNamespace, deviation: str = '') -> list[list[float]]:
    reader = _TopicReader('/topic', [_Part('signal', source, deviation)])
    for one in messages:
        reader.add(one)
    return [list(column) for column in reader.of(0)]


def test_a_number_of_a_message() -> None:
    sensors = [message(0.5, car_position=1.0), message(1.0, car_position=2.0)]
    times, values, _ = read(Source('sensors', 'car_position'), *sensors)
    assert times == [500_000_000, 1_000_000_000]
    assert values == [1.0, 2.0]
    wrench = message(0.0, wrench=SimpleNamespace(force=SimpleNamespace(x=3.0)))
    assert read(Source('command', 'wrench.force.x'), wrench)[1] == [3.0]


def test_an_entry_of_an_array_with_names() -> None:
    joints = message(0.0, name=['a', 'b'], position=[1.0, 2.0])
    assert read(Source('joint_states', 'position', 'b'), joints)[1] == [2.0]


def test_an_entry_of_a_list_with_its_variance_unless_it_is_lost() -> None:
    def estimates(status: int) -> SimpleNamespace:
        place = SimpleNamespace(x=4.0)
        entry = SimpleNamespace(
            name='tip', status=status, in_plane=place, covariance=np.array([0.25])
        )
        return message(float(status), estimates=[entry])

    source = Source('markers', 'estimates.in_plane.x', 'tip')
    times, values, variances = read(
        source, estimates(0), estimates(2), deviation='estimates.covariance.0'
    )
    assert (times, values, variances) == ([0], [4.0], [0.25])
