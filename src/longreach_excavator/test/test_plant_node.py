"""The excavator as a node: what it publishes and refuses."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from geometry_msgs.msg import WrenchStamped
from longreach_msgs.msg import HydraulicState, PinForces
from sensor_msgs.msg import JointState

from longreach_dynamics.errors import InputError
from longreach_dynamics.machine import BY_SCENARIO, step_time
from longreach_excavator import conversions
from longreach_excavator.machine import Excavator
from longreach_excavator.motion import HEAD, RATE, SIZE
from longreach_excavator.parameters import ExcavatorParameters
from longreach_excavator.plant_node import PlantNode
from longreach_excavator.scenario import dig_scenario, load_scenario
from longreach_excavator.state import CLOSED
from longreach_excavator.terrain import heights
from longreach_node.stamps import nanoseconds_of
from longreach_node.testing import bench, setting

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


@pytest.fixture
def scenario(tmp_path: Path) -> Path:
    file = tmp_path / 'scenario.yaml'
    file.write_text(SCENARIO)
    return file


def test_all_topics_are_the_librarys_run(standard: ExcavatorParameters, scenario: Path) -> None:
    kinds = {
        'joint_states': JointState,
        'hydraulics': HydraulicState,
        'reactions': PinForces,
        'soil_force': WrenchStamped,
    }
    with bench(*FAST, *setting('plant', scenario=scenario, duration=0.6)) as b:
        shown = {topic: b.listen(kind, topic) for topic, kind in kinds.items()}
        plant = b.add(PlantNode)
        b.until(plant.done.done, 'end')
        b.until(lambda: {len(messages) for messages in shown.values()} == {61}, '61 of each')
    machine = Excavator(standard, load_scenario(scenario, standard, 1e-3))
    state = machine.initial_state()
    for k in range(61):
        if k:
            state = machine.advance(state, BY_SCENARIO, step_time(k - 1, PERIOD), PERIOD)
        joints, hydraulics, reactions, soil = (messages[k] for messages in shown.values())
        seen = machine.observed(state)
        sample, header = machine.joint_sample(state, CLOSED), hydraulics.header
        assert (nanoseconds_of(header.stamp), header.frame_id) == (k * SAMPLE, 'excavator_base')
        assert joints.header.stamp == header.stamp
        assert (tuple(joints.name), tuple(joints.position)) == (sample.names, sample.positions)
        assert tuple(joints.velocity) == sample.velocities
        assert tuple(joints.effort) == sample.efforts
        vapour = standard.oil.vapour_pressure
        assert hydraulics == conversions.hydraulics_to_message(state.y, seen, vapour, header)
        assert reactions == conversions.reactions_to_message(seen, header)
        assert soil == conversions.soil_force_to_message(seen, header)
    # Worth comparing: soil, oil and the loose arm have done something.
    assert max(m.wrench.force.x for m in shown['soil_force']) > 1e3
    assert np.ptp([m.position[1] for m in shown['joint_states']]) > 0.02
    assert np.ptp([m.spool[0] for m in shown['hydraulics']]) > 0.1


def test_a_given_cohesion_is_used_instead_of_the_scenarios(scenario: Path) -> None:
    scenario.write_text(SCENARIO + 'cohesion: 1.0e+4\n')
    with bench(*FAST, *setting('plant', scenario=scenario, cohesion=3.0e3)) as b:
        assert b.add(PlantNode).machine.parameters.soil.cohesion == 3.0e3


@pytest.mark.parametrize(('held', 'said'), [('', 1), ('held: [boom, arm]', 0)])
def test_a_joint_that_moves_with_the_law_of_swing_is_said(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], held: str, said: int
) -> None:
    file = tmp_path / 'swing.yaml'
    commands = 'valve_commands: [{time: 0.0, spools: [0, 0, 1]}]'
    file.write_text(f'duration: 1.0\npose: dig\ndepth: swing\n{held}\n{commands}\n')
    with bench(*FAST, *setting('plant', scenario=file, duration=1.0)) as b:
        plant = b.add(PlantNode)
        b.until(plant.done.done, 'end')
    assert ''.join(capfd.readouterr()).count("assumes the bucket's joint D at rest") == said


def test_without_a_scenario_it_stands_at_the_soil_in_the_first_pose(
    standard: ExcavatorParameters,
) -> None:
    with bench(*FAST, *setting('plant', start_paused=True, command_timeout=0.05)) as b:
        joints, plant = b.listen(JointState, 'joint_states'), b.add(PlantNode)
        b.until(lambda: joints, 'first sample')
        assert list(joints[0].position)[:3] == standard.pose('dig').tolist()
        # Ground to be driven in, from the tooth on.
        surface = dig_scenario(depth='terrain').surface_height(standard)
        assert np.all(heights(plant.state.y[SIZE:]) == surface)
        assert surface == pytest.approx(plant.machine.observed(plant.state)['tip_z'])
        for _ in range(100):
            assert not plant.simulation.step_once()
        assert np.abs(plant.state.y[RATE:HEAD]).max() < 1e-3


def test_given_forces_end_with_their_scenario(tmp_path: Path) -> None:
    file = tmp_path / 'printed.yaml'
    file.write_text('duration: 0.1\npose: dig\nmode: printed\n')
    with bench(*FAST, *setting('plant', scenario=file)) as b:
        plant = b.add(PlantNode)
        b.until(plant.done.done, 'end')
    assert plant.state.forces[2] > 2e5
    late = setting('plant', scenario=file, duration=0.2)
    error = r'duration = 0\.2 s, allowed with mode: printed: up to that of the scenario, 0\.1 s'
    with bench(*FAST, *late) as b, pytest.raises(InputError, match=error):
        b.add(PlantNode)
