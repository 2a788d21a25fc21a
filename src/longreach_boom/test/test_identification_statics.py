"""Masses and gauges of a boom from poses at rest: planted values are found again."""

import re
from types import MappingProxyType

import numpy as np
import pytest

from longreach_boom.identification import BOOM
from longreach_boom.identification_statics import Setting, StaticBoom, load_at
from longreach_boom.machine import AUTOMATIC
from longreach_boom.measured_runs import measured, truth_of
from longreach_boom.model import Load, constants_of
from longreach_boom.scenario import HangingLoad, Scenario
from longreach_boom.sensors import Sensors, load_sensors
from longreach_boom.simulation import simulate
from longreach_boom.state import BoomState, piston_positions
from longreach_boom.statics import equilibrium, static_row
from longreach_dynamics.errors import InputError, LongreachError
from longreach_identification import statics as at_rest
from longreach_identification.machine import Recording
from longreach_identification.recordings import signal
from longreach_identification.statics import StaticPose, identify_statics, still_poses
from longreach_identification.stillness import Mean
from longreach_machine.trajectories import Waypoint

# Scales of masses and gains that nobody knows, and by how much the modulus is wrong.
MASSES, GAINS, MODULUS = (1.12, 0.87, 1.1, 0.9), (1.15, 0.82, 1.2, 0.9), 1.08
# Load at the tip [kg].
LOAD = 90.0
# Dimensions are exact; the results that matter.
EXACT = StaticBoom(BOOM, payload=0.0, geometry=False)
MAIN = ('mass_scale_1', 'mass_scale_2', 'gauge_sensitivity_1', 'gauge_sensitivity_2')


def planted_of(boom):
    """Return the boom that is measured."""
    E = MODULUS * boom.youngs_modulus
    values = {'youngs_modulus': E}
    for i, beam in enumerate(boom.beams):
        values[f'mass_scale_{i + 1}'] = MASSES[i]
        values[f'gauge_sensitivity_{i + 1}'] = GAINS[i] * beam.strain_gauge.gain / E
    return BOOM.with_values(boom, values)


def truth(boom):
    """Return the planted values of the parameters."""
    planted = planted_of(boom)
    values = BOOM.values(planted)
    return values | {f'mass_scale_{i + 1}': MASSES[i] for i in range(boom.size)}


def drawn(boom, random, noise=1.0, count=10, wrong=MappingProxyType({})):
    """
    Return poses of the planted boom, without and with a load, as sensors would show them.

    The friction left is a part of r_C that differs from pose to pose, with the sign of the last
    motion; all pressures, pistons and gauges have constant errors. ``wrong`` are dimensions of
    which the start file does not know, and the load over the one that is stated.
    """
    wrong = dict(wrong)
    load = LOAD * wrong.pop('payload', 1.0)
    planted = BOOM.with_values(planted_of(boom), wrong)
    N = boom.size
    low, high = planted.joint_limits().T
    low[0], high[0] = np.radians([10.0, 75.0])
    low = np.maximum(low, np.radians(-90.0))
    pressures = noise * 1e5 * random.standard_normal((2, N))
    pistons = noise * 3e-4 * random.standard_normal(N)
    poses = []
    for number, name in enumerate(('empty', 'loaded')):
        loads = (Load(load, N - 1, planted.beams[-1].length),) if number else ()
        stated = (Load(LOAD, N - 1, boom.beams[-1].length),) if number else ()
        biases = noise * 3e-5 * random.standard_normal(N)
        for k in range(count):
            angles = low + (high - low) * random.uniform(0.05, 0.95, N)
            row = static_row(planted, angles, loads)
            measured = {}
            directions = {}
            for i, cylinder in enumerate(planted.cylinders):
                sign = 1 if (k + i) % 2 else -1
                left = noise * sign * cylinder.friction.coulomb * random.uniform(0.0, 1.0)
                known = boom.cylinders[i]
                error = pressures[0, i] * known.head_area - pressures[1, i] * known.rod_area
                # Pressures times the areas of the start file.
                force = (row['force'][i] + left) * known.head_area / cylinder.head_area
                measured[f'force_{i + 1}'] = Mean(force + error, 1.0, 100)
                shown = row['strain'][i] + biases[i] + noise * 1e-7 * random.standard_normal()
                measured[f'strain_{i + 1}'] = Mean(shown, 1e-7, 100)
                directions[f'force_{i + 1}'] = sign
            positions = piston_positions(angles, constants_of(planted)) + pistons
            setting = Setting(tuple(positions.tolist()), False, stated)
            poses.append(StaticPose(name, 10.0 * k, 10.0 * k + 8.0, setting, measured, directions))
    return poses


