"""The installed scenarios."""

from pathlib import Path

import pytest

from longreach_symbolic.arm import arm_of, designed_arm
from longreach_symbolic.links import default_file, load_links
from longreach_symbolic.machine import FlexibleLinks
from longreach_symbolic.scenario import load_scenario
from longreach_symbolic.simulation import simulate

FILES = sorted((Path(__file__).resolve().parents[3] / 'config/scenarios').glob('links_*.yaml'))
LINKS = load_links()


@pytest.mark.parametrize('path', FILES, ids=lambda path: path.stem)
def test_installed_scenarios_can_be_run(path):
    scenario = load_scenario(path, LINKS)
    run = simulate(FlexibleLinks(LINKS, designed_arm(LINKS), scenario))
    assert run.status == 'complete'
    assert run.summary()['tip_error'] < (0.001 if scenario.circle else 0.1)
    # In the end the links are where they shall be, or draw on.
    assert run.column('tip_error')[-1] < 0.002


def test_the_gains_of_the_paper_are_stable_with_rotors_and_a_short_cycle():
    arm = arm_of(LINKS, default_file().parent / 'two_links_arm.yaml')
    scenario = load_scenario(FILES[0], LINKS).replace(duration=1.0)
    assert simulate(FlexibleLinks(LINKS, arm, scenario)).summary()['tip_error'] < 0.001
