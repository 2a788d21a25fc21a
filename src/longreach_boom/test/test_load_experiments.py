"""Tests of load experiments on the boom: from recordings to poses, predictions and parameters."""

import json

import numpy as np
import pytest

from longreach_boom.identification import BOOM, first_mode
from longreach_boom.measured_runs import CAMERAS, measured, poses_at_rest, releases, truth_of
from longreach_boom.parameters import load_boom
from longreach_boom.scenario import HangingLoad, Scenario
from longreach_boom.sensors import default_file, load_sensors
from longreach_boom.simulation import simulate
from longreach_dynamics.errors import InputError
from longreach_identification.dynamics import Settings, identify, problem_of
from longreach_identification.estimation import estimate
from longreach_identification.planning import plan
from longreach_identification.search import CONVERGED, INTERRUPTED

# So light that all pistons stick: the motion is smooth in all parameters.
LIGHT = 3.0
PLANTED = {'youngs_modulus': 1.95e11, 'beam_damping_scale': 1.4}


def release(mass, duration, time=0.5, pose='site'):
    return Scenario(
        duration=time + duration, pose=pose, loads=(HangingLoad(mass=mass),), release=(time,)
    )


def exact_dimensions(boom):
    free, values = BOOM.free_parameters(boom), BOOM.values(boom)
    return {entry.name: values[entry.name] for entry in free if entry.group == 'geometry'}


@pytest.fixture(scope='module')
def light(boom):
    """The planted boom, and a recording with typical sensors and cameras."""
    planted = BOOM.with_values(boom, PLANTED)
    scenario = release(LIGHT, 3.0)
    truth = truth_of(simulate(planted, scenario), scenario, 'light')
    return planted, measured(truth, load_sensors('typical'), CAMERAS, seed=5)


@pytest.fixture(scope='module')
def exact(boom):
    """A recording of the installed boom without errors of sensors."""
    scenario = release(LIGHT, 2.0)
    return measured(truth_of(simulate(boom, scenario), scenario, 'exact'), load_sensors(), CAMERAS)


def test_experiment_is_that_of_the_recording(boom, exact):
    experiment = BOOM.experiment(boom, exact)
    assert experiment.scenario.pose_deg == pytest.approx((70.0, -50.0, -35.0, -30.0), abs=1e-6)
    assert experiment.scenario.loads[0].mass == LIGHT
    assert experiment.scenario.release == (0.0,)
    assert experiment.start == 0.5
    # The message of the time before the recording is that of a latched topic.
    before = exact._replace(events=((-9.0, 'attach'), *exact.events))
    assert BOOM.experiment(boom, before) == experiment


def test_pose_from_inclinations_is_that_from_pistons(boom, exact):
    signals = {n: s for n, s in exact.signals.items() if not n.startswith('piston')}
    experiment = BOOM.experiment(boom, exact._replace(signals=signals))
    assert experiment.scenario.pose_deg == pytest.approx((70.0, -50.0, -35.0, -30.0), abs=1e-4)
    assert not experiment.by_pistons


def test_pose_from_inclinations_is_relative_to_the_truck():
    boom = load_boom(default_file().parent / 'boom_on_truck.yaml')
    scenario = release(90.0, 0.5)
    truth = truth_of(simulate(boom, scenario), scenario)
    shown = measured(truth, load_sensors())
    signals = {n: s for n, s in shown.signals.items() if not n.startswith('piston')}
    experiment = BOOM.experiment(boom, shown._replace(signals=signals))
    # The truck has pitched by 0.3 degrees.
    assert experiment.scenario.pose_deg == pytest.approx((70.0, -50.0, -35.0, -30.0), abs=2e-3)


def test_prediction_is_the_run_of_the_library(boom, exact):
    experiment = BOOM.experiment(boom, exact)
    wanted = {n: s for n, s in exact.signals.items() if not n.startswith('marker')}
    # The recording ends earlier for stamps that are early.
    early = experiment._replace(scenario=experiment.scenario.replace(duration=1.55))
    for one in (experiment, early):
        shown = BOOM.predict(boom, one, {n: s.times for n, s in wanted.items()})
        for name, signal in wanted.items():
            size = np.ptp(signal.values) + 1e-9 * np.abs(signal.values).max()
            assert np.abs(shown[name] - signal.values).max() < 1e-3 * size, name