def identified(boom, poses, **more):
    return identify_statics(BOOM.statics(), boom, poses, **more)


@pytest.fixture(scope='module')
def small(resized):
    return resized(2)


@pytest.fixture(scope='module')
def poses(small):
    return drawn(small, np.random.default_rng(1))


def test_exact_measurements_give_exact_values(small):
    poses = drawn(small, np.random.default_rng(1), noise=0.0)
    result = identify_statics(EXACT, small, poses)
    expected = truth(small)
    for name in result.parameters:
        assert result.estimate.value(name) == pytest.approx(expected[name], rel=1e-5), name
    # The model with these values is the boom that was measured.
    machines = BOOM.with_values(small, result.values()), planted_of(small)
    found, planted = (machine.beams[1].strain_gauge.gain for machine in machines)
    assert found == pytest.approx(planted, rel=1e-5)


@pytest.mark.slow
def test_goals_with_all_beams(boom):
    expected = truth(boom)
    inside, errors = [], []
    for seed in range(10):
        poses = drawn(boom, np.random.default_rng(100 + seed))
        # Dimensions are exact here.
        estimate = identify_statics(EXACT, boom, poses).estimate
        for i in range(1, 5):
            for family in ('mass_scale', 'gauge_sensitivity'):
                name = f'{family}_{i}'
                low, high = estimate.interval(name)
                inside.append(low < expected[name] < high)
                errors.append(abs(estimate.value(name) / expected[name] - 1.0))
    assert np.mean(inside) >= 0.9
    assert np.median(errors) < 0.003
    assert np.quantile(errors, 0.95) < 0.01


@pytest.mark.slow_after(1)
@pytest.mark.parametrize(
    ('wrong', 'shift'),
    [
        ('length_scale_2', 1.01),
        ('lever_scale_1', 0.99),
        ('area_scale_2', 1.01),
        ('stiffness_scale_1', 1.01),
        ('mass_taper_2', 0.01),
        ('gauge_shift_1', 0.01),
        ('payload', 1.01),
    ],
)
def test_intervals_hold_with_a_wrong_dimension(small, wrong, shift):
    expected = truth(small)

    def held(statics):
        inside = []
        for seed in range(3):
            poses = drawn(small, np.random.default_rng(20 + seed), wrong={wrong: shift})
            estimate = identify_statics(statics, small, poses).estimate
            for name in MAIN:
                low, high = estimate.interval(name)
                inside.append(low < expected[name] < high)
        return float(np.mean(inside))

    assert held(BOOM.statics()) >= 0.9
    if wrong in ('length_scale_2', 'payload'):
        # Taken for exact, it makes errors that no interval shows.
        assert held(EXACT) < 0.7


def test_a_payload_that_is_far_from_what_was_stated_is_named(small):
    poses = drawn(small, np.random.default_rng(3), wrong={'payload': 1.06})
    assert any(
        text.startswith('payload_scale = 1.0') for text in identified(small, poses).warnings
    )


