"""The linkage against its own pins, virtual work, and the thesis' equations put right."""

import cmath
import math
from types import SimpleNamespace

import numpy as np
import pytest

from longreach_excavator.linkage import (
    Linkage,
    arm_cylinder,
    boom_cylinder,
    bucket_cylinder,
    lever_pin,
)

# To the dead points but for this share: at them angles are known to half the digits.
NEAR = 1e-3


def over_the_range(linkage, rows=401):
    """Return poses from dead point to dead point of each joint, (rows, 3) [rad]."""
    low, high = np.array(linkage.ranges()).T
    return low + np.linspace(NEAR, 1.0 - NEAR, rows)[:, None] * (high - low)


def places(excavator, q):
    """Return pins in the world (rows,) [m], from the numbers of the file."""
    x, (one, two, three) = excavator, np.cumsum(q, axis=1).T
    rad = math.radians
    b23, b56 = x.boom.beta_2_deg + x.boom.beta_3_deg, x.arm.beta_5_deg + x.arm.beta_6_deg
    C = x.boom.length * np.exp(1j * one)
    D = C + x.arm.length * np.exp(1j * two)
    return SimpleNamespace(
        E=np.full(len(q), x.chassis.lhe - 1j * x.chassis.lah),
        B=x.boom.lab * np.exp(1j * (one + rad(b23))),
        I=x.boom.lai * np.exp(1j * (one + rad(x.boom.beta_2_deg))),
        F=C + x.arm.lcf * np.exp(1j * (two + rad(b56 + x.arm.beta_7_deg))),
        J=C + x.arm.lcj * np.exp(1j * (two + rad(b56))),
        L=C + x.arm.lcl * np.exp(1j * (two + rad(x.arm.beta_5_deg))),
        D=D,
        P=D + x.bucket.ldp * np.exp(1j * (three + rad(x.bucket.beta_8_deg))),
    )


def test_angles_and_lengths_are_inverse(excavator):
    linkage = excavator.linkage()
    q = over_the_range(linkage)
    lengths, levers = linkage.lengths(q), linkage.levers(q)
    back = np.array([linkage.angles(row) for row in lengths])
    # A length known to rounding leaves so much of the angle open.
    assert np.all(np.abs(back - q) < 1e-14 + 4e-15 / np.abs(levers))
    assert np.all(np.diff(lengths, axis=0) * [1.0, -1.0, -1.0] > 0.0)


def test_dead_points_are_the_ends(excavator):
    linkage = excavator.linkage()
    ends = np.array(linkage.ranges()).T
    lengths, levers = linkage.lengths(ends), linkage.levers(ends)
    # The triangles are flat: no lever.
    assert np.abs(levers[:, :2]).max() < 1e-9
    assert np.abs(levers[:, 2]).max() == pytest.approx(1e-3, abs=1e-9)
    for row in lengths:
        assert np.abs(linkage.lengths(linkage.angles(row)) - row).max() < 1e-9


def third_side(one, two, angle):
    return np.sqrt(one**2 + two**2 - 2.0 * one * two * np.cos(angle))


def corner(one, two, opposite):
    return np.arccos((one**2 + two**2 - opposite**2) / (2.0 * one * two))