@pytest.mark.parametrize(
    ('changes', 'message'),
    [
        ({'events': ()}, 'no event release or attach'),
        ({'conditions': {}}, 'payload = 0 kg'),
        ({'conditions': {'payload': 3.0, 'payload_beam': 9.0}}, 'payload_beam = 9, allowed'),
        ({'events': ((2.499, 'release'),)}, 'allowed: an event from 0 s to 2.45 s, within'),
        ({'events': ((-9.0, 'attach'),)}, 'exact has attach at -9 s, allowed: an event from 0 s'),
        ({'conditions': {'payload': 5e4}}, r'exact: payload = 50000 kg: no static .*\[70\.0, -5'),
        ({'signals': 'strain'}, 'the pose is unknown'),
        ({'signals': 'moved'}, 'cylinder_1 moved by 0.1 m'),
    ],
)  # fmt: skip
def test_recording_without_what_is_needed_is_refused(boom, exact, changes, message):
    signals = dict(exact.signals)
    if changes.get('signals') == 'strain':
        signals = {n: s for n, s in signals.items() if n.startswith('strain')}
    if changes.get('signals') == 'moved':
        s = signals['piston_1']
        moved = s.values + 0.1 * (s.times > 1.0)
        signals['piston_1'] = s._replace(values=moved)
    with pytest.raises(InputError, match=message):
        BOOM.experiment(boom, exact._replace(**{**changes, 'signals': signals}))


@pytest.mark.parametrize('count', [1, 3])
def test_what_follows_has_no_error_after_an_interruption(monkeypatch, boom, exact, count):
    predict, calls = type(BOOM).predict, []

    def interrupted(self, *arguments):
        if len(calls) == count:
            raise KeyboardInterrupt
        calls.append(arguments)
        return predict(self, *arguments)

    monkeypatch.setattr(type(BOOM), 'predict', interrupted)
    settings = Settings(signals=['strain_*'], duration=0.3)
    exact = exact._replace(events=(*exact.events, (1.5, 'attach')))
    found = identify(BOOM, boom, [exact], ['masses'], settings, processes=1)
    assert found.estimate.status == INTERRUPTED
    assert (
        'attach at 1.5 s is not compared, only the time up to 0.8 s' in found.estimate.warnings[0]
    )
    shown = found.to_dict()['derived']
    assert shown['first_frequency'] == {
        'value': first_mode(boom, BOOM.experiment(boom, exact))[0],
        'standard_error': None,
    }
    assert 'gauge_gain_1' not in shown


@pytest.mark.slow
def test_youngs_modulus_and_damping_are_identified(boom, light):
    planted, recording = light
    found = identify(
        BOOM, boom, [recording], ['youngs_modulus', 'beam_damping_scale'],
        Settings(signals=['strain_*', 'marker_marker_*', 'piston_*'], horizons=()), processes=1,
    )  # fmt: skip
    estimate = found.estimate
    assert estimate.status == CONVERGED
    # No piston moves by a step of its encoder: nothing tells how accurate their readings are.
    assert any('piston_1, piston_2' in text and 'never change' in text for text in found.notes)
    assert estimate.warnings == ()
    assert not any(name.startswith('piston') for name in estimate.fit)
    # The goals: 1 % of Young's modulus, 10 % of the first damping ratio, and honest intervals.
    for name, true in PLANTED.items():
        error = estimate.standard_errors[estimate.names.index(name)]
        assert abs(estimate.value(name) - true) < 4.0 * error, name
    assert estimate.value('youngs_modulus') == pytest.approx(1.95e11, rel=0.01)
    frequency, ratio = first_mode(planted, BOOM.experiment(boom, recording))
    assert found.derived['first_frequency'][0] == pytest.approx(frequency, rel=0.003)
    assert found.derived['first_damping_ratio'][0] == pytest.approx(ratio, rel=0.1)
    assert found.machine.youngs_modulus == estimate.value('youngs_modulus')
    json.dumps(found.to_dict(), allow_nan=False)


