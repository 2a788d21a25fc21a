"""Forces and soil as they are seen, held against the mechanics."""

from __future__ import annotations

import numpy as np
import pytest

from longreach_dynamics.errors import InputError
from longreach_dynamics.machine import BY_SCENARIO
from longreach_excavator.machine import Excavator
from longreach_excavator.motion import RATE
from longreach_excavator.parameters import ExcavatorParameters, load_excavator
from longreach_excavator.scenario import Scenario, dig_scenario
from longreach_excavator.visuals import Arrow, force_arrows, soil_line

JOINT_ARROWS = ('boom_chassis', 'arm_boom', 'bucket_arm')


@pytest.fixture(scope='module')
def installed() -> ExcavatorParameters:
    return load_excavator()


def arrows_at(machine: Excavator, time: float) -> dict[str, Arrow]:
    """Return the arrows after a time of digging [s]."""
    state = machine.initial_state()
    if time:
        state = machine.advance(state, BY_SCENARIO, 0.0, time)
    found = force_arrows(machine.parameters, state, machine.observed(state))
    return {arrow.name: arrow for arrow in found}


def test_arrows_start_at_pins_and_tooth(installed: ExcavatorParameters) -> None:
    machine = Excavator(installed, dig_scenario())
    state = machine.advance(machine.initial_state(), BY_SCENARIO, 0.0, 1.0)
    arrows = force_arrows(installed, state, machine.observed(state))
    assert tuple(arrow.name for arrow in arrows) == (*JOINT_ARROWS, 'soil')
    angles = np.cumsum(state.y[:RATE])
    lengths = np.array([installed.boom.length, installed.arm.length, installed.bucket.length])
    steps = lengths * np.array([np.cos(angles), np.sin(angles)])
    places = np.vstack([np.zeros(2), np.cumsum(steps, axis=1).T])
    np.testing.assert_allclose([arrow.start for arrow in arrows], places, rtol=0.0, atol=1e-12)


def test_an_arrow_of_a_metre_is_fifty_kilonewtons(installed: ExcavatorParameters) -> None:
    machine = Excavator(installed, dig_scenario())
    arrows = arrows_at(machine, 0.0)
    # At rest, before the tooth pushes, what stands on the bucket's joint and its rod PK is the
    # bucket's weight; the boom's foot and its cylinder carry all.
    observed = machine.observed(machine.initial_state())
    weight = installed.gravity * installed.bucket.mass
    held = 50e3 * np.array(arrows['bucket_arm'].vector)
    held += [observed['pk_x'], observed['pk_z']]
    np.testing.assert_allclose(held, [0.0, weight], rtol=0.0, atol=1e-6 * weight)
    weight = installed.gravity * sum(
        link.mass for link in (installed.boom, installed.arm, installed.bucket)
    )
    held = 50e3 * np.array(arrows['boom_chassis'].vector)
    held += [observed['boom_x'], observed['boom_z']]
    np.testing.assert_allclose(held, [0.0, weight], rtol=0.0, atol=1e-6 * weight)


def test_the_soil_pushes_against_the_motion_of_the_tooth(installed: ExcavatorParameters) -> None:
    machine = Excavator(installed, dig_scenario())
    before, after = (arrows_at(machine, time)['soil'] for time in (1.0, 1.1))
    motion = np.subtract(after.start, before.start)
    push = np.array(after.vector)
    assert np.linalg.norm(push) > 0.1
    assert push @ motion < -0.9 * np.linalg.norm(push) * np.linalg.norm(motion)


def test_out_of_the_soil_nothing_pushes(installed: ExcavatorParameters) -> None:
    machine = Excavator(installed, dig_scenario().replace(soil=False))
    assert arrows_at(machine, 0.5)['soil'].vector == (0.0, 0.0)


def test_soil_reaches_from_the_tracks_to_beyond_the_tooth(installed: ExcavatorParameters) -> None:
    scenario = dig_scenario()
    line = soil_line(installed, scenario.surface_height(installed))
    assert line.shape == (2, 2)
    assert np.all(line[:, 1] == scenario.surface_height(installed))
    reach = installed.boom.length + installed.arm.length + installed.bucket.length
    assert 0.0 < line[0, 0] < reach < line[1, 0]


def test_no_soil_has_no_line(installed: ExcavatorParameters) -> None:
    free = Scenario(duration=1.0, pose='dig', soil=False)
    line = soil_line(installed, free.surface_height(installed))
    assert line.shape == (0, 2)


@pytest.mark.parametrize('surface', [float('nan'), float('inf')])
def test_impossible_surface_is_refused(installed: ExcavatorParameters, surface: float) -> None:
    with pytest.raises(InputError, match=f'surface = {surface} m, allowed: a finite height'):
        soil_line(installed, surface)