def test_what_a_wrong_dimension_would_change(small, poses):
    told = identified(small, poses).sensitivity['length_scale_2']
    exact = identify_statics(EXACT, small, poses).estimate
    longer = BOOM.with_values(small, {'length_scale_2': 1.01})
    tip = (Load(LOAD, 1, longer.beams[1].length),)
    far = [
        pose._replace(setting=pose.setting._replace(loads=tip)) if pose.setting.loads else pose
        for pose in poses
    ]
    moved = identify_statics(EXACT, longer, far).estimate
    for name in MAIN:
        change = 1.0 - moved.value(name) / exact.value(name)
        assert told[name] == pytest.approx(-change, rel=0.2, abs=1e-3), name


def test_friction_is_found_from_both_directions(small):
    poses = drawn(small, np.random.default_rng(5), count=12)
    estimate = identified(small, poses).estimate
    for i, cylinder in enumerate(small.cylinders):
        low, high = estimate.interval(f'left_friction_{i + 1}')
        # The mean of what is left is half of r_C here.
        assert low < 0.5 * cylinder.friction.coulomb < high
    # The scatter is that of the friction, uniform over r_C, and not that of the sensors.
    level = estimate.fit['force_1'].deviation
    assert level == pytest.approx(small.cylinders[0].friction.coulomb / 12.0**0.5, rel=0.4)


@pytest.mark.slow
@pytest.mark.parametrize('seed', range(4))
def test_the_noise_of_few_poses_is_that_of_their_means_at_least(small, seed):
    fit = identified(small, drawn(small, np.random.default_rng(seed), count=4)).estimate.fit
    assert min(fit[f'strain_{i}'].deviation for i in (1, 2)) >= 1e-7


def test_the_result_is_a_prior_for_the_dynamics(small, poses):
    result = identified(small, poses)
    prior = result.prior()
    assert prior.mean == pytest.approx([result.estimate.value(n) for n in result.parameters])
    assert prior.names == result.parameters
    assert 'youngs_modulus' in prior.names
    assert np.linalg.eigvalsh(prior.covariance / np.outer(prior.mean, prior.mean)).min() > 0.0


def changed(pose, name, direction):
    return pose._replace(directions={**pose.directions, name: direction})


def gauges_alone(pose):
    shown = {name: mean for name, mean in pose.measured.items() if name.startswith('strain')}
    return pose._replace(measured=shown)


def test_poses_from_one_direction(small, poses):
    one = [changed(pose, 'force_2', -1) for pose in poses]
    with pytest.raises(InputError) as caught:
        identified(small, one)
    assert str(caught.value) == (
        'force_2: the last motion before all poses was in the same direction (retracting), so that'
        ' friction and mass cannot be told apart; approach poses from both sides'
    )
    with pytest.raises(InputError, match=r'force_2: its actuator moved before none.* stuck'):
        identified(small, [changed(pose, 'force_2', 0) for pose in poses])
    # Strains alone know no friction; with a known load they determine masses.
    by_gauges = identified(small, [gauges_alone(pose) for pose in one])
    low, high = by_gauges.estimate.interval('mass_scale_2')
    assert low < MASSES[1] < high
    assert 'left_friction_2' not in by_gauges.estimate.names
    assert by_gauges.warnings == ()
    # Directions that are unknown.
    some = [changed(poses[0], 'force_1', 0), *poses[1:]]
    result = identified(small, some)
    assert any('force_1: not used in 1 of 20 poses' in text for text in result.notes)
    assert result.warnings == ()
    assert np.isnan(result.residuals['force_1'][0])
    assert np.isfinite(result.residuals['strain_1'][0])
    once = [changed(pose, 'force_1', -1 if k else 1) for k, pose in enumerate(poses)]
    assert any('only 1 pose was approached' in text for text in identified(small, once).warnings)