def test_late_stamps_of_cameras_are_unknown(boom, light):
    """Each clock has a delay in each recording, and the pose has a prior."""
    recording = light[1]
    second = recording._replace(name='other')
    problem = problem_of(BOOM, boom, [recording, second], ['youngs_modulus'])
    names = problem.names
    assert 'delay_cameras@light' in names
    assert 'delay_sensors@other' in names
    assert 'pose_4@other' in names
    shown = {u.name: u for u in problem.unknowns}
    assert shown['pose_4@other'].recording == 1


@pytest.mark.parametrize(
    ('settings', 'message'),
    [
        ({'parameters': ['weight']}, "parameter = 'weight', allowed: "),
        ({'signals': ['tension']}, 'has no signal tension'),
        ({'validation': ['light']}, 'all recordings are for validation'),
    ],
)
def test_bad_identification_is_refused(boom, light, settings, message):
    wanted = settings.pop('parameters', ['youngs_modulus'])
    with pytest.raises(InputError, match=message):
        problem_of(BOOM, boom, [light[1]], wanted, Settings(**settings))


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_intervals_hold_the_planted_values(boom):
    """Of draws of the noise alone; with errors of dimensions the intervals would be wider."""
    scenario, draws = release(LIGHT, 3.0), 8
    settings = Settings(signals=BEAMS, horizons=(), fixed=exact_dimensions(boom))
    truth = truth_of(simulate(BOOM.with_values(boom, PLANTED), scenario), scenario)
    inside = dict.fromkeys(PLANTED, 0)
    for seed in range(100, 100 + draws):
        recording = measured(truth, load_sensors('typical'), CAMERAS, seed)
        found = estimate(problem_of(BOOM, boom, [recording], list(PLANTED), settings))
        for name, value in PLANTED.items():
            low, high = found.interval(name)
            inside[name] += low <= value <= high
            assert high - low < 0.5 * value, name
    # With 95 % in each draw, fewer than 6 of 8 are inside in 0.6 % of such tests.
    assert min(inside.values()) >= draws - 2, inside


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_heavy_release_with_slipping_pistons_is_identified(boom):
    """With jumps of the prediction: the goals, and intervals that consider the jumps."""
    values = BOOM.values(boom)
    shares = {
        'youngs_modulus': 0.97,
        'beam_damping_scale': 1.3,
        'joint_damping_scale': 0.7,
        'bulk_modulus': 0.9,
        'coulomb_friction_1': 0.85,
        'coulomb_friction_2': 1.15,
        'coulomb_friction_3': 0.9,
        'coulomb_friction_4': 1.1,
        'static_friction_1': 1.2,
        'static_friction_2': 1.1,
        'static_friction_3': 0.85,
        'static_friction_4': 0.95,
    }
    planted = {name: share * values[name] for name, share in shares.items()}
    true, scenario = BOOM.with_values(boom, planted), release(90.0, 2.0, time=1.0)
    truth = truth_of(simulate(true, scenario), scenario, 'heavy')
    recording = measured(truth, load_sensors('typical'), CAMERAS, seed=3)
    found = identify(BOOM, boom, [recording], list(planted), progress=False)
    assert found.experiment.end == pytest.approx(3.0, abs=0.1)
    estimate, allowed = found.estimate, {'youngs_modulus': 0.01, 'joint_damping_scale': 0.25}
    for name, value in planted.items():
        error = abs(estimate.value(name) - value)
        assert error < allowed.get(name, 0.1) * value, name
        assert error < 4.0 * estimate.standard_errors[estimate.names.index(name)], name
    ratio = first_mode(true, BOOM.experiment(true, recording))[1]
    assert found.derived['first_damping_ratio'][0] == pytest.approx(ratio, rel=0.1)
    assert any('slip: whether a piston slips' in text for text in estimate.warnings)


SITE = (70.0, -50.0, -35.0, -30.0)
BEAMS = ['strain_*', 'marker_marker_*']


@pytest.fixture(scope='module')
def possible(boom):
    """Releases of masses so small that all pistons stick."""
    return releases(boom, [SITE], [1.0, 3.0], duration=2.0)


@pytest.fixture(scope='module')
def recordings(possible):
    return [recording for _, recording in possible.values()]


