"""Strains against finite elements, which know nothing of Ritz functions, at rest and in motion."""

import numpy as np
import pytest
from scipy import linalg
from test_statics import POSES, TIP_LOAD

from longreach_boom.model import Load
from longreach_boom.modes import chain_base, chain_beams
from longreach_boom.parameters import StrainGauge
from longreach_boom.scenario import HangingLoad, Scenario
from longreach_boom.simulation import simulate
from longreach_boom.state import BoomState
from longreach_boom.statics import equilibrium, static_row
from longreach_boom.strain import curvatures, strains
from longreach_dynamics.finite_elements import _Chain
from longreach_dynamics.hydraulics.friction import STUCK


def finite_elements(boom, angles, loads, elements=20):
    """Return a boom with locked joints as finite elements, with foreshortening of bent beams."""
    base = None if boom.truck is None else chain_base(boom.truck)
    beams = chain_beams(boom, angles, loads)
    return _Chain(beams, elements, np.zeros(0), boom.gravity, True, base)


def shown_by(chain, boom, q):
    """Return the strains k_SG w'' of coordinates q (..., size) of a chain, shape (..., N)."""
    gauges = [beam.strain_gauge for beam in boom.beams]
    return np.stack(
        [
            gauge.gain * (q[..., own] @ part.curvature(np.array([gauge.position]))[0])
            for gauge, part, own in zip(gauges, chain._parts, chain._own, strict=True)
        ],
        axis=-1,
    )


def at_rest(boom, angles, loads=()):
    """Return a boom at rest, its joints held."""
    q = equilibrium(boom, angles, loads).q
    y = np.concatenate([q, np.zeros(q.size + 3 * boom.size)])
    return BoomState(y, np.full(boom.size, STUCK, dtype=np.int64), loads)


@pytest.mark.parametrize('loads', [(), (TIP_LOAD,), (TIP_LOAD, Load(150.0, 1, 3.0))])
@pytest.mark.parametrize('pose', list(POSES))
def test_at_rest(boom, pose, loads):
    angles = POSES[pose]
    chain = finite_elements(boom, angles, loads)
    expected = shown_by(chain, boom, chain.equilibrium())
    # Where the moment nearly vanishes at a gauge, by a tenth of the largest strain.
    sizes = np.maximum(np.abs(expected), 0.1 * np.abs(expected).max())
    for basis, functions, share in (
        ('moment', 2, 0.0025),
        ('printed', 2, 0.01),
        ('printed', 3, 0.003),
    ):
        other = boom.replace(ritz=boom.ritz.replace(basis=basis, functions=functions))
        shown = strains(other, at_rest(other, angles, loads))
        assert static_row(other, angles, loads)['strain'] == shown.tolist()
        assert np.all(np.abs(shown - expected) < share * sizes), (basis, functions)


def test_the_printed_formula_is_less_accurate(boom):
    chain = finite_elements(boom, POSES['site'], (TIP_LOAD,))
    expected = shown_by(chain, boom, chain.equilibrium())
    np.testing.assert_allclose(
        1e6 * expected, [-748.0, -981.5, -820.7, -385.8], rtol=0.0, atol=0.06
    )
    printed = boom.replace(ritz=boom.ritz.replace(strain='curvature'))
    shown = strains(printed, at_rest(printed, POSES['site'], (TIP_LOAD,)))
    np.testing.assert_allclose(1e6 * shown, [-735.7, -939.9, -772.2, -403.5], rtol=0.0, atol=0.06)


@pytest.mark.parametrize('places', [(0.6, 2.0, 5.0, 3.0), (1.8, 6.0, 1.0, 8.0)])
def test_inboard_of_the_support_the_cylinder_pushes(boom, places):
    pairs = zip(boom.beams, places, strict=True)
    boom = boom.replace(
        beams=tuple(b.replace(strain_gauge=StrainGauge(x, b.strain_gauge.gain)) for b, x in pairs)
    )
    chain = finite_elements(boom, POSES['site'], (TIP_LOAD,), elements=60)
    expected = shown_by(chain, boom, chain.equilibrium())
    shown = strains(boom, at_rest(boom, POSES['site'], (TIP_LOAD,)))
    assert places[0] < boom.beams[0].support
    np.testing.assert_allclose(shown, expected, rtol=0.005)


