"""The installed scenarios, and the arm of the paper."""

from pathlib import Path

import pytest

from longreach_symbolic.arm import arm_of, designed_arm
from longreach_symbolic.links import default_file, load_links
from longreach_symbolic.machine import FlexibleLinks
from longreach_symbolic.scenario import load_scenario
from longreach_symbolic.simulation import simulate
from longreach_tools.testing import Outcome

FILES = sorted((Path(__file__).resolve().parents[3] / 'config/scenarios').glob('links_*.yaml'))
LINKS = load_links()
ARM = default_file().with_name('two_links_arm.yaml')


@pytest.mark.parametrize('path', FILES, ids=lambda path: path.stem)
def test_installed_scenarios_can_be_run(path):
    scenario = load_scenario(path, LINKS)
    run = simulate(FlexibleLinks(LINKS, designed_arm(LINKS), scenario))
    assert run.status == 'complete'
    assert run.summary()['tip_error'] < (0.001 if scenario.circle else 0.1)
    # In the end the links are where they shall be, or draw on.
    assert run.column('tip_error')[-1] < 0.002


def test_the_gains_of_the_paper_are_stable_with_rotors_and_a_short_cycle():
    arm = arm_of(LINKS, ARM)
    scenario = load_scenario(FILES[0], LINKS).replace(duration=1.0)
    assert simulate(FlexibleLinks(LINKS, arm, scenario)).summary()['tip_error'] < 0.001


def test_stability_is_tabulated(capsys):
    words = ('stability', '--arm', ARM)
    found = Outcome(capsys, 'links', *words, '--format', 'json').json
    radius = {(row['rotors'], row['scale']): row['radius'] for row in found['rows']}
    assert [value < 1.0 for value in radius[True, 1.0]] == [True, True, True, False, False, False]
    assert [value < 1.0 for value in radius[True, 0.25]] == [True, True, True, True, False, False]
    assert [value < 1.0 for value in radius[False, 1.0]] == [False] * 6
    assert 'of the arm' in Outcome(capsys, 'links', *words).out