@pytest.mark.parametrize(
    ('gauge', 'number', 'change', 'text'),
    [
        ('strain_2', 3, lambda m: m._replace(value=m.value + 1e-5), '.* model .* empty at 30 s'),
        ('strain_2', 3, lambda m: m._replace(standard_error=1e-4), 'strain_2 moves or is noisy'),
        ('strain_2', None, lambda _: None, 'gauge_sensitivity_2: not estimated, as their gauges'),
        ('strain_1', None, lambda m: m._replace(value=10.0 * m.value), 'gauge_sensitivity_1 is'),
    ],
)
def test_gauges_that_are_wrong_are_named(small, poses, gauge, number, change, text):
    def wrong(pose):
        shown = {**pose.measured, gauge: change(pose.measured[gauge])}
        return pose._replace(measured={name: mean for name, mean in shown.items() if mean})

    some = [wrong(pose) if number in (None, k) else pose for k, pose in enumerate(poses)]
    assert any(re.match(text, one) for one in identified(small, some).warnings)


def test_a_position_that_stands_while_others_move_is_named(small, poses):
    def stands(pose):
        positions = (pose.setting.positions[0], 0.2 if pose.recording == 'loaded' else 0.0)
        return pose._replace(setting=pose.setting._replace(positions=positions))

    told = at_rest._check_stuck(BOOM.statics(), [stands(poses[0]), *map(stands, poses[10:])])
    assert told == [
        'piston_2 of loaded is the same in all 10 poses, while others move: is its sensor stuck?'
    ]


@pytest.mark.slow_after(1)
@pytest.mark.parametrize(
    ('first', 'second', 'sign', 'told'),
    [
        ('strain_1', 'strain_2', 1.0, ['looks like strain_2', 'looks like strain_1']),
        ('strain_2', 'strain_2', -1.0, ['is its sign wrong?']),
    ],
)
def test_gauges_that_are_not_what_they_seem(small, poses, first, second, sign, told):
    def wrong(pose):
        m = pose.measured
        one, other = (mean._replace(value=sign * mean.value) for mean in (m[first], m[second]))
        return pose._replace(measured={**m, first: other, second: one})

    assert not any('does not follow' in text for text in identified(small, poses).warnings)
    warnings = identified(small, [wrong(pose) for pose in poses]).warnings
    assert [text for text in warnings if 'does not follow' in text] == [
        text for part in told for text in warnings if part in text
    ]


@pytest.mark.parametrize('times', [1, 2])
def test_residuals_of_few_poses_seldom_depend_by_chance(small, poses, times):
    random, page, told = np.random.default_rng(1), BOOM.statics(), []
    pistons = np.array([pose.setting.positions[0] for pose in poses[:8]])
    for _ in range(100):
        rest = {f'force_{i}': random.standard_normal(8) for i in range(10)}
        rest['force_1'] = pistons + 1e-3 * rest['force_1']
        # Friction leaves the same in a pose each time.
        rest = {name: np.tile(shown, times) for name, shown in rest.items()}
        told += at_rest._check_residuals(
            page, poses[:8] * times, rest, np.tile(np.arange(8.0), times)
        )
    related = ['force_1 depend on piston_1' in text for text in told if 'depend on' in text]
    # With one limit for any number of poses and tests there were 10 times as many others.
    assert related.count(True) == 100
    assert related.count(False) < 5


def test_poses_from_two_kinds_of_sensors(small, poses):
    page, few = BOOM.statics(), poses[:8]
    inclined = [pose._replace(setting=pose.setting._replace(inclined=True)) for pose in few]
    loaded = [
        pose._replace(setting=pose.setting._replace(loads=(HangingLoad(9.0).on(small),)))
        for pose in few
    ]
    alike = at_rest._first_alike(page, [*few, *inclined, *loaded])
    assert alike.tolist() == [*range(16), *range(8)]
    # A piston that does not move shows noise.
    still = [
        pose._replace(setting=pose.setting._replace(positions=(p, 0.3 + 1e-4 * (k % 3))))
        for k, pose in enumerate(few * 2)
        for p in pose.setting.positions[:1]
    ]
    again = at_rest._first_alike(page, still).tolist()
    assert again == at_rest._first_alike(page, still[:8]).tolist() * 2
    rest = np.random.default_rng(1).standard_normal(16)
    rest[8:] = [pose.setting.positions[0] for pose in few]
    told = at_rest._check_residuals(page, [*few, *inclined], {'force_1': rest}, np.zeros(16))
    (said,) = (text for text in told if 'depend on' in text)
    assert 'force_1 depend on inclination_root_1 (correlation 1.00)' in said