@pytest.mark.parametrize('damping', ['distributed', 'kelvin_voigt'])
def test_damping_carries_a_part_of_the_moment(boom, damping):
    # Strong damping and joints that give; three functions a beam have a curvature of their own.
    boom = boom.replace(
        ritz=boom.ritz.replace(functions=3, damping=damping),
        beams=tuple(
            b.replace(beam_damping=5.0 * b.beam_damping, loss_time=0.01) for b in boom.beams
        ),
    )
    scenario = Scenario(
        duration=0.3, pose='site', loads=(HangingLoad(90.0),), release=(0.0,), friction=False
    )
    by_moment, by_functions = (
        simulate(
            boom.replace(ritz=boom.ritz.replace(strain=strain)), scenario, step=1e-4
        ).columns_like('strain')[10:]
        for strain in ('moment', 'curvature')
    )
    change = np.ptp(by_moment, axis=0)
    assert np.all(change > 5e-6)
    # The static part differs by foreshortening, which the functions leave out.
    assert np.all(np.std(by_moment - by_functions, axis=0) < 0.025 * change)


def test_in_the_release_of_a_load(boom):
    # The pistons stay where they are, in both.
    held = boom.cylinders[0].friction.replace(static=1e7, coulomb=1e7)
    boom = boom.replace(cylinders=tuple(c.replace(friction=held) for c in boom.cylinders))
    release = Scenario(duration=3.0, pose='site', loads=(HangingLoad(90.0),), release=(0.0,))
    # Small motion of finite elements about the unloaded rest, with the damping (8).
    before = finite_elements(boom, POSES['site'], (TIP_LOAD,), elements=12)
    after = finite_elements(boom, POSES['site'], (), elements=12)
    rest = after.equilibrium()
    M, K = after.inertia(rest)[0], after.stiffness + after.weight(rest)[1]
    C = np.zeros_like(M)
    for beam, part, own in zip(boom.beams, after._parts, after._own, strict=True):
        w = part.deflection(part.points)[0]
        C[own, own] = w.T @ (beam.beam_damping * part.weights[:, None] * w)
    # Of 30 modes the first waves are not converged yet.
    squares, modes = linalg.eigh(K, M, subset_by_index=[0, 59])
    A = np.block([[np.zeros((60, 60)), np.eye(60)], [-np.diag(squares), -modes.T @ C @ modes]])
    start = np.concatenate([modes.T @ M @ (before.equilibrium() - rest), np.zeros(60)])
    once, states = linalg.expm(A * 0.005), [start]
    for _ in range(600):
        states.append(once @ states[-1])
    expected = shown_by(after, boom, rest + np.array(states)[:, :60] @ modes.T)

    largest = np.abs(expected).max(axis=0)
    assert np.all(np.ptp(expected, axis=0) > 1e-4)
    # Waves that few functions a beam cannot follow reach the gauge next to the load at first.
    for functions, first in ((2, 60), (3, 6)):
        finer = boom.replace(ritz=boom.ritz.replace(functions=functions))
        run = simulate(finer, release)
        assert np.all(run.columns_like('mode') == STUCK)
        error = np.abs(run.columns_like('strain') - expected) / largest
        assert np.all(np.sqrt(np.mean(error**2, axis=0)) < 0.01)
        assert np.all(error[:, :3] < 0.01)
        assert np.all(error[first:] < 0.02)


def test_places_are_anywhere_on_the_beams(boom):
    state = at_rest(boom, POSES['sprawled'], (TIP_LOAD,))
    bent = curvatures(boom, state, ((0.0, 9.6), (), (1.0,), (0.0, 4.0, 9.0)))
    assert bent.shape == (6,)
    # A pin, and a tip with a load but no moment.
    assert abs(bent[0]) < 1e-12
    assert abs(bent[5]) < 1e-12
    assert np.all(bent[1:5] < -1e-5)
