"""Natural modes: against finite elements, textbooks, and the boom's own motion."""

import itertools

import numpy as np
import pytest

from longreach_boom.linear import smooth_model
from longreach_boom.machine import Boom
from longreach_boom.model import Load, constants_of
from longreach_boom.modes import _eigen, fastest_rate, natural_modes
from longreach_boom.scenario import Attachment, HangingLoad, Scenario
from longreach_boom.simulation import simulate
from longreach_boom.spec import BOOM
from longreach_boom.state import BoomState, StateParts
from longreach_boom.statics import equilibrium
from longreach_dynamics.errors import InputError
from longreach_dynamics.hydraulics.friction import AT_HEAD_END, AT_ROD_END, STUCK
from longreach_machine import Signal, linearize
from longreach_machine.scenarios import ValveCommand


def poses(boom, count, seed):
    """Return random poses in which the boom is neither upside down nor beyond a stroke."""
    random = np.random.default_rng(seed)
    low, high = boom.joint_limits().T
    low = np.maximum(low, np.radians(-100.0))
    return low + random.random((count, boom.size)) * (high - low)


@pytest.mark.slow_after(1)
@pytest.mark.parametrize('about', ['straight', 'equilibrium'])
def test_moment_basis_is_close_to_finite_elements_in_every_pose(boom, about):
    for angles in poses(boom, 12, seed=1):
        error = np.abs(natural_modes(boom, angles, count=2, about=about).relative_error)
        assert error[0] < 0.003
        assert error[1] < 0.01


@pytest.mark.slow
def test_printed_basis_is_within_three_percent(boom):
    printed = boom.replace(ritz=boom.ritz.replace(basis='printed'))
    for angles in poses(boom, 12, seed=2):
        error = np.abs(natural_modes(printed, angles, count=2).relative_error)
        assert error.max() < 0.03
        moment = np.abs(natural_modes(boom, angles, count=1).relative_error)
        assert moment[0] < 0.1 * error[0]


@pytest.mark.slow
def test_free_pistons_are_close_too(boom):
    for angles in poses(boom, 5, seed=3):
        modes = natural_modes(boom, angles, pistons='free', count=2)
        locked = natural_modes(boom, angles, count=2)
        assert np.abs(modes.relative_error).max() < 0.01
        assert (modes.frequencies < locked.frequencies).all()


def test_load_lowers_the_frequencies_in_both_models(boom):
    angles = boom.pose('site')
    load = (Load(90.0, 3, 9.0), Load(300.0, 1, 4.0))
    bare, loaded = (natural_modes(boom, angles, loads, count=3) for loads in ((), load))
    assert (loaded.frequencies < bare.frequencies).all()
    assert np.abs(loaded.relative_error[:2]).max() < 0.01


def test_kelvin_voigt_damping_grows_with_the_frequency(boom):
    loss_time = boom.beams[0].loss_time
    kelvin = boom.replace(ritz=boom.ritz.replace(damping='kelvin_voigt'))
    modes = natural_modes(kelvin, boom.pose('site'), about='straight', count=4)
    # Damping is loss_time times stiffness, so each ratio is that of its own mode.
    expected = loss_time * np.pi * modes.frequencies
    np.testing.assert_allclose(modes.damping_ratios, expected, rtol=1e-9)


