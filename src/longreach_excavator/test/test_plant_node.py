"""The excavator as a node: what it publishes, commands, and what it refuses."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from geometry_msgs.msg import WrenchStamped
from longreach_msgs.msg import HydraulicState, PinForces
from sensor_msgs.msg import JointState

from longreach_dynamics.errors import InputError
from longreach_dynamics.machine import BY_SCENARIO, step_time
from longreach_excavator.machine import Excavator
from longreach_excavator.motion import HEAD, RATE, ROD, SIZE, SOIL, SPOOL
from longreach_excavator.parameters import ExcavatorParameters
from longreach_excavator.plant_node import PlantNode
from longreach_excavator.scenario import dig_scenario, load_scenario
from longreach_excavator.state import CLOSED
from longreach_excavator.terrain import heights
from longreach_node.stamps import nanoseconds_of
from longreach_node.testing import Bench, bench, setting

SAMPLE = 10_000_000  # [ns]
PERIOD = 0.01  # [s]
# Oil, cylinders without oil, soil, and a change of valves within a sample.
SCENARIO = """
duration: 0.6
pose: dig
loose: [arm]
valve_commands:
  - {time: 0.0, spools: [0.0, 0.0, 1.0]}
  - {time: 0.303, spools: [0.4, 0.0, -0.5]}
