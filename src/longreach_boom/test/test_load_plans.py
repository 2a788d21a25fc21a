"""Tests of the choice of load experiments, and of models compared on the same recording."""

from __future__ import annotations

import pytest

from longreach_boom.identification import BOOM
from longreach_boom.load_experiments import planned
from longreach_dynamics.errors import InputError
from longreach_identification.dynamics import compare, comparison
from longreach_identification.planning import plan

SITE, SPRAWLED = (70.0, -50.0, -35.0, -30.0), (0.0, 0.0, 0.0, 0.0)
BEAMS = ['strain_*', 'marker_marker_*']


@pytest.fixture(scope='module')
def possible(boom):
    """Releases of masses so small that all pistons stick."""
    return planned(boom, [SITE], [1.0, 3.0], duration=2.0)


@pytest.fixture(scope='module')
def recordings(possible):
    return [recording for _, recording in possible.values()]


def test_scenarios_can_be_run(boom, possible):
    for scenario, recording in possible.values():
        scenario.check_with(boom)
        assert recording.conditions['payload'] == scenario.loads[0].mass
    assert list(possible) == ['1 kg at 70 -50 -35 -30', '3 kg at 70 -50 -35 -30']


@pytest.mark.slow
def test_larger_motion_of_the_same_kind_is_better(boom, recordings):
    found = plan(
        BOOM, boom, recordings, ['youngs_modulus', 'beam_damping_scale'], 2, signals=BEAMS,
        processes=1, progress=False,
    )  # fmt: skip
    assert [choice.name for choice in found.choices] == ['3 kg at 70 -50 -35 -30'] * 2
    small, large = (found.alone[r.name]['youngs_modulus'] for r in recordings)
    # Errors are inverse to amplitudes, but for what the prior of the pose adds.
    assert small / large == pytest.approx(3.0, rel=0.2)
    first, second = (choice.standard_errors['youngs_modulus'] for choice in found.choices)
    assert first / second == pytest.approx(2.0**0.5, rel=0.1)


@pytest.mark.parametrize(
    ('settings', 'message'),
    [
        ({'criterion': 'E'}, "criterion = 'E', allowed: D"),
        ({'count': 0}, 'count = 0'),
        ({'recordings': []}, 'no possible experiment'),
    ],
)
def test_bad_plans_are_refused(boom, recordings, settings, message):
    wanted = {'recordings': recordings, 'count': 1, **settings}
    with pytest.raises(InputError, match=message):
        plan(BOOM, boom, parameters=['youngs_modulus'], processes=1, **wanted)


@pytest.mark.slow
def test_the_model_of_the_data_is_the_best_and_others_absorb(boom, recordings):
    printed = boom.replace(ritz=boom.ritz.replace(basis='printed'))
    found = compare(
        BOOM, {'printed': printed, 'moment': boom}, [recordings[1]], ['youngs_modulus'],
        signals=BEAMS, horizons=(), scatter=0, clocks={}, processes=1,
        progress=False,
    )  # fmt: skip
    rows = comparison(found)
    assert [row['model'] for row in rows] == ['moment', 'printed']
    assert rows[0]['aic'] == 0.0
    assert rows[1]['aic'] > 10.0
    (right, error), (wrong, _) = rows[0]['youngs_modulus'], rows[1]['youngs_modulus']
    assert right == pytest.approx(boom.youngs_modulus, rel=1e-3)
    assert abs(wrong - right) > 5.0 * error
