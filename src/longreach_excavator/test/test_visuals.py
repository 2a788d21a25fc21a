"""Forces and soil as they are seen, held against the mechanics."""

from __future__ import annotations

import numpy as np

from longreach_dynamics.machine import BY_SCENARIO
from longreach_excavator.machine import Excavator
from longreach_excavator.motion import RATE
from longreach_excavator.scenario import dig_scenario
from longreach_excavator.visuals import Arrow, force_arrows, soil_line


def arrows_at(machine: Excavator, time: float) -> dict[str, Arrow]:
    """Return the arrows after a time of digging [s]."""
    state = machine.initial_state()
    if time:
        state = machine.advance(state, BY_SCENARIO, 0.0, time)
    found = force_arrows(machine.parameters, state, machine.observed(state))
    return {arrow.name: arrow for arrow in found}


def test_arrows_start_at_pins_and_tooth(standard):
    machine = Excavator(standard, dig_scenario())
    state = machine.advance(machine.initial_state(), BY_SCENARIO, 0.0, 1.0)
    arrows = force_arrows(standard, state, machine.observed(state))
    assert [arrow.name for arrow in arrows] == ['boom_chassis', 'arm_boom', 'bucket_arm', 'soil']
    angles = np.cumsum(state.y[:RATE])
    lengths = np.array([standard.boom.length, standard.arm.length, standard.bucket.length])
    steps = lengths * np.array([np.cos(angles), np.sin(angles)])
    places = np.vstack([np.zeros(2), np.cumsum(steps, axis=1).T])
    np.testing.assert_allclose([arrow.start for arrow in arrows], places, rtol=0.0, atol=1e-12)


def test_an_arrow_of_a_metre_is_fifty_kilonewtons(standard):
    machine = Excavator(standard, dig_scenario())
    arrows, observed = arrows_at(machine, 0.0), machine.observed(machine.initial_state())
    links = (standard.boom, standard.arm, standard.bucket)
    # At rest the bucket's joint and its rod PK carry the bucket; the boom's foot and its cylinder
    # all.
    for arrow, part, carried in (('bucket_arm', 'pk', links[2:]), ('boom_chassis', 'boom', links)):
        weight = standard.gravity * sum(link.mass for link in carried)
        held = 50e3 * np.array(arrows[arrow].vector)
        held += [observed[f'{part}_x'], observed[f'{part}_z']]
        np.testing.assert_allclose(held, [0.0, weight], rtol=0.0, atol=1e-6 * weight)


def test_soil_reaches_from_the_tracks_to_beyond_the_tooth(standard):
    scenario = dig_scenario()
    line = soil_line(standard, scenario.surface_height(standard))
    assert np.all(line[:, 1] == scenario.surface_height(standard))
    reach = standard.boom.length + standard.arm.length + standard.bucket.length
    assert 0.0 < line[0, 0] < reach < line[1, 0]
    free = scenario.replace(soil=False)
    assert soil_line(standard, free.surface_height(standard)).shape == (0, 2)
