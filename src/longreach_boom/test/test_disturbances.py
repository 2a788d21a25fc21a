"""External forces, pumping and gusts: virtual work, weight, momentum, statics, and refusals."""

import numpy as np
import pytest

from longreach_boom.disturbances import Gust, Pumping, TipForce
from longreach_boom.kinematics import point_motion
from longreach_boom.machine import Boom
from longreach_boom.model import constants_of, row_count
from longreach_boom.motion import inertia
from longreach_boom.parameters import default_file, load_boom
from longreach_boom.scenario import HangingLoad, Scenario
from longreach_boom.simulation import simulate
from longreach_dynamics.errors import InputError
from longreach_machine.machine import BY_SCENARIO

PUMPING = Pumping(start=0, end=5, period=2, gap=0.2, speed=1, mass_per_length=9)


@pytest.mark.parametrize('file', ['boom.yaml', 'boom_on_truck.yaml'])
def test_tip_forces_do_virtual_work(file):
    """Generalised forces are J^T F for forces at all tips, in a moving bent state."""
    boom = load_boom(default_file().with_name(file))
    random = np.random.default_rng(3)
    N = boom.size
    n = N * (1 + boom.ritz.functions)
    size = n + (0 if boom.truck is None else 2)
    q, v = 0.2 * random.standard_normal(n), 0.1 * random.standard_normal(n)
    moved = np.array([0.02, 0.01, 0.03, -0.02])[: 2 * (size - n)]
    y = np.concatenate([q, v, np.zeros(3 * N), moved])
    forces = 1e3 * random.standard_normal((N, 2))
    p = constants_of(boom)
    M, free, pulled = np.empty((size, size)), np.empty(size), np.empty(size)
    inertia(y, p, M, free)
    inertia(y, p.pulled(forces), M, pulled)
    assert row_count(p) == size
    expected = np.zeros(size)
    for k in range(size):
        rate = np.zeros(size)
        rate[k] = 1.0
        truck = np.concatenate([moved[:2], rate[n:]])[None] if boom.truck else None
        for i, beam in enumerate(boom.beams):
            motion = point_motion(boom, q[None], rate[None, :n], i, beam.length, truck=truck)
            expected[k] += forces[i] @ motion.velocity[0]
    assert free - pulled == pytest.approx(expected, rel=1e-9, abs=1e-6)


def test_a_force_bends_the_boom_as_the_weight_of_a_load(boom):
    weight = 90.0 * boom.gravity
    force = TipForce(start=0, end=40, z=-weight)
    pulled = simulate(boom, Scenario(duration=40.0, pose='site', forces=(force,)))
    late = pulled.column('time') > 20.0
    # In the pose to which the force has moved the pistons.
    pose = np.degrees(pulled.states[late, : boom.size].mean(axis=0))
    load = HangingLoad(mass=90.0)
    carried = simulate(boom, Scenario(duration=1.0, pose_deg=tuple(pose), loads=(load,)))
    for name in ('force', 'strain'):
        mean, held = (run.columns_like(name) for run in (pulled, carried))
        assert mean[late].mean(axis=0) == pytest.approx(held[-1], rel=0.005)


def test_concrete_weighs_as_a_uniform_line(boom):
    """Its loads have the mass, the moment and the inertia of a line of 20 kg/m."""
    pumping = Pumping(start=1, end=2, period=2.0, gap=0.2, speed=1.0, mass_per_length=20.0)
    loads = Scenario(duration=1.0, pose='site', pumping=(pumping,)).initial_loads(boom)
    for i, beam in enumerate(boom.beams):
        own = [(load.mass, load.position) for load in loads if load.beam == i]
        for k in range(3):
            found = sum(mass * place**k for mass, place in own)
            assert found == pytest.approx(20.0 * beam.length ** (k + 1) / (k + 1))


def test_pumping_passes_momentum_on(boom):
    """Over a stroke the impulse on the beams is 0, and the hose feels the thrust m v^2."""
    pumping = Pumping(start=0, end=20, period=2.0, gap=0.25, speed=1.4, mass_per_length=20.0)
    angles = np.array([1.2, 0.3, -0.4, -0.9])
    steps = (np.arange(40_000) + 0.5) * 1e-4
    mean = np.mean([pumping.forces(boom, time, 1e-4, angles) for time in steps], axis=0)
    # The mean of v^2 is that of a dip of (1 + cos)^2 / 4 over the gap.
    thrust = 20.0 * 1.4**2 * (1.0 - 0.25 / 2.0 * (1.0 - 3.0 / 8.0))
    expected = np.zeros((4, 2))
    expected[-1, 1] = thrust
    assert mean == pytest.approx(expected, abs=1e-3 * thrust)


