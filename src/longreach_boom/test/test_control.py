"""The valve equation solved for the spool, and the controller: alone and in the loop."""

import itertools
import math
from pathlib import Path

import numpy as np
import pytest

from longreach_boom.follower import BoomFollower
from longreach_boom.machine import SAMPLE_TIME, STEP, Boom
from longreach_boom.model import constants_of
from longreach_boom.scenario import Scenario, load_scenario
from longreach_boom.simulation import following, simulate
from longreach_boom.state import piston_positions, rate_limits
from longreach_dynamics.errors import InputError
from longreach_dynamics.hydraulics import PumpParameters, pressure_rates, spool_positions
from longreach_dynamics.hydraulics.friction import STUCK
from longreach_machine.scenarios import ValveCommand
from longreach_machine.trajectories import Reference, Trajectory, Waypoint

SITE = (70.0, -50.0, -35.0, -30.0)
SCENARIOS = Path(__file__).resolve().parents[3] / 'config' / 'scenarios'


@pytest.fixture(scope='module')
def wave(boom):
    return load_scenario(SCENARIOS / 'boom_wave.yaml', boom, STEP)


def tuned(boom, **changes):
    """Return the boom with another controller."""
    return boom.replace(controller=boom.controller.replace(**changes))


def with_valves(boom, share=1.0, static=1.0, **changes):
    """Return the boom with other valves, and other static friction."""
    return boom.replace(
        cylinders=tuple(
            c.replace(
                valve=c.valve.replace(area=share * c.valve.area, **changes),
                friction=c.friction.replace(static=static * c.friction.static),
            )
            for c in boom.cylinders
        )
    )


@pytest.mark.parametrize('sign', [1.0, -1.0])
def test_in_steady_motion_it_is_the_printed_equation(sign, paper_boom):
    boom = paper_boom
    p = constants_of(boom).actuators
    head = np.full(4, 200e5)
    drop = p.supply - head if sign > 0.0 else head - p.tank
    # What leaves one side and what enters the other fit the areas.
    other = (p.rod_area / p.head_area) ** 2 * drop
    rod = p.tank + other if sign > 0.0 else p.supply - other
    velocities = sign * np.array([0.01, 0.02, 0.01, 0.03])
    spools = spool_positions(p, velocities, np.full(4, 0.5), head, rod)
    opening = p.head_area * np.abs(velocities)
    opening /= boom.oil.contraction * np.sqrt(2.0 / boom.oil.density * drop)
    expected = p.dead_band + (1.0 - p.dead_band) * opening / p.head_opening
    # But for the laminar pressure.
    np.testing.assert_allclose(spools, sign * expected, rtol=1e-5)


class Stand:
    """A controller with pistons that are put where a test wants them."""

    def __init__(self, boom, sample_time=SAMPLE_TIME):
        self.control = BoomFollower(boom, None, sample_time).controller
        self.memory = self.control.initial_state()
        self.target = piston_positions(np.radians(SITE), constants_of(boom))
        self.head, self.rod = np.full(4, 150e5), np.full(4, 100e5)

    def cycle(self, errors, rates=(0.0,) * 4, head=None):
        reference = Reference(np.radians(SITE), np.array(rates))
        pistons = self.target - np.array(errors)
        head = self.head if head is None else head
        self.memory, spools = self.control.cycle(self.memory, pistons, head, self.rod, reference)
        return spools


def test_the_piston_velocity_is_feed_forward_and_error(boom):
    stand = Stand(boom)
    rates = np.array([0.01, -0.02, 0.03, -0.04])
    errors = np.array([1e-3, 1e-3, -1e-3, 0.0])
    spools = stand.cycle(errors, rates)
    arms = [c.linkage.arm(a) for c, a in zip(boom.cylinders, np.radians(SITE), strict=True)]
    wanted = arms * rates + boom.controller.proportional_gain * errors
    p = constants_of(boom).actuators
    expected = spool_positions(p, wanted, stand.target - errors, stand.head, stand.rod)
    np.testing.assert_allclose(spools, expected, rtol=1e-12)
    # The integral acts from the next cycle on.
    growth = boom.controller.integral_gain * SAMPLE_TIME * errors
    np.testing.assert_allclose(stand.memory.integral, growth, rtol=1e-12)
    again = stand.cycle(errors, rates)
    expected = spool_positions(p, wanted + growth, stand.target - errors, stand.head, stand.rod)
    np.testing.assert_allclose(again, expected, rtol=1e-12)


