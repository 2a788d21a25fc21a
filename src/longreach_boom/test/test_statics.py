"""Static equilibrium against the minimum of the potential energy of the second derivation."""

import numpy as np
import pytest
from scipy import optimize
from test_model import lagrange

from longreach_boom.kinematics import point_motion
from longreach_boom.model import Load, constants_of
from longreach_boom.scenario import Scenario
from longreach_boom.simulation import simulate
from longreach_boom.statics import equilibrium, potential_forces, tangent_stiffness
from longreach_dynamics.errors import LongreachError

TIP_LOAD = Load(90.0, 3, 9.0)
# Some beams turned back over the truck, so that cylinders pull.
BACKWARDS = np.radians([85.0, 15.0, 15.0, 15.0])
POSES = {
    'sprawled': np.zeros(4),
    'site': np.radians([70.0, -50.0, -35.0, -30.0]),
    'low': np.radians([-5.0, 0.0, 0.0, 0.0]),
    'upright': np.radians([80.0, 0.0, 0.0, 0.0]),
    'folded': np.radians([85.0, -170.0, 10.0, -60.0]),
    'backwards': BACKWARDS,
}


def bent(boom, angles, loads=()):
    """Return q with the deflections that minimise V at given angles."""
    N, V = boom.size, lagrange(boom, loads)
    still = np.zeros(N * (1 + boom.ritz.functions))

    def energy(h):
        return float(V.potential(np.concatenate([angles, h]), still))

    def slope(h):
        return V.weight(np.concatenate([angles, h]), still).full().ravel()[N:]

    downhill = optimize.minimize(energy, still[N:], jac=slope, method='BFGS')
    sharp = optimize.root(slope, downhill.x, tol=1e-13)
    assert abs(energy(sharp.x) - downhill.fun) < 1e-6 * abs(downhill.fun)
    return np.concatenate([angles, sharp.x])


@pytest.mark.parametrize('rotation', ['exact', 'printed'])
@pytest.mark.parametrize('loads', [(), (TIP_LOAD, Load(150.0, 1, 3.0))])
@pytest.mark.parametrize('pose', POSES)
def test_boom_rests_where_its_potential_is_least(pose, loads, rotation, boom):
    changed = boom.replace(ritz=boom.ritz.replace(rotation=rotation))
    V, q = lagrange(changed, loads), bent(changed, POSES[pose], loads)
    rest = equilibrium(changed, POSES[pose], loads)
    np.testing.assert_allclose(rest.q, q, atol=1e-8)
    np.testing.assert_array_equal(rest.q[:4], POSES[pose])
    # Virtual work: F_i f_i'(phi_i) = dV/dphi_i.
    arms = np.array([c.linkage.arm(a) for c, a in zip(boom.cylinders, POSES[pose], strict=True)])
    forces = V.weight(q, 0.0 * q).full().ravel()[:4] / arms
    np.testing.assert_allclose(rest.forces, forces, rtol=1e-7, atol=1e-7 * np.abs(forces).max())
    np.testing.assert_allclose(rest.tip, V.joints(q, 0.0 * q).full()[:, -1], atol=1e-8)


@pytest.mark.slow
@pytest.mark.parametrize('count', [1, 2, 3, 5, 7])
def test_booms_of_any_size(count, resized):
    for functions in (1, 3):
        boom = resized(count, functions=functions)
        for pose in ('sprawled', 'site'):
            angles = boom.pose(pose)
            load = Load(50.0, count - 1, boom.beams[-1].length)
            q = bent(boom, angles, (load,))
            np.testing.assert_allclose(equilibrium(boom, angles, (load,)).q, q, atol=1e-8)


def test_forces_of_the_sprawled_boom_are_those_expected(boom):
    # As in figure 12 of the paper, normalised to p_s A_1; with the load that it releases.
    rest = equilibrium(boom, boom.pose('sprawled'), (TIP_LOAD,))
    shares = rest.forces / [boom.oil.supply_pressure * c.head_area for c in boom.cylinders]
    np.testing.assert_allclose(shares, [0.567, 0.639, 0.692, 0.653], atol=5e-4)
    bare = equilibrium(boom, boom.pose('sprawled'))
    assert np.all(bare.forces < rest.forces)
    # The tip hangs by metres, and the load adds tenths.
    assert -3.3 < rest.tip[1] < -2.9
    assert 0.3 < bare.tip[1] - rest.tip[1] < 0.6


@pytest.mark.parametrize('pose', [(80, -90, -80, -5), (60, -150, 0, 0), (85, -100, -75, 0)])
@pytest.mark.parametrize('preload', [20e5, 40e5])
def test_a_boom_at_rest_does_not_move(pose, preload, boom):
    # Pulling cylinders: their head sides are filled by the charge line, above the tank pressure.
    filled = boom.replace(oil=boom.oil.replace(preload=preload))
    run = simulate(filled, Scenario(duration=1.0, pose_deg=tuple(map(float, pose))))
    assert np.ptp(run.column('tip_x')) < 1e-9
    assert all(np.all(run.column(f'port_head_{i}') == 0.0) for i in range(1, 5))


def test_equilibrium_leaves_no_force_and_is_stable(random_boom):
    random = np.random.default_rng(12)
    for count in range(1, 5):
        boom = random_boom(random, count).replace(youngs_modulus=1e12)
        angles = np.array([random.uniform(*c.linkage.angles(c.stroke)) for c in boom.cylinders])
        rest, constants = equilibrium(boom, angles), constants_of(boom)
        g = potential_forces(rest.q, constants)
        assert np.abs(g[count:]).max() < 1e-8 * (constants.mass.sum() * boom.gravity)
        K = tangent_stiffness(rest.q, constants)[count:, count:]
        assert np.linalg.eigvalsh(K)[0] > 0.0
        tip = point_motion(boom, rest.q, 0.0 * rest.q, count - 1, boom.beams[-1].length)
        np.testing.assert_array_equal(tip.position, rest.tip)


# Upright, an equilibrium is found, which is unstable.
@pytest.mark.parametrize(
    ('share', 'pose'), [(1e-2, 'sprawled'), (1e-4, 'sprawled'), (0.02, 'upright')]
)
def test_weak_beams_are_told(share, pose, boom):
    weak = boom.replace(youngs_modulus=share * boom.youngs_modulus)
    error = r'found at the angles \[.*, 0\.0, 0\.0\] deg:.*too weak.*raise second_moment or lower'
    with pytest.raises(LongreachError, match=error):
        equilibrium(weak, POSES[pose])


def test_poses_at_the_ends_of_the_strokes(boom):
    for angles in boom.joint_limits().T:
        # The angle itself, and one that rounding put beyond.
        for pose in (angles, angles * (1.0 + 1e-15)):
            rest = equilibrium(boom.replace(gravity=0.1), pose)
            assert np.all(np.isfinite(rest.forces))