"""


FAST = setting('plant', real_time_factor=0.0, publish_rate=1.0 / PERIOD)


@pytest.fixture(scope='module')
def excavator(standard: ExcavatorParameters) -> ExcavatorParameters:
    """What nodes run by default."""
    return standard


class Rig:
    """A plant, and all that listens to it."""

    def __init__(self, b: Bench) -> None:
        self.bench = b
        self.joints: list[JointState] = b.listen(JointState, 'joint_states')
        self.hydraulics: list[HydraulicState] = b.listen(HydraulicState, 'hydraulics')
        self.reactions: list[PinForces] = b.listen(PinForces, 'reactions')
        self.soil: list[WrenchStamped] = b.listen(WrenchStamped, 'soil_force')
        self.plant = b.add(PlantNode)
        b.until(lambda: self.hydraulics and self.joints, 'first sample')

    def run_to_the_end(self, count: int) -> None:
        self.bench.until(self.plant.done.done, 'end')
        topics = (self.joints, self.hydraulics, self.reactions, self.soil)
        self.bench.until(lambda: all(len(t) == count for t in topics), f'{count} of each')


@pytest.fixture
def scenario(tmp_path: Path) -> Path:
    file = tmp_path / 'scenario.yaml'
    file.write_text(SCENARIO)
    return file


@pytest.fixture
def standing() -> Iterator[Rig]:
    """An excavator that nobody drives, paused, in its first sample."""
    with bench(*FAST, *setting('plant', start_paused=True, command_timeout=0.05)) as b:
        yield Rig(b)


def advance(rig: Rig, samples: int) -> None:
    """Let a paused plant advance."""
    for _ in range(samples):
        assert not rig.plant.simulation.step_once()


def test_all_topics_are_the_librarys_run(excavator: ExcavatorParameters, scenario: Path) -> None:
    with bench(*FAST, *setting('plant', scenario=scenario, duration=0.6)) as b:
        rig = Rig(b)
        rig.run_to_the_end(61)
    machine = Excavator(excavator, load_scenario(scenario, excavator, 1e-3))
    state = machine.initial_state()
    for k in range(61):
        if k:
            state = machine.advance(state, BY_SCENARIO, step_time(k - 1, PERIOD), PERIOD)
        joints, hydraulics, reactions, soil = (
            messages[k] for messages in (rig.joints, rig.hydraulics, rig.reactions, rig.soil)
        )
        seen, y = machine.observed(state), state.y
        sample = machine.joint_sample(state, CLOSED)
        assert (tuple(joints.name), tuple(joints.position)) == (sample.names, sample.positions)
        assert tuple(joints.velocity) == sample.velocities
        assert tuple(joints.effort) == sample.efforts
        assert list(joints.position)[:3] == y[:RATE].tolist()
        assert list(joints.velocity)[:3] == y[RATE:HEAD].tolist()
        assert list(hydraulics.head_pressure) == y[HEAD:ROD].tolist()
        assert list(hydraulics.rod_pressure) == y[ROD:SPOOL].tolist()
        assert list(hydraulics.spool) == y[SPOOL:SOIL].tolist()
        assert list(hydraulics.head_flow) == [seen[f'head_flow_{n}'] for n in hydraulics.name]
        assert list(hydraulics.rod_flow) == [seen[f'rod_flow_{n}'] for n in hydraulics.name]
        for name, force in zip(reactions.name, reactions.force, strict=True):
            assert (force.x, force.z) == (seen[f'{name}_x'], seen[f'{name}_z'])
        assert (soil.wrench.force.x, soil.wrench.force.z) == (seen['soil_x'], seen['soil_z'])
        messages = (joints, hydraulics, reactions, soil)
        assert {nanoseconds_of(m.header.stamp) for m in messages} == {k * SAMPLE}
        assert {m.header.frame_id for m in messages[1:]} == {'excavator_base'}
    # Worth comparing: soil, oil and the loose arm have done something.
    assert max(m.wrench.force.x for m in rig.soil) > 1e3
    assert np.ptp([m.position[1] for m in rig.joints]) > 0.02
    assert np.ptp([m.spool[0] for m in rig.hydraulics]) > 0.1


def test_a_given_cohesion_is_used_instead_of_the_scenarios(
    excavator: ExcavatorParameters, scenario: Path
) -> None:
    with bench(*FAST, *setting('plant', scenario=scenario, duration=0.1, cohesion=3.0e3)) as b:
        rig = Rig(b)
        rig.run_to_the_end(11)
    given = load_scenario(scenario, excavator, 1e-3).replace(cohesion=3.0e3)
    machine = Excavator(excavator, given)
    state = machine.initial_state()
    for k in range(10):
        state = machine.advance(state, BY_SCENARIO, step_time(k, PERIOD), PERIOD)
    assert rig.soil[-1].wrench.force.x == machine.observed(state)['soil_x'] > 0.0


def test_the_bucket_stops_by_itself_when_it_has_swept(
    excavator: ExcavatorParameters, tmp_path: Path
) -> None:
    file = tmp_path / 'swept.yaml'
    file.write_text(
        'duration: 3.0\npose: dig\ncohesion: 5.0e+3\nsweep_deg: 20.0\n'
        'valve_commands: [{time: 0.0, spools: [0.0, 0.0, 1.0]}]\n'
    )
    with bench(*FAST, *setting('plant', scenario=file, duration=3.0)) as b:
        rig = Rig(b)
        rig.run_to_the_end(301)
    machine = Excavator(excavator, load_scenario(file, excavator, 1e-3))
    state = machine.initial_state()
    whole = machine.advance(state, BY_SCENARIO, 0.0, 3.0)
    assert whole.swept
    # One call of the library, or a sample at a time in the node.
    np.testing.assert_array_equal(rig.plant.state.y, whole.y)
    spools = [m.spool[2] for m in rig.hydraulics]
    assert max(spools) > 0.9
    assert abs(spools[-1]) < 1e-3


def test_without_a_scenario_it_stands_at_the_soil_in_the_first_pose(
    excavator: ExcavatorParameters, standing: Rig
) -> None:
    assert list(standing.joints[0].position)[:3] == excavator.pose('dig').tolist()
    # Ground to be driven in, from the tooth on.
    surface = dig_scenario(depth='terrain').surface_height(excavator)
    assert np.all(heights(standing.plant.state.y[SIZE:]) == surface)
    assert surface == pytest.approx(standing.plant.machine.observed(standing.plant.state)['tip_z'])
    advance(standing, 100)
    assert np.abs(standing.plant.state.y[RATE:HEAD]).max() < 1e-3


def test_given_forces_end_with_their_scenario(tmp_path: Path) -> None:
    file = tmp_path / 'printed.yaml'
    file.write_text('duration: 0.1\npose: dig\nmode: printed\n')
    with bench(*FAST, *setting('plant', scenario=file)) as b:
        rig = Rig(b)
        rig.run_to_the_end(11)
    assert rig.plant.state.forces[2] > 2e5
    late = setting('plant', scenario=file, duration=0.2)
    error = r'duration = 0\.2 s, allowed with mode: printed: up to that of the scenario, 0\.1 s'
    with bench(*FAST, *late) as b, pytest.raises(InputError, match=error):
        b.add(PlantNode)
