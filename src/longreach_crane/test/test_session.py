"""What the controller does with a stream of samples, without ROS."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from longreach_crane.control import Controller
from longreach_crane.diagnosis import Emergency, Sample
from longreach_crane.parameters import Machinery
from longreach_crane.scenario import Scenario
from longreach_crane.session import Answer, Note, Output, Report, Session
from longreach_crane.state import Command

CYCLE = 10_000_000  # [ns]
REST = Sample(0.0, False, False)


class Stream:
    """A session, and a clock that goes on by a cycle with each sample."""

    def __init__(self, machinery: Machinery, lockstep: bool = False) -> None:
        controller = Controller.of(machinery)
        self.session = Session(controller, Scenario(duration=1.0), lockstep=lockstep)
        self.now = 100.0
        self.publishers = 1

    def send(self, *cycles: int, sample: Sample = REST) -> list[Output]:
        outputs: list[Output] = []
        for cycle in cycles:
            self.now += 0.01
            outputs += self.session.take(cycle * CYCLE, sample, self.now, self.now)
        return outputs

    def silence(self, seconds: float) -> list[Output]:
        """Let time pass, with a tick in each cycle."""
        outputs: list[Output] = []
        for _ in range(round(seconds / 0.01)):
            self.now += 0.01
            outputs += self.session.tick(self.now, self.now, lambda: self.publishers == 0)
        return outputs


def answered(outputs: Sequence[Output]) -> list[int]:
    return [output.stamp // CYCLE for output in outputs if isinstance(output, Answer)]


def texts(outputs: Sequence[Output]) -> list[str]:
    return [output.text for output in outputs if isinstance(output, Note)]


@pytest.fixture
def stream(machinery: Machinery) -> Stream:
    return Stream(machinery)


def test_a_single_older_sample_changes_nothing(stream: Stream) -> None:
    stream.send(*range(100))
    stream.session.command_position(2.0)
    (note,) = stream.send(3)
    assert note == Note(
        'warn',
        'older sample of 0.030000 s, after 0.990000 s, is not used unless the next sample'
        ' continues from it',
    )
    (answer,) = stream.send(100)[-1:]
    assert isinstance(answer, Answer)
    assert (answer.stamp, answer.set_point) == (100 * CYCLE, 2.0)
    assert stream.session.counts['late'] == 1


def test_time_that_goes_on_from_an_older_sample_begins_anew(stream: Stream) -> None:
    stream.send(*range(100))
    stream.session.command_position(2.0)
    stream.send(3)
    outputs = stream.send(4)
    assert 'time began anew: sample of 0.040000 s after that of 0.990000 s' in texts(outputs)
    # Both samples have their cycle, and the set point by hand is forgotten.
    assert answered(outputs) == [3, 4]
    assert [output.set_point for output in outputs if isinstance(output, Answer)] == [0.0, 0.0]


def test_a_stamp_of_another_century_is_no_new_beginning(stream: Stream) -> None:
    stream.send(*range(100))
    outputs = stream.send(-(2**31) * 100, 100 - 2**31 * 100, 100)
    assert answered(outputs) == [100]
    assert stream.session.counts['invalid'] == 2
    assert any('allowed: stamps from 0 on' in text for text in texts(outputs))


def test_silence_of_sensors_that_are_there_is_an_emergency(stream: Stream) -> None:
    stream.send(*range(10))
    outputs = stream.silence(0.7)
    assert stream.session.state.emergency is Emergency.SENSOR_TIMEOUT
    errors = [output for output in outputs if isinstance(output, Note) and output.level == 'error']
    assert len(errors) == 1
    assert any(isinstance(output, Report) and output.level == 'error' for output in outputs)


def test_the_end_of_the_plant_closes_the_brake_and_is_no_error(stream: Stream) -> None:
    stream.send(*range(10))
    stream.publishers = 0
    outputs = stream.silence(5.0)
    assert stream.session.state.emergency is Emergency.SENSOR_TIMEOUT
    assert stream.session.state.command == Command(0.0, True)
    said = [output for output in outputs if isinstance(output, Note | Report)]
    assert not any(output.level == 'error' for output in said)
    # Both what it is and why.
    end = 'emergency mode: sensor timeout, the publisher of samples has ended'
    assert texts(outputs).count(f'{end}; the brake stays closed until ~/reset') == 1
    assert [output.text for output in said if isinstance(output, Report)][-1] == end


def test_silence_after_the_plant_has_come_back_is_an_error(stream: Stream) -> None:
    stream.send(*range(10))
    stream.publishers = 0
    stream.silence(0.2)
    stream.publishers = 1
    stream.send(40)
    outputs = stream.silence(0.7)
    assert any(isinstance(output, Note) and output.level == 'error' for output in outputs)


def test_an_emergency_stays_when_the_plant_has_ended(stream: Stream) -> None:
    stream.send(*range(10))
    stream.send(10, sample=Sample(6.0, False, True))
    stream.publishers = 0
    outputs = stream.silence(5.0)
    assert stream.session.state.emergency is Emergency.POSITION_LIMIT
    last = [output for output in outputs if isinstance(output, Report)][-1]
    assert last.level == 'error'
    assert last.text == 'emergency mode: position limit, the publisher of samples has ended'
    stream.send(0)
    assert stream.session.state.emergency is Emergency.POSITION_LIMIT


def test_diagnostics_recover(stream: Stream) -> None:
    def levels(*cycles: int) -> list[str]:
        return [output.level for output in stream.send(*cycles) if isinstance(output, Report)]

    assert levels(0) == ['ok']
    assert levels(1, 1, *range(3, 101)) == ['warn']
    assert levels(*range(101, 301)) == ['ok', 'ok']
    assert stream.session.counts == {'missed': 1, 'late': 0, 'duplicate': 1, 'invalid': 0}


def test_in_lockstep_time_zero_begins_anew_at_once(machinery: Machinery) -> None:
    stream = Stream(machinery, lockstep=True)
    stream.send(*range(100))
    assert answered(stream.send(0)) == [0]