def test_frequency_and_damping_are_those_of_the_motion(boom):
    # Without friction, and after a push so small that nothing else counts.
    scenario = Scenario(
        duration=30.0, pose='site', friction=False, loads=(HangingLoad(mass=0.1),), release=(0.0,)
    )
    result = simulate(boom, scenario)
    friction = boom.cylinders[0].friction.replace(viscous=0.0)
    still = tuple(c.replace(friction=friction) for c in boom.cylinders)
    modes = natural_modes(
        boom.replace(cylinders=still), boom.pose('site'), pistons='free', count=1
    )
    time, z = result.column('time'), result.column('tip_z')
    z = (z - z[-400:].mean())[time > 5.0]
    time = time[time > 5.0]
    ups = np.flatnonzero((z[:-1] < 0.0) & (z[1:] >= 0.0))
    crossings = time[ups] - z[ups] * 0.005 / (z[ups + 1] - z[ups])
    frequency = (len(crossings) - 1) / (crossings[-1] - crossings[0])
    assert frequency == pytest.approx(modes.frequencies[0], rel=0.01)
    # The decay is that of the first mode once the others have gone.
    peaks = [abs(z[a:b]).max() for a, b in itertools.pairwise(ups)]
    decay = np.log(peaks[0] / peaks[-1]) / (2.0 * np.pi * (len(peaks) - 1))
    assert decay == pytest.approx(modes.damping_ratios[0], rel=0.15)


def test_shapes_are_displacements_of_the_boom_at_rest(boom):
    angles = boom.pose('site')
    modes = natural_modes(boom, angles, count=3)
    np.testing.assert_allclose(modes.rest[-1, -1], equilibrium(boom, angles).tip, atol=1e-12)
    assert np.linalg.norm(modes.shapes, axis=-1).max(axis=(1, 2)) == pytest.approx(1.0)
    np.testing.assert_allclose(modes.shapes[:, 0, 0], 0.0, atol=1e-12)
    # Beams stay together.
    np.testing.assert_allclose(modes.shapes[:, 1:, 0], modes.shapes[:, :-1, -1], atol=1e-12)


def test_fastest_rate_bounds_the_step(paper_boom):
    # Relief and make-up valves would ask for shorter steps.
    boom = paper_boom
    rest = equilibrium(boom, boom.pose('sprawled'))
    fastest = fastest_rate(rest.q, rest.forces, constants_of(boom))
    step = round(2.2 / fastest, 6)
    scenario = Scenario(duration=1000 * step, pose='sprawled', friction=False)
    command = (0.0,) * 4
    good = Boom(boom, scenario, step)
    state = good.initial_state()
    # A push, after which a stable method comes to rest.
    y = state.y.copy()
    y[12:24] += 1e-6
    state = state._replace(y=y)
    later = good.advance(state, command, 0.0, 400 * good.step)
    assert np.abs(StateParts.of(later.y, boom).v).max() < 1e-3


@pytest.mark.parametrize(
    ('changes', 'text'),
    [
        ({'pistons': 'loose'}, r"pistons = 'loose', allowed: locked \| free"),
        ({'about': 'bent'}, r"about = 'bent', allowed: equilibrium \| straight"),
        ({'count': 0}, 'count = 0, allowed: '),
        ({'elements': 0}, 'elements'),
    ],
)
def test_bad_choices_are_refused(boom, changes, text):
    with pytest.raises(InputError, match=text):
        natural_modes(boom, boom.pose('site'), **changes)


def test_what_a_free_model_shows_is_of_its_equations(boom):
    scenario = Scenario(duration=1.0, pose='site', loads=(HangingLoad(90.0),))
    state = Boom(boom, scenario).initial_state()
    names = [f'strain_{i}' for i in range(1, 5)]
    locked, free = (
        linearize(smooth_model(boom, state, True, free), ['torque_4'], names)
        for free in (False, True)
    )
    # At rest, whether pistons could slide or not.
    np.testing.assert_allclose(free.y, locked.y, rtol=1e-9)
    assert np.abs(free.rate).max() < 1e-6 * np.abs(state.y).max()