def test_requests_that_are_none(small, poses):
    with pytest.raises(InputError, match='there are 2 poses at rest, allowed: at least 3'):
        identified(small, poses[:2])
    with pytest.raises(InputError, match=r"parameter 'weights', allowed: mass_scale_1"):
        identified(small, poses, parameters=['weights'])


def test_poses_from_inclinations(boom):
    statics = BOOM.statics()
    angles = np.radians([50.0, -20.0, -30.0, 10.0])
    rest = equilibrium(boom, angles)
    state = BoomState(rest.state(np.zeros(4)), np.zeros(4, dtype=np.int64))
    shown = Sensors(boom, load_sensors(), 200.0).read(state, 0)
    setting = Setting(tuple(shown['inclination'][:4].tolist()), True, ())
    pose = StaticPose('a', 0.0, 1.0, setting, {}, {f'force_{i}': 1 for i in range(1, 5)})
    model = statics.model(boom, [pose])
    forces = model({})
    for i in range(4):
        assert forces[f'force_{i + 1}'][0] == pytest.approx(rest.forces[i], rel=1e-7)
    impossible = pose._replace(setting=Setting((0.0, 3.0, 0.0, 0.0), True, ()))
    with pytest.raises(LongreachError, match='within the strokes has inclination_root_2 = 3 rad'):
        statics.model(boom, [impossible])({})


def test_loads(boom):
    times = np.arange(10.0)
    signals = {'piston_1': signal(times, times)}
    tip = (Load(90.0, 3, 9.0),)
    hanging = Recording('a', signals, (), {'payload': 90.0})
    assert load_at(boom, hanging, 5.0) == tip
    assert load_at(boom, Recording('a', signals), 5.0) == ()
    released = hanging._replace(events=((4.0, 'release'),))
    assert (load_at(boom, released, 3.0), load_at(boom, released, 5.0)) == (tip, ())
    attached = hanging._replace(events=((4.0, 'attach'), (7.0, 'release')))
    assert [load_at(boom, attached, t) for t in (3.0, 5.0, 8.0)] == [(), tip, ()]
    place = {'payload': 50.0, 'payload_beam': 3.0, 'payload_position': 4.0}
    assert load_at(boom, Recording('a', signals, (), place), 0.0) == (Load(50.0, 2, 4.0),)
    for conditions, match in (
        ({'weight': 1.0}, "condition = 'weight', allowed: payload . payload_beam"),
        ({'payload': 1.0, 'payload_beam': 9.0}, 'payload_beam = 9, allowed: 1 to 4'),
        ({'payload': 1.0, 'payload_position': 90.0}, r'a: payload: position = 90 m, allowed'),
        ({'payload': -1.0}, 'a: payload = -1 kg, allowed: 0 kg or more; .* --payload a=MASS'),
    ):
        with pytest.raises(InputError, match=match):
            load_at(boom, Recording('a', signals, (), conditions), 0.0)


@pytest.fixture(scope='module')
def recording(boom):
    """A run of the last two joints, up and down, with typical sensors."""
    points = [
        Waypoint(time=start + hold, angles_deg=(70.0, -50.0, third, fourth))
        for start, third, fourth in (
            (5.0, -20.0, -35.0),
            (20.0, -30.0, -45.0),
            (35.0, -20.0, -35.0),
        )
        for hold in (0.0, 10.0)
    ]
    loads = (HangingLoad(90.0),)
    scenario = Scenario(duration=45.0, pose='site', trajectory=tuple(points), loads=loads)
    run = simulate(boom, scenario, AUTOMATIC)
    return measured(truth_of(run, scenario, 'up_and_down'), load_sensors('typical'))