@pytest.mark.parametrize('end', [4.0, 4.05, 4.7])
def test_pumping_begins_and_ends_at_rest(boom, end):
    """Up to within a stroke the beams are pushed back by m L v, and by 0 over all."""
    pumping = Pumping(start=0, end=end, period=2.0, gap=0.25, speed=1.4, mass_per_length=20.0)
    steps = (np.arange(round(1e4 * end)) + 0.5) * 1e-4
    forces = np.array([pumping.forces(boom, time, 1e-4, np.zeros(4))[:, 0] for time in steps])
    back = np.array([-20.0 * beam.length * 1.4 for beam in boom.beams])
    assert 1e-4 * forces[:10_000].sum(axis=0) == pytest.approx(back, rel=1e-3)
    assert 1e-4 * forces.sum(axis=0) == pytest.approx(0.0 * back, abs=1e-3 * -back.max())


@pytest.mark.parametrize(
    'item',
    [
        TipForce(start=0.0513, end=0.0637, z=-1e4),
        TipForce(start=0.051, end=0.0511, z=-1e4),
        Pumping(start=0.0, end=5.0, period=0.1, gap=0.021, speed=1.4, mass_per_length=20.0),
        Gust(start=0.0117, end=0.0623, speed=15.0),
        Gust(start=0.0511, end=0.0529, speed=-15.0),
    ],
)
@pytest.mark.parametrize('hold', [0.004, 0.005])
def test_what_is_held_has_the_impulse_of_what_acts(boom, item, hold):
    """However the times are to those of the holds; within 0.08 s, when concrete flows."""

    def impulse(step):
        times = (np.arange(round(0.08 / step)) + 0.5) * step
        return step * sum(item.forces(boom, time, step, np.ones(4)) for time in times)

    if isinstance(item, TipForce):
        assert impulse(hold)[-1, 1] == pytest.approx(-1e4 * (item.end - item.start))
    if isinstance(item, Pumping):
        back = [-20.0 * beam.length * 1.4 * np.cos(1.0) for beam in boom.beams]
        assert impulse(hold)[:, 0] == pytest.approx(back)
    # The thrust of the hose is taken in the middle.
    exact = impulse(1e-5)
    assert impulse(hold)[:, 0] == pytest.approx(exact[:, 0], abs=1e-9 * np.abs(exact).max())


def test_a_release_keeps_the_concrete(boom):
    pumping = PUMPING.replace(start=0.0, end=1.0)
    loads = (HangingLoad(mass=90.0),)
    scenario = Scenario(
        duration=0.1, pose='site', pumping=(pumping,), loads=loads, release=(0.05,)
    )
    machine = Boom(boom, scenario)
    end = machine.advance(machine.initial_state(), BY_SCENARIO, 0.0, 0.1)
    assert sum(load.mass for load in end.loads) == pytest.approx(
        9.0 * sum(beam.length for beam in boom.beams)
    )
    assert end.loads == scenario.carried(boom)[-1][1] == machine.release(end).loads


def test_a_gust_pushes_across_the_beams(boom):
    """Its force is that of the drag on upright beams, none on level ones, and starts at zero."""
    gust = Gust(start=0.0, end=2.0, speed=20.0, width=0.4, drag=2.0)
    upright = gust.forces(boom, 1.0, 1e-5, np.full(4, np.pi / 2.0))
    lengths = sum(beam.length for beam in boom.beams)
    # Half of the first beam's share is carried by joint 1.
    drag = 0.5 * 1.25 * 2.0 * 0.4 * 20.0**2 * (lengths - 0.5 * boom.beams[0].length)
    assert upright[:, 0].sum() == pytest.approx(drag)
    assert np.abs(gust.forces(boom, 1.0, 1e-3, np.zeros(4))).max() == 0.0
    assert np.abs(gust.forces(boom, -5e-4, 1e-3, np.full(4, np.pi / 2.0))).max() == 0.0
    assert gust.forces(boom, 1.0, 3.0, angles := np.ones(4)) == pytest.approx(
        0.375 * 2.0 / 3.0 * gust.forces(boom, 1.0, 1e-5, angles)
    )


@pytest.mark.parametrize(
    ('make', 'error'),
    [
        (
            lambda: TipForce(start=0.5, end=0.5, z=1e5),
            r'end = 0\.5 s, allowed: above start = 0\.5',
        ),
        (lambda: TipForce(start=0.0, end=1.0), 'x and z of a force are 0'),
        (lambda: PUMPING.replace(gap=3.0), 'gap = 3 s, allowed: below period = 2 s'),
        (lambda: {'forces': [TipForce(start=0, end=1, z=1, beam='mast')]}, 'mast'),
        (
            lambda: {'pumping': (PUMPING, PUMPING.replace(start=3.0, end=8.0))},
            'pumping begins at 3 s while another lasts until 5 s',
        ),
    ],
)
def test_what_does_not_fit_or_would_not_act_is_refused(boom, make, error):
    with pytest.raises(InputError, match=error):
        Scenario(duration=9.0, pose='site', **make()).check_with(boom)