@pytest.mark.parametrize('free', [False, True])
def test_a_model_at_a_release_is_that_right_after_it(boom, free):
    falls = Scenario(duration=1.0, pose='site', loads=(HangingLoad(90.0),), release=(0.0,))
    picks = Scenario(duration=1.0, pose='site', attach=(Attachment(time=0.0, mass=90.0),))
    options = BOOM.options()
    first = []
    for scenario in (falls, picks, falls.replace(release=())):
        models = [BOOM.smooth(boom, scenario, options, time, free) for time in (0.0, 0.005)]
        at, after = (
            min(pole.frequency for pole in linearize(model, [], []).poles() if pole.value.imag)
            for model in models
        )
        first.append(at)
        assert after == pytest.approx(at, rel=0.01)
    assert first[0] > 1.05 * first[1]
    assert first[1] == pytest.approx(first[2], rel=0.01)


def test_a_model_says_what_its_spools_and_pistons_cannot_do(boom):
    commands = (ValveCommand(time=0.5, spools=(1.0, 0.0, 0.0, 0.0)),)
    scenario = Scenario(duration=1.0, pose='site', valve_commands=commands)
    smooth = BOOM.smooth(boom, scenario, BOOM.options(), 0.55, False)
    model = linearize(smooth, ['spool_1'], [])
    assert model.u.tolist() == [1.0]
    rates = dict(zip(model.states, model.rate, strict=True))
    assert rates[Signal('spool_1', '1')] == boom.cylinders[0].valve.rate
    assert not model.B.any()
    full = 'the spool of cylinder_1 moves at its full speed: spool_1 has no effect'
    assert [note for note in smooth.notes if 'speed' in note] == [full]

    state = Boom(boom, scenario).initial_state()
    state = state._replace(modes=np.array([STUCK, STUCK, AT_ROD_END, AT_HEAD_END]))
    held = [note for note in smooth_model(boom, state, free=True).notes if 'locked' in note]
    assert held == [
        f'cylinder_{k} rests at an end of its stroke: its joint is locked' for k in (3, 4)
    ]


@pytest.mark.parametrize('time', [0.0, 1.005, 3.0])
def test_a_model_of_a_trajectory_has_the_command_of_its_controller(boom, time):
    scenario = BOOM.load_scenario(BOOM.find_scenario('wave'), boom, BOOM.options())
    smooth = BOOM.smooth(boom, scenario, BOOM.options(), time, False)
    run = simulate(boom, scenario.replace(duration=time + 0.005))
    modes = run.columns_like('mode')[-2].astype(np.int64)
    state = BoomState(smooth.x, modes, scenario.initial_loads(boom))
    spools = tuple(smooth.u[: boom.size].tolist())
    assert any(spools) == (time > 0.0)
    after = Boom(boom, scenario).advance(state, spools, time, 0.005)
    np.testing.assert_array_equal(after.y, run.states[-1])


def test_a_torque_acts_on_a_cylinder_without_oil(paper_boom):
    state = Boom(paper_boom, Scenario(duration=1.0, pose='site')).initial_state()
    n, N = 3 * paper_boom.size, paper_boom.size
    models = []
    for pressure in (5e6, -2e6):
        y = state.y.copy()
        y[2 * n + 3] = pressure
        smooth = smooth_model(paper_boom, state._replace(y=y), free=True)
        models.append(linearize(smooth, ['torque_4'], ['phi_4']).B[n : n + N])
    assert models[0][3] > 0.01
    np.testing.assert_allclose(models[1], models[0], rtol=1e-6)


def test_every_mode_has_a_damping_ratio_of_its_own():
    # Coupled by damping, one mode has the largest part in two of the motions.
    frequencies = np.array([1.0, 1.05, 1.1])
    K, D = np.diag(frequencies**2), 0.2 * np.array([[1, -1, 0], [-1, 2, -1], [0, -1, 1.0]])
    _, _, ratios = _eigen(np.eye(3), D, K)
    state = np.block([[np.zeros((3, 3)), np.eye(3)], [-K, -D]])
    values = np.linalg.eigvals(state)
    expected = [-value.real / abs(value) for value in values if value.imag > 0.0]
    np.testing.assert_allclose(np.sort(ratios), np.sort(expected), rtol=1e-9)
