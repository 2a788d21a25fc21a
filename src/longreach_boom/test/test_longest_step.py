"""The step that the simulator chooses."""

from __future__ import annotations

import numpy as np
import pytest

from longreach_boom.kinematics import point_motion
from longreach_boom.machine import AUTOMATIC, Boom, longest_step
from longreach_boom.parameters import BoomParameters
from longreach_boom.scenario import Attachment, HangingLoad, Scenario
from longreach_boom.simulation import simulate
from longreach_boom.state import StateParts
from longreach_dynamics.errors import InputError, LongreachError
from longreach_dynamics.scenarios import ValveCommand

LOAD = HangingLoad(90.0)


@pytest.mark.parametrize('pose', ['sprawled', 'site', 'upright'])
def test_installed_boom_takes_two_steps_a_sample(boom: BoomParameters, pose: str) -> None:
    scenario = Scenario(duration=1.0, pose=pose, loads=(LOAD,), release=(0.5,))
    step = longest_step(boom, scenario)
    assert step == 2.5e-3
    Boom(boom, scenario, step).initial_state()


def test_times_of_the_scenario_are_whole_steps(boom: BoomParameters) -> None:
    late = ValveCommand(0.101, (0.1, 0.0, 0.0, 0.0))
    scenario = Scenario(duration=1.0, pose='site', valve_commands=(late,))
    assert longest_step(boom, scenario) == 1e-3
    odd = ValveCommand(0.1001234, (0.1, 0.0, 0.0, 0.0))
    with pytest.raises(InputError, match=r'0.005 s has no whole part .* give a step'):
        longest_step(boom, scenario.replace(valve_commands=(odd,)))


def test_sample_may_be_the_step(boom: BoomParameters, paper_boom: BoomParameters) -> None:
    scenario = Scenario(duration=1.0, pose='site')
    assert longest_step(boom, scenario, 2e-3) == 2e-3
    assert longest_step(paper_boom, scenario, 0.01) == pytest.approx(0.01 / 3, rel=1e-12)
    # Its directional valves are larger.
    assert longest_step(boom, scenario, 0.01) == 2.5e-3


def test_tip_stays_within_a_micrometre(boom: BoomParameters) -> None:
    scenario = Scenario(duration=2.0, pose='site', friction=False, loads=(LOAD,), release=(0.0,))
    tips = []
    for step in (2.5e-4, AUTOMATIC):
        parts = StateParts.of(simulate(boom, scenario, step).states, boom)
        tips.append(point_motion(boom, parts.q, parts.v, 3, boom.beams[3].length).position)
    error = np.linalg.norm(tips[1] - tips[0], axis=1).max()
    assert 0.0 < error < 1e-6


def test_library_chooses_it(boom: BoomParameters) -> None:
    scenario = Scenario(duration=0.2, pose='site', loads=(LOAD,), release=(0.0,))
    chosen = simulate(boom, scenario, AUTOMATIC).states
    assert np.array_equal(chosen, simulate(boom, scenario, 2.5e-3).states)


def test_loads_that_never_hang_together_are_not_added_up(boom: BoomParameters) -> None:
    changes = (Attachment(time=0.1, mass=12e3), Attachment(time=0.3, mass=12e3))
    scenario = Scenario(duration=0.5, pose='site', attach=changes, release=(0.2,))
    with pytest.raises(LongreachError, match='no static equilibrium'):
        longest_step(boom, scenario.replace(release=()))
    assert longest_step(boom, scenario) == 2.5e-3


def opened_to_the_end(boom: BoomParameters) -> Scenario:
    """All the way out with cylinder 4: at its end no oil flows through the open valve."""
    return Scenario(
        duration=6.0,
        pose=boom.poses[0].name,
        valve_commands=(ValveCommand(0.0, (0.0, 0.0, 0.0, 1.0)),),
    )


@pytest.mark.parametrize('laminar', [1e2, 1e4])
@pytest.mark.parametrize('wide', [1.0, 4.0])
def test_pressures_rest_at_the_end_of_a_stroke_with_an_open_valve(
    paper_boom: BoomParameters, laminar: float, wide: float
) -> None:
    boom = paper_boom
    cylinders = tuple(
        c.replace(valve=c.valve.replace(area=wide * c.valve.area)) for c in boom.cylinders
    )
    oil = boom.oil.replace(laminar_pressure=laminar)
    boom = boom.replace(cylinders=cylinders, oil=oil)
    scenario = opened_to_the_end(boom)
    step = longest_step(boom, scenario)
    assert step == (2.5e-3 if wide == 1.0 else pytest.approx(5e-3 / 6, rel=1e-12))
    run = simulate(boom, scenario, step)
    assert run.column('piston_4')[-1] == pytest.approx(boom.cylinders[3].stroke, abs=1e-3)
    for name, rest in (('p_head_4', oil.supply_pressure), ('p_rod_4', oil.tank_pressure)):
        np.testing.assert_allclose(
            run.column(name)[-100:], rest, rtol=0.0, atol=0.01 * oil.supply_pressure
        )


def test_a_step_too_long_for_the_valves_is_refused(boom: BoomParameters) -> None:
    cylinders = tuple(
        c.replace(valve=c.valve.replace(area=4.0 * c.valve.area)) for c in boom.cylinders
    )
    wide = boom.replace(cylinders=cylinders)
    scenario = opened_to_the_end(wide)
    with pytest.raises(
        InputError, match=r'step = 0\.0025 s, allowed .* large valves with a small oil volume'
    ):
        Boom(wide, scenario, 2.5e-3).initial_state()
    Boom(wide, scenario, 5e-4).initial_state()