def test_spools_and_velocities_are_limited(boom):
    np.testing.assert_array_equal(Stand(boom).cycle([0.2, -0.2, 0.2, -0.2]), [1, -1, 1, -1])
    slow = tuned(boom, maximum_velocity=0.01)
    errors = np.array([0.2, -0.2, 0.2, -0.2])
    stand = Stand(slow)
    p, velocities = constants_of(slow).actuators, 0.01 * np.sign(errors)
    expected = spool_positions(p, velocities, stand.target - errors, stand.head, stand.rod)
    np.testing.assert_allclose(stand.cycle(errors), expected, rtol=1e-12)


@pytest.mark.parametrize(('limit', 'error'), [('maximum_velocity', 0.2), ('valve', 0.04)])
def test_the_integral_does_not_grow_when_no_faster_is_possible(limit, error, boom):
    if limit == 'valve':
        boom = with_valves(boom, 0.1)
    stand = Stand(boom)
    for _ in range(200):
        stand.cycle([error, -error, error, -error])
    np.testing.assert_array_equal(stand.memory.integral, np.zeros(4))
    # Back it goes at once.
    stand.memory = stand.memory._replace(integral=np.array([3e-3, -3e-3, 3e-3, -3e-3]))
    stand.cycle([-1e-3, 1e-3, -1e-3, 1e-3])
    assert np.all(np.abs(stand.memory.integral) < 3e-3)


def test_the_integral_has_a_bound_of_its_own(boom):
    gains = boom.controller
    bound = 10.0 * gains.integral_gain * SAMPLE_TIME * 1e-3
    stand = Stand(tuned(boom, integral_limit=bound))
    for _ in range(30):
        stand.cycle([1e-3, -1e-3, 1e-3, -1e-3], rates=(1e-4,) * 4)
    np.testing.assert_array_equal(stand.memory.integral, bound * np.array([1, -1, 1, -1]))


def test_a_load_beyond_the_supply_leaves_the_valve_closed(boom):
    stand = Stand(boom)
    too_much = np.full(4, 400e5)
    stand.rod = np.full(4, 5e5)
    np.testing.assert_array_equal(stand.cycle([0.01] * 4, head=too_much), np.zeros(4))
    np.testing.assert_array_equal(stand.memory.integral, np.zeros(4))


def test_the_valve_closes_at_rest_and_opens_again_with_hysteresis(boom):
    gains = boom.controller
    between = (gains.closing_error + gains.opening_error) / 2.0
    below, above = 0.9 * gains.closing_error, 1.1 * gains.opening_error
    stand = Stand(boom)
    # It begins closed, and stays so up to the larger error, of either sign.
    np.testing.assert_array_equal(stand.cycle([between, -between, 0.0, between]), np.zeros(4))
    assert stand.memory.closed.all()
    opened = stand.cycle([above, -above, 0.0, between])
    np.testing.assert_array_equal(np.sign(opened), [1, -1, 0, 0])
    np.testing.assert_array_equal(stand.memory.closed, [False, False, True, True])
    # What is open goes on to the smaller error, what is closed stays.
    now = stand.cycle([between, -between, between, between])
    np.testing.assert_array_equal(np.sign(now), [1, -1, 0, 0])
    assert np.all(stand.memory.integral[:2] != 0.0)
    np.testing.assert_array_equal(stand.cycle([below, -below, below, between]), np.zeros(4))
    np.testing.assert_array_equal(stand.memory.integral, np.zeros(4))
    # A reference that moves opens at any error.
    moving = stand.cycle([0.0, 0.0, 0.0, 0.0], [1e-4, -1e-4, 0.0, 0.0])
    np.testing.assert_array_equal(np.sign(moving), [1, -1, 0, 0])


def test_a_piston_that_gives_way_by_its_oil_is_left_alone(boom):
    p = constants_of(boom).actuators
    stand = Stand(boom)
    stand.rod = np.full(4, 200e5)
    stand.cycle(np.zeros(4))
    # Closed valves, pushed in by 3 mm: at first as briefly as by a vibration, then for good.
    pushed, steps = np.full(4, 3e-3), 1000
    head, rod, s = stand.head.copy(), stand.rod.copy(), stand.target.copy()
    for _ in range(steps):
        for i in range(4):
            areas, volumes = (p.head_area[i], p.rod_area[i]), (p.head_volume[i], p.rod_volume[i])
            rates = pressure_rates(s[i], -1.0, 0.0, 0.0, *areas, *volumes, p.bulk_modulus)
            head[i] += rates[0] * pushed[i] / steps
            rod[i] += rates[1] * pushed[i] / steps
        s -= pushed / steps
    stand.rod = rod
    for _ in range(10):
        np.testing.assert_array_equal(stand.cycle(pushed, head=head), np.zeros(4))
    for _ in range(round(10.0 * boom.controller.force_time / SAMPLE_TIME)):
        spools = stand.cycle(pushed, head=head)
    assert np.all(spools > 0.0)