def thesis(excavator, q):
    """Return (A.1) to (A.8), corrected as docs/excavator.md says: lengths [m], angles [rad]."""
    x, (t2, t3, t4) = excavator, q.T
    arm, bucket = x.arm, x.bucket
    l2, l3, lab, lai = x.boom.length, arm.length, x.boom.lab, x.boom.lai
    lah, lhe = x.chassis.lah, x.chassis.lhe
    b2, b3 = np.radians([x.boom.beta_2_deg, x.boom.beta_3_deg])
    b5, b6, b7 = np.radians([arm.beta_5_deg, arm.beta_6_deg, arm.beta_7_deg])
    b8 = math.radians(bucket.beta_8_deg)
    b1 = math.atan2(lah, lhe)
    leb = third_side(math.hypot(lah, lhe), lab, b1 + t2 + b2 + b3)
    b567 = b5 + b6 + b7
    up = l2 * np.sin(t2) + arm.lcf * np.sin(t2 + t3 + b567) - lai * np.sin(t2 + b2)
    ahead = l2 * np.cos(t2) + arm.lcf * np.cos(t2 + t3 + b567) - lai * np.cos(t2 + b2)
    phi_5 = np.arctan2(up, ahead) - t2
    t23 = t2 + b2 + b3
    phi_6 = -np.pi - (t2 - np.arctan2(lah + lab * np.sin(t23), -lhe + lab * np.cos(t23)))
    lci = float(third_side(lai, l2, np.array(b2)))
    b4 = math.atan2(lai * math.sin(b2), l2 - lai * math.cos(b2))
    lif = third_side(lci, arm.lcf, np.pi - (b4 + t3 + b567))
    # CDL and LDP with their signs: L may lie on either side of CD, P on either of DL.
    lld = float(third_side(arm.lcl, l3, np.array(b5)))
    cdl = math.atan2(arm.lcl * math.sin(b5), l3 - arm.lcl * math.cos(b5))
    ldp = np.pi - cdl - b8 - t4
    llp = third_side(lld, bucket.ldp, ldp)
    dlp = np.arctan2(bucket.ldp * np.sin(ldp), lld - bucket.ldp * np.cos(ldp))
    phi_4 = dlp + corner(bucket.llk, llp, bucket.lpk) - cdl
    ljl = float(third_side(arm.lcl, arm.lcj, np.array(b6)))
    clj = corner(ljl, arm.lcl, np.array(arm.lcj))
    ljk = third_side(ljl, bucket.llk, np.pi + b5 - phi_4 - clj)
    lck = third_side(arm.lcl, bucket.llk, np.pi - phi_4 + b5)
    phi_2 = corner(arm.lcj, ljk, lck) + b5 + b6 - np.pi
    ldk = third_side(bucket.llk, lld, phi_4 + cdl)
    phi_3 = np.pi + b8 + t4 - corner(bucket.lpk, bucket.ldp, ldk)
    phi = {'phi_2': phi_2, 'phi_3': phi_3, 'phi_4': phi_4, 'phi_5': phi_5, 'phi_6': phi_6}
    return SimpleNamespace(leb=leb, lif=lif, ljk=ljk, **phi)


def turned(difference):
    """Return angles without whole turns."""
    return np.angle(np.exp(1j * difference))


def working(excavator):
    """Return poses over the strokes, where the thesis' arccos are on their branches."""
    low, high = excavator.joint_limits().T
    return low + np.linspace(0.0, 1.0, 501)[:, None] * (high - low)


def test_lengths_are_the_corrected_thesis(excavator):
    q = working(excavator)
    known = thesis(excavator, q)
    lengths = excavator.linkage().lengths(q)
    expected = np.stack([known.leb, known.lif, known.ljk], axis=1)
    np.testing.assert_allclose(lengths, expected, rtol=0.0, atol=1e-13)


def test_directions_are_the_corrected_thesis(excavator):
    pins = excavator.pins()
    q = working(excavator)
    known = thesis(excavator, q)
    ways = [bucket_cylinder(angle, pins) for angle in q[:, 2]]
    for phi, k in ((known.phi_2, 0), (known.phi_4, 1), (known.phi_3, 2)):
        found = np.angle([way[k] for way in ways])
        assert np.abs(turned(found - phi)).max() < 1e-13
    found = np.angle([arm_cylinder(angle, pins)[0] for angle in q[:, 1]])
    assert np.abs(turned(found - known.phi_5)).max() < 1e-13
    # E -> B in the chassis' axes; the thesis' looks back.
    found = np.angle([-boom_cylinder(angle, pins)[0] for angle in q[:, 0]])
    assert np.abs(turned(found - q[:, 0] - known.phi_6)).max() < 1e-13


def test_rod_forces_are_the_thesis(excavator):
    q = working(excavator)
    known, force = thesis(excavator, q), 290e3
    rods = excavator.linkage().rod_forces(q, np.array(force))
    two, three, four = known.phi_2, known.phi_3, known.phi_4
    # (B.1), (B.2); F_JK of the thesis is positive in tension.
    pk = (np.sin(two) - np.cos(two) * np.tan(four)) / (
        -np.sin(three) + np.cos(three) * np.tan(four)
    )
    lk = (np.sin(two) - np.cos(two) * np.tan(three)) / (
        -np.sin(four) + np.cos(four) * np.tan(three)
    )
    np.testing.assert_allclose(rods.pk, -force * pk, rtol=1e-10)
    np.testing.assert_allclose(rods.lk, -force * lk, rtol=1e-10, atol=1e-6)