@pytest.mark.slow
def test_larger_motion_of_the_same_kind_is_better(boom, recordings):
    wanted = ['youngs_modulus', 'beam_damping_scale']
    settings = Settings(signals=BEAMS)
    found = plan(
        BOOM, boom, recordings, wanted, 2, settings, repeats=True, processes=1, progress=False
    )
    assert [choice.name for choice in found.choices] == ['3 kg at 70 -50 -35 -30'] * 2
    small, large = (found.alone[r.name] for r in recordings)
    # Errors are inverse to amplitudes, but for what dimensions and the prior of the pose add.
    ratios = [small[name] / large[name] for name in wanted]
    assert ratios[1] == pytest.approx(3.0, rel=0.2)
    assert 1.0 < ratios[0] < ratios[1]
    first, second = (choice.standard_errors for choice in found.choices)
    assert first[wanted[1]] / second[wanted[1]] == pytest.approx(2.0**0.5, rel=0.1)
    # Dimensions are no better known from a repetition.
    assert first[wanted[0]] / second[wanted[0]] < 1.2
    once = plan(BOOM, boom, recordings, wanted, 2, settings, processes=1, progress=False)
    assert {choice.name for choice in once.choices} == {r.name for r in recordings}


@pytest.mark.slow
def test_a_plan_that_is_followed_gives_the_errors_that_it_promised(boom):
    wanted = ['youngs_modulus', 'beam_damping_scale']
    truth = {'youngs_modulus': 1.95e11, 'beam_damping_scale': 1.3}
    possible = releases(boom, [SITE], [3.0, 90.0], duration=4.0)
    settings = Settings(signals=[*BEAMS, 'inclination_*'], horizons=())
    recordings = [recording for _, recording in possible.values()]
    found = plan(BOOM, boom, recordings, wanted, 1, settings, processes=1, progress=False)
    assert found.choices[0].name == '3 kg at 70 -50 -35 -30'
    scenario, _ = possible[found.choices[0].name]
    seen = truth_of(simulate(BOOM.with_values(boom, truth), scenario), scenario, 'release')
    for seed in range(3):
        recording = measured(seen, load_sensors('typical'), CAMERAS, seed)
        result = identify(BOOM, boom, [recording], wanted, settings, processes=1, progress=False)
        for name, promised in found.choices[0].standard_errors.items():
            estimate = result.estimate
            error = estimate.standard_errors[estimate.names.index(name)]
            assert 1.0 / 1.5 < error / promised < 1.5, name
            assert abs(estimate.value(name) - truth[name]) < 3.0 * promised, name


@pytest.mark.parametrize(
    ('settings', 'message'),
    [
        ({'recordings': []}, 'count = 1, allowed: 0 experiments'),
        ({'count': 3}, 'count = 3, allowed: 2 experiments, or repeats'),
    ],
)
def test_bad_plans_are_refused(boom, recordings, settings, message):
    wanted = {'recordings': recordings, 'count': 1, **settings}
    with pytest.raises(InputError, match=message):
        plan(BOOM, boom, parameters=['youngs_modulus'], processes=1, **wanted)


@pytest.mark.slow
def test_poses_of_another_boom_are_approached_as_slowly_as_it_needs(boom):
    small = boom.replace(beams=boom.beams[:2], cylinders=boom.cylinders[:2], poses=(), markers=())
    scenarios, recordings = poses_at_rest(small, 90.0)
    # 25 s are too short for some of the moves.
    assert all(scenario.duration > 12.0 + 8 * (25.0 + 12.0) for scenario in scenarios)
    assert {'inclination_tip_2', 'strain_2'} < set(recordings[1].signals)


@pytest.mark.slow
def test_the_model_of_the_data_is_the_best_and_others_absorb(boom, recordings):
    printed = boom.replace(ritz=boom.ritz.replace(basis='printed'))
    # Dimensions are the same for both.
    settings = Settings(signals=BEAMS, horizons=(), clocks={}, fixed=exact_dimensions(boom))
    # Without the search over growing durations, in which a wrong model ends as well.
    moment, other = (
        estimate(problem_of(BOOM, one, [recordings[1]], ['youngs_modulus'], settings))
        for one in (boom, printed)
    )
    assert other.aic > moment.aic + 10.0
    right, wrong = moment.value('youngs_modulus'), other.value('youngs_modulus')
    error = moment.standard_errors[moment.names.index('youngs_modulus')]
    assert right == pytest.approx(boom.youngs_modulus, rel=1e-3)
    assert abs(wrong - right) > 5.0 * error