def test_stretches_of_a_simulated_recording(boom, recording):
    poses, lines = still_poses(BOOM.statics(), boom, [recording], shortest=3.0)
    assert len(poses) == sum(' used, directions ' in line for line in lines) == 3
    assert [pose.directions['force_4'] for pose in poses] == [-1, -1, 1]
    assert [pose.directions['force_3'] for pose in poses] == [1, -1, 1]
    expected = static_row(boom, np.radians([70.0, -50.0, -30.0, -45.0]), (Load(90.0, 3, 9.0),))
    # Within the static friction and the biases of the pressures.
    for i, cylinder in enumerate(boom.cylinders):
        measured = poses[1].measured[f'force_{i + 1}']
        allowed = cylinder.friction.static + 2e5 * cylinder.head_area
        assert abs(measured.value - expected['force'][i]) < allowed
    # Joints 1 and 2 were never moved far, or in one direction only.
    with pytest.raises(InputError, match='cannot be told apart'):
        identified(boom, poses)
    # Without encoders the joints tell the same.
    without = recording._replace(
        signals={k: v for k, v in recording.signals.items() if not k.startswith('piston')}
    )
    inclined, _ = still_poses(BOOM.statics(), boom, [without], shortest=3.0)
    assert inclined[1].setting.inclined
    assert [pose.directions['force_3'] for pose in inclined] == [1, -1, 1]
    # So they do without one encoder, and with a gap in an inclination while nothing moves.
    shown = {k: v for k, v in recording.signals.items() if k != 'piston_3'}
    tip = shown['inclination_tip_2']
    gap = np.where(np.abs(tip.times - 8.0) < 0.05, np.nan, tip.values)
    shown['inclination_tip_2'] = tip._replace(values=gap)
    again, _ = still_poses(BOOM.statics(), boom, [recording._replace(signals=shown)], shortest=3.0)
    assert [pose.directions for pose in again] == [pose.directions for pose in inclined]
    assert [pose.setting for pose in again] == [pose.setting for pose in inclined]


def test_a_gauge_with_another_clock_moves_at_rest(boom, recording):
    def moves(late):
        """Return the largest standard error of strain_4 at rest over its range."""
        shown = recording.signals['strain_4']
        shifted = {'strain_4': shown._replace(times=shown.times + late)}
        other = recording._replace(signals=dict(recording.signals) | shifted)
        found, _ = still_poses(BOOM.statics(), boom, [other], shortest=3.0)
        means = [pose.measured['strain_4'] for pose in found]
        return max(mean.standard_error for mean in means) / np.ptp([mean.value for mean in means])

    assert [moves(late) > 0.03 for late in (0.0, 1.0, 6.0, -6.0)] == [False, False, True, True]


def test_recordings_that_are_of_no_use(boom, recording):
    def without(*families):
        kept = {k: v for k, v in recording.signals.items() if not k.startswith(families)}
        return recording._replace(signals=kept)

    statics = BOOM.statics()
    with pytest.raises(InputError, match=r'lacks p_rod_1.*topic sensors/pressure or hydraulics'):
        still_poses(statics, boom, [without('p_rod')])
    with pytest.raises(InputError, match=r'lacks piston_1.*or instead inclination_root_1'):
        still_poses(statics, boom, [without('piston', 'inclination')])
    with pytest.raises(InputError, match='no stretch in which the machine stands still for 12 s'):
        still_poses(statics, boom, [recording], shortest=12.0)
    with pytest.raises(InputError, match='no two alike'):
        still_poses(statics, boom, [recording, recording])
    shown = recording.signals['p_head_2']
    values = shown.values.copy()
    values[100:110] = np.nan
    gap = {'p_head_2': shown._replace(values=values)}
    broken = recording._replace(signals=recording.signals | gap)
    with pytest.raises(InputError, match=r'p_head_2 in up_and_down is not finite in 10 of'):
        still_poses(statics, boom, [broken])