def test_installed_bucket(excavator):
    linkage = excavator.linkage()
    q = np.radians([[0.0, -90.0, angle] for angle in np.linspace(-105.0, 60.0, 331)])
    lengths, levers = linkage.lengths(q)[:, 2], linkage.levers(q)[:, 2]
    # The notes' figures, read from meshes: to their last digit.
    assert lengths[-1] == pytest.approx(1.577, abs=5e-4)
    assert lengths[0] == pytest.approx(2.599, abs=5e-4)
    assert np.abs(levers).max() == pytest.approx(0.48, abs=1e-2)
    # The notes' 0.25 m are the least where the bucket digs; at the ends of the stroke it is less.
    digs = np.abs(np.degrees(q[:, 2]) + 15.0) < 54.45 + 4.0
    assert np.abs(levers[digs]).min() > 0.25
    assert 0.08 < np.abs(levers).min() < 0.1


def test_levers_are_derivatives(excavator):
    linkage = excavator.linkage()
    low, high = np.array(linkage.ranges()).T
    q = low + np.linspace(0.01, 0.99, 301)[:, None] * (high - low)
    h = 1e-4

    def central(step):
        return (linkage.lengths(q + step) - linkage.lengths(q - step)) / (2.0 * step)

    # Extrapolated differences: error h^4 and rounding / h.
    numeric = (4.0 * central(0.5 * h) - central(h)) / 3.0
    np.testing.assert_allclose(linkage.levers(q), numeric, rtol=0.0, atol=1e-10)


def test_linkages_close_and_rods_balance(excavator, random_excavator):
    random = np.random.default_rng(5)
    for other in (excavator, *(random_excavator(random) for _ in range(20))):
        linkage, pins = other.linkage(), other.bucket
        q = over_the_range(linkage)
        lengths, at, force = linkage.lengths(q), places(other, q), random.normal(0.0, 3e5, len(q))
        lever = np.array([lever_pin(angle, linkage.pins)[0] for angle in q[:, 2]])
        K = at.L + lever * np.exp(1j * (q[:, 0] + q[:, 1]))
        sides = [at.B - at.E, at.F - at.I, K - at.J, K - at.L, K - at.P]
        expected = [*lengths.T, np.full(len(q), pins.llk), np.full(len(q), pins.lpk)]
        np.testing.assert_allclose(np.abs(sides), expected, rtol=0.0, atol=1e-12)
        # K's balance, and virtual work: the rod turns the bucket as the cylinder does.
        rods = linkage.rod_forces(q, force)
        jk, lk, pk = ((K - place) / abs(K - place) for place in (at.J, at.L, at.P))
        scale = np.abs(rods.lk) + np.abs(rods.pk) + np.abs(force)
        assert np.all(abs(force * jk - rods.lk * lk - rods.pk * pk) < 1e-13 * scale)
        moment = ((at.P - at.D).conj() * rods.pk * pk).imag
        np.testing.assert_allclose(moment, force * linkage.levers(q)[:, 2], rtol=1e-9)
        # Ends of the strokes are those of the joints.
        shortest = np.array([c.retracted for c in other.cylinders])
        longest = np.array([c.extended for c in other.cylinders])
        strokes = np.linspace(shortest, longest, 101)
        angles = np.array([linkage.angles(row) for row in strokes])
        np.testing.assert_allclose(linkage.lengths(angles), strokes, rtol=0.0, atol=1e-12)
        ends = np.sort(angles[[0, -1]], axis=0).T
        np.testing.assert_allclose(ends, other.joint_limits(), rtol=0.0, atol=1e-14)


def test_geometry_may_be_shifted_and_turned(excavator):
    # The boom cylinder in front of the foot or behind it turns the range with it.
    chassis = excavator.chassis
    linkage = excavator.linkage()
    for lhe, lah in ((-0.45, 0.6), (0.449, -0.607), (-0.3, -0.3)):
        pins = excavator.pins()._replace(e=complex(lhe, -lah))
        other = Linkage(pins)
        by = cmath.phase(pins.e / complex(chassis.lhe, -chassis.lah))
        low, high = other.ranges()[0]
        shift = math.remainder(low - linkage.ranges()[0][0] - by, math.tau)
        assert abs(shift) < 1e-12
        assert high - low == pytest.approx(math.pi)
        length, lever = (
            f([0.5 * (low + high), -1.5, 0.0])[0] for f in (other.lengths, other.levers)
        )
        # A right angle at A has the triangle's other sides known.
        assert length == pytest.approx(math.hypot(abs(pins.e), abs(pins.b)))
        assert lever == pytest.approx(abs(pins.e) * abs(pins.b) / length)


def test_corners_that_fall_together_are_no_crash(excavator):
    # At theta_4 = 0 P falls on L, or K on J: a hole in the range, and no division by zero.
    pins = excavator.pins()
    together = pins._replace(p=pins.l - pins.d)
    low, high = Linkage(together).ranges()[2]
    assert not low < 0.0 < high