@pytest.mark.parametrize('sample_time', [0.0, math.nan, 1.0])
def test_bad_sample_times(sample_time, boom):
    with pytest.raises(InputError, match=r'sample_time = .* allowed: \(0, 0.1\] s'):
        BoomFollower(boom, None, sample_time)


@pytest.mark.parametrize('name', ['pistons', 'head_pressures', 'rod_pressures', 'angles', 'rates'])
@pytest.mark.parametrize('bad', [[0.5, 0.5, math.nan, 0.5], [0.5, 0.5, 0.5]])
def test_bad_measurements(name, bad, boom):
    arguments = {
        'pistons': np.full(4, 0.5),
        'head_pressures': np.full(4, 1e7),
        'rod_pressures': np.full(4, 1e7),
    }
    reference = Reference(np.radians(SITE), np.zeros(4))
    if name in arguments:
        arguments[name] = np.array(bad)
    else:
        reference = reference._replace(**{name: np.array(bad)})
    control = BoomFollower(boom, None, SAMPLE_TIME).controller
    with pytest.raises(InputError, match=f'{name} = .* allowed: 4 finite numbers'):
        control.cycle(control.initial_state(), reference=reference, **arguments)


def joint_errors(result):
    """Return trajectory minus angle in each row, (rows, N) [deg]."""
    return np.degrees(result.columns_like('wanted') - result.columns_like('phi'))


def commanded_open(result, boom):
    """Tell in which rows which spools are beyond the dead band, (rows, N)."""
    bands = [c.valve.dead_band for c in boom.cylinders]
    return np.asarray(np.abs(result.columns_like('spool')) > bands)


def swing(result, begin, end):
    """Return how far the tip swings about its mean way between two times, root mean square [m]."""
    time, z = result.column('time'), result.column('tip_z')
    chosen = (time >= begin) & (time < end)
    about = z[chosen] - np.polyval(np.polyfit(time[chosen], z[chosen], 3), time[chosen])
    return float(np.sqrt(np.mean(about**2)))


@pytest.mark.slow_after(1)
@pytest.mark.parametrize(
    ('load', 'friction', 'allowed'), [(0.0, True, 0.3), (0.0, False, 0.3), (90.0, True, 0.7)]
)
def test_the_boom_follows_the_wave_and_comes_to_rest(load, friction, allowed, wave, boom):
    scenario = wave.replace(friction=friction, loads=[{'mass': load}] if load else [])
    result = simulate(boom, scenario)
    trajectory = Trajectory.of(wave.trajectory)
    errors = joint_errors(result)
    assert np.abs(errors).max() < allowed
    assert np.sqrt(np.mean(errors**2, axis=0)).max() < allowed / 2.0
    # Every joint moves by several degrees.
    assert np.all(np.ptp(trajectory.angles, axis=0) > math.radians(5.0))
    after = result.column('time') > trajectory.duration + 1.0
    assert not commanded_open(result, boom)[after].any()
    # The vibration that the motion leaves stays to be seen.
    assert swing(result, trajectory.duration + 2.0, scenario.duration) > 2e-3


@pytest.mark.slow
def test_static_friction_does_not_make_it_hunt(wave, boom):
    sticky = with_valves(boom, static=4.0)
    result = simulate(sticky, wave.replace(duration=60.0))
    time = result.column('time')
    assert not commanded_open(result, sticky)[time > 30.0].any()
    assert np.all(result.columns_like('mode')[time > 55.0] == STUCK)
    assert np.abs(joint_errors(result)[-1]).max() < 0.1


@pytest.mark.slow
def test_a_load_that_comes_and_goes_is_held(boom):
    scenario = Scenario(
        duration=60.0,
        pose='site',
        trajectory=(Waypoint(0.0, SITE),),
        attach=({'time': 2.0, 'mass': 300.0},),
        release=(30.0,),
    )
    result = simulate(boom, scenario)
    time = result.column('time')
    opened = commanded_open(result, boom).any(axis=1)
    assert opened[(time > 2.0) & (time < 30.0)].any()
    assert opened[(time > 30.0) & (time < 50.0)].any()
    assert not opened[time > 50.0].any()
    errors = joint_errors(result)
    assert np.abs(errors[time < 2.0]).max() < 1e-6
    assert np.abs(errors[-1]).max() < 0.5


