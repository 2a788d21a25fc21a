"""The fixed-step simulation against the one with located events."""

import boom_reference
import numpy as np
import pytest
from boom_reference import reference_run

from longreach_boom.kinematics import point_motion
from longreach_boom.machine import Boom
from longreach_boom.scenario import Attachment, HangingLoad, Scenario
from longreach_boom.simulation import simulate
from longreach_dynamics.hydraulics.friction import AT_ROD_END, INWARDS, OUTWARDS, STUCK
from longreach_dynamics.linkages import pistons_and_arms
from longreach_machine.scenarios import ValveCommand


def release(duration, friction):
    loads = (HangingLoad(90.0),)
    return Scenario(duration=duration, pose='site', loads=loads, release=(0.0,), friction=friction)


def tip(boom, states):
    """Return where the tip is (rows, 2) [m]."""
    n = boom.size * (1 + boom.ritz.functions)
    last = boom.size - 1
    q, v = states[:, :n], states[:, n : 2 * n]
    return point_motion(boom, q, v, last, boom.beams[last].length).position


def test_release_without_friction(boom):
    scenario = release(20.0, False)
    result = simulate(boom, scenario)
    states, _ = reference_run(Boom(boom, scenario), result.column('time'))
    error = tip(boom, result.states) - tip(boom, states)
    assert np.ptp(tip(boom, states)[:, 1]) > 0.4
    assert np.abs(error).max() < 1e-6  # goal: 1 mm


def test_steps_are_of_fourth_order(boom):
    scenario = release(1.0, False)
    times = np.arange(101) * 0.01
    states, _ = reference_run(Boom(boom, scenario), times, 1e-13, 1e-14)
    exact = tip(boom, states)
    errors = [
        np.abs(tip(boom, simulate(boom, scenario, step, 0.01).states) - exact).max()
        for step in (2e-3, 1e-3, 5e-4)
    ]
    orders = np.log2(np.array(errors[:-1]) / errors[1:])
    assert orders == pytest.approx(4.0, abs=0.2)


def test_release_with_friction_at_first(boom):
    scenario = release(1.0, True)
    result = simulate(boom, scenario, sample_time=1e-3)
    times = result.column('time')
    states, modes = reference_run(Boom(boom, scenario), times)
    assert np.abs(tip(boom, result.states) - tip(boom, states)).max() < 2e-7
    assert {STUCK, OUTWARDS, INWARDS} == set(modes.ravel().tolist())
    assert np.array_equal(result.columns_like('mode'), modes)


@pytest.mark.slow
def test_release_with_friction(boom, monkeypatch):
    # With longer ones the reference misses pistons that turn, and turn back.
    monkeypatch.setattr(boom_reference, '_LONGEST_STEP', 1e-4)
    times = np.arange(1601) * 5e-3
    states, modes = reference_run(Boom(boom, release(8.0, True)), times)
    for step, duration, most in ((1e-3, 4.0, 1e-6), (2.5e-4, 8.0, 1e-6)):
        result = simulate(boom, release(duration, True), step)
        rows = len(result.states)
        assert np.abs(tip(boom, result.states) - tip(boom, states[:rows])).max() < most
        assert np.mean(result.columns_like('mode') == modes[:rows]) > 0.999


@pytest.mark.parametrize('friction', [False, True])
def test_loads_and_valves(boom, friction):
    scenario = Scenario(
        duration=3.0,
        pose='site',
        loads=(HangingLoad(60.0),),
        release=(0.5,),
        attach=(Attachment(40.0, 'beam_3', 3.0, time=0.5), Attachment(20.0, time=1.2)),
        valve_commands=(
            ValveCommand(0.3, (0.4, 0.0, -0.5, 0.2)),
            ValveCommand(1.7, (0.0, -0.3, 0.0, -0.2)),
            ValveCommand(2.4, (0.0, 0.0, 0.0, 0.0)),
        ),
        friction=friction,
    )
    result = simulate(boom, scenario)
    states, _ = reference_run(Boom(boom, scenario), result.column('time'))
    error = np.abs(tip(boom, result.states) - tip(boom, states)).max()
    # Valves open and close at kinks, which no step falls on.
    assert error < 3e-6
    assert np.ptp(states[:, 0]) > 1e-2


def test_end_of_the_stroke(boom):
    cylinder = boom.cylinders[3]
    near = np.degrees(cylinder.linkage.angle(cylinder.stroke - 0.01))
    scenario = Scenario(
        duration=2.0,
        pose_deg=(60.0, -30.0, -20.0, float(near)),
        valve_commands=(
            ValveCommand(0.1, (0.0, 0.0, 0.0, 0.6)),
            ValveCommand(1.2, (0.0, 0.0, 0.0, -0.6)),
        ),
    )
    machine = Boom(boom, scenario)
    result = simulate(boom, scenario)
    states, modes = reference_run(machine, result.column('time'))
    pistons, _ = pistons_and_arms(machine.constants(()).linkage, states[:, :4])
    assert pistons[:, 3].max() == pytest.approx(cylinder.stroke, abs=1e-12)
    assert np.any(modes[:, 3] == AT_ROD_END)
    assert pistons[-1, 3] < cylinder.stroke - 1e-3
    assert np.abs(tip(boom, result.states) - tip(boom, states)).max() < 1e-5