@pytest.mark.slow_after(1)
@pytest.mark.parametrize(
    ('valves', 'force_time', 'grows'),
    [('boom', None, False), ('paper_boom', None, False), ('paper_boom', 1e-3, True)],
)
def test_the_controller_does_not_drive_the_swing(valves, force_time, grows, request):
    boom = request.getfixturevalue(valves)
    # A slow motion, so that valves stay open, and a load that goes; no friction but in the beams.
    if force_time:
        boom = tuned(boom, force_time=force_time)
    scenario = Scenario(
        duration=45.0,
        pose='site',
        friction=False,
        loads=({'mass': 90.0},),
        release=(5.0,),
        trajectory=(Waypoint(0.0, SITE), Waypoint(60.0, (66.0, -54.0, -31.0, -26.0))),
    )
    result = simulate(boom, scenario)
    early, late = swing(result, 10.0, 20.0), swing(result, 35.0, 45.0)
    assert (late > 1.5 * early) if grows else (late < 0.9 * early)


def test_a_valve_that_is_too_small_comes_late_and_does_not_overshoot(wave, boom):
    small = with_valves(boom, 0.5)
    up = Waypoint(8.0, (70.0, -36.0, -35.0, -30.0))
    scenario = wave.replace(duration=14.0, trajectory=(wave.trajectory[0], up))
    result = simulate(small, scenario)
    errors = joint_errors(result)
    assert np.abs(errors[:, 1]).max() > 2.0
    assert np.abs(errors[-1]).max() < 0.3
    # Joint 2 goes up, and lags behind all the time.
    assert errors[:, 1].min() > -0.3


@pytest.mark.parametrize('load', [0.0, 90.0])
@pytest.mark.parametrize('valves', ['boom', 'paper_boom'])
def test_full_spools_reach_a_good_part_of_the_largest_rates(valves, load, request):
    boom = request.getfixturevalue(valves)
    # The fastest reach the cushions at the ends of their strokes.
    boom = boom.replace(cylinders=tuple(c.replace(cushion=None) for c in boom.cylinders))
    for pose in ('site', 'sprawled'):
        for joint, sign in itertools.product(range(4), (-1.0, 1.0)):
            spools = tuple((sign * (np.arange(4) == joint)).tolist())
            scenario = Scenario(
                duration=2.5,
                pose=pose,
                loads=({'mass': load},) if load else (),
                valve_commands=(ValveCommand(0.0, spools),),
            )
            angles = simulate(boom, scenario).states[:, :4]
            # The mean of the second half, a swing of the boom or two.
            rate = (angles[500, joint] - angles[250, joint]) / (250 * SAMPLE_TIME)
            low, high = rate_limits(boom, angles[375][None])[0, joint]
            # The least is against 90 kg, the most is what the weight helps.
            assert 0.35 < rate / (low if sign < 0.0 else high) < 1.0


@pytest.mark.parametrize('flow', [1e-5, 3e-4])
def test_the_pump_and_the_controller_bound_rates(boom, flow):
    site, most = boom.pose('site')[None], 1e-3
    usual = rate_limits(boom, site)[0]
    slow = tuned(boom, maximum_velocity=most)
    shared = boom.replace(oil=boom.oil.replace(pump=PumpParameters(flow=flow, band=1e6)))
    for i, cylinder in enumerate(boom.cylinders):
        arm = cylinder.linkage.arm(site[0, i])
        np.testing.assert_allclose(rate_limits(slow, site)[0, i], [-most / arm, most / arm])
        flows = flow / np.array([-cylinder.rod_area, cylinder.head_area])
        least = np.minimum(np.abs(usual[i]), np.abs(flows / arm))
        np.testing.assert_allclose(np.abs(rate_limits(shared, site)[0, i]), least)


@pytest.mark.slow
@pytest.mark.parametrize('share', [0.8, 1.2])
def test_a_controller_with_wrong_valve_data_still_follows(share, wave, boom):
    plant = Boom(boom, wave)
    trajectory, command = following(Boom(with_valves(boom, share), wave), SAMPLE_TIME)
    state, worst = plant.initial_state(), 0.0
    for k in range(round(trajectory.duration / SAMPLE_TIME)):
        time = k * SAMPLE_TIME
        worst = max(worst, np.abs(state.y[:4] - trajectory.at(time).angles).max())
        state = plant.advance(state, command(k, state), time, SAMPLE_TIME)
    assert np.degrees(worst) < 1.0
