"""Loads of a prescribed motion: against runs, free bodies, statics, and exact derivatives."""

import dataclasses
import math

import numpy as np
import pytest

from longreach_dynamics.tables import Table
from longreach_excavator.columns import COLUMNS as RUN_COLUMNS
from longreach_excavator.inverse import Motion, inverse, motion_from, read_motion
from longreach_excavator.linkage import CYLINDERS
from longreach_excavator.scenario import dig_scenario
from longreach_excavator.simulation import simulate

ANGLES, RATES = ('theta_2', 'theta_3', 'theta_4'), ('omega_2', 'omega_3', 'omega_4')
ACCELERATIONS = ('alpha_2', 'alpha_3', 'alpha_4')
LINKS = {'boom': 'abic', 'arm': 'cfjld', 'bucket': 'dpn'}
REST = np.zeros((1, 3))


@pytest.fixture(scope='module', params=['hydraulic', 'printed'])
def run(request, excavator):
    """Return a dig, with each step as a row."""
    turned = excavator.with_value('soil.m_45', -4e3)
    cases = {
        'hydraulic': (excavator, dig_scenario('hydraulic', 20e3, 3.0, depth='surface')),
        'printed': (excavator, dig_scenario('printed', 20e3, 0.12, depth='surface')),
        # Soil in the bucket, and the thesis' moment of the soil.
        'carried': (excavator, dig_scenario(cohesion=12e3, depth='terrain')),
        'moment': (turned, dig_scenario('thesis', 12e3)),
    }
    return simulate(*cases[request.param], sample_time=1e-3)


def table_of(result, names=RUN_COLUMNS.names, every=1):
    """Return columns of a run as if read from a file."""
    return Table('dig.csv', {name: result.column(name)[::every] for name in names})


def swinging(times, tooth=True):
    """Return a motion of all joints with exact derivatives, and a force on the tooth."""
    middle, size = np.radians([20.0, -80.0, -10.0]), np.radians([15.0, 25.0, 40.0])
    w, phase = np.array([1.1, 2.3, 3.7]), np.array([0.0, 1.0, 2.0])
    turn = np.multiply.outer(times, w) + phase
    force = np.stack([-5e4 * np.sin(times), 2e4 + 3e4 * np.cos(2.0 * times)], axis=1)
    return Motion(
        times,
        middle + size * np.sin(turn),
        size * w * np.cos(turn),
        -size * w**2 * np.sin(turn),
        force if tooth else None,
    )


@pytest.mark.parametrize('run', ['hydraulic', 'printed', 'carried', 'moment'], indirect=True)
def test_loads_of_a_simulated_dig_are_its_own(run):
    assert (run.column('bucket_mass').max() > 500.0) == (run.machine.scenario.depth == 'terrain')
    found = inverse(run.machine.parameters, motion_from(table_of(run)))
    same = [*(f'{kind}_{name}' for kind in ('force', 'pin_force', 'length') for name in CYLINDERS)]
    same += ['force_lk', 'force_pk', 'soil_x', 'soil_z', 'tip_x', 'tip_z', 'soil_force']
    for name in same:
        expected = run.column(name)
        assert np.allclose(found.column(name), expected, rtol=0.0, atol=1e-9 * np.ptp(expected))
    joints = ('boom_chassis', 'arm_boom', 'bucket_arm', *CYLINDERS, 'lk', 'pk')
    for pin, joint in zip('acdbfklp', joints, strict=True):
        forces = found.stack([f'pin_{pin}_{axis}' for axis in 'xz'])
        expected = run.stack([f'{joint}_{axis}' for axis in 'xz'])
        assert np.all(np.abs(forces - expected).max(axis=0) < 1e-9 * np.abs(expected).max(axis=0))
        assert np.allclose(found.column(f'pin_{pin}'), np.hypot(*forces.T))


def test_soil_law_is_that_of_the_run(run):
    errors = []
    for every in (2, 8):
        motion = motion_from(table_of(run, every=every))
        found = inverse(run.machine.parameters, motion, 'law')
        assert np.allclose(found.column('depth'), run.column('depth')[::every], atol=1e-12)
        difference = found.column('soil_x') - run.column('soil_x')[::every]
        errors.append(np.abs(difference).max() / run.column('soil_force').max())
    assert errors[1] < 5e-3
    # Of second order in the interval of rows.
    assert errors[0] < errors[1] / 8.0


def test_power_is_what_the_cylinders_did(run):
    found = inverse(run.machine.parameters, motion_from(table_of(run)))
    for name in CYLINDERS:
        power = found.column(f'power_{name}')
        work = np.concatenate([[0.0], np.cumsum(0.5e-3 * (power[1:] + power[:-1]))])
        expected = run.column(f'work_{name}')
        largest = max(np.abs(run.column(f'work_{other}')).max() for other in CYLINDERS)
        assert np.abs(work - expected).max() < 2e-3 * largest


def test_forces_and_moments_on_each_link_make_its_motion(excavator):
    motion, pins = swinging(np.linspace(0.0, 5.0, 300)), excavator.pins()
    found = inverse(excavator, motion)
    theta, omega, alpha = (
        np.cumsum(part, axis=1).T for part in (motion.angles, motion.rates, motion.accelerations)
    )
    joint = np.full(len(motion.times), 1j * excavator.gravity)
    for k, (name, link_pins) in enumerate(LINKS.items()):
        link, turn = getattr(excavator, name), np.exp(1j * theta[k])
        center = link.center * np.exp(1j * math.radians(link.center_deg))
        spin = (1j * alpha[k] - omega[k] ** 2) * turn
        # The forces on its pins in the link's own axes; its first pin is the joint.
        own = np.array(
            [
                found.stack([f'{name}_{pin}_along', f'{name}_{pin}_across']) @ [1.0, 1.0j]
                for pin in link_pins
            ]
        )
        scale = np.abs(own).max()
        wanted = link.mass * (joint + spin * center)
        assert np.abs((own * turn).sum(axis=0) - wanted).max() < 1e-11 * scale
        places = np.array([0.0, *(getattr(pins, pin) for pin in link_pins[1:])])
        moment = ((places[:, None] - center).conj() * own).imag.sum(axis=0)
        assert np.abs(moment - link.inertia * alpha[k]).max() < 1e-11 * scale
        # The same in the world, of opposite sign on the outboard link.
        for pin, force in zip(link_pins, own * turn, strict=True):
            column = 'soil' if pin == 'n' else f'pin_{pin}'
            given = -1.0 if f'{name}_{pin}' in ('boom_c', 'arm_d') else 1.0
            world = given * found.stack([f'{column}_x', f'{column}_z']) @ [1.0, 1.0j]
            assert np.abs(force - world).max() < 1e-11 * scale
        joint = joint + spin * link.length


def test_pose_at_rest_is_statics_by_hand(excavator):
    """Moments of the weights about A, C and D, with the lengths of levers by triangles."""
    q = np.radians([25.0, -85.0, -20.0])
    still = Motion(np.zeros(1), q[None], REST, REST, np.array([[-3e4, 1e4]]))
    found = inverse(excavator, still)
    turned, links = np.cumsum(q), [excavator.boom, excavator.arm, excavator.bucket]
    joints = np.cumsum([0.0, *([link.length for link in links] * np.exp(1j * turned))])
    centers = [
        joint + link.center * np.exp(1j * (t + math.radians(link.center_deg)))
        for joint, link, t in zip(joints, links, turned, strict=False)
    ]
    weights = [link.mass * 9.81 for link in links]
    for k, name in enumerate(CYLINDERS):
        moment = sum(
            W * (G - joints[k]).real for W, G in zip(weights[k:], centers[k:], strict=True)
        )
        arm = joints[3] - joints[k]
        moment -= arm.real * 1e4 - arm.imag * -3e4
        assert math.isclose(found.column(f'torque_{k + 2}')[0], moment, rel_tol=1e-12)
        shift = 1e-6 * np.eye(3)[k]
        lever = np.diff(excavator.linkage().lengths([q - shift, q + shift]), axis=0)[0, k] / 2e-6
        assert math.isclose(found.column(f'force_{name}')[0], moment / lever, rel_tol=1e-8)
    # All that the chassis gives is the weight and what the tooth takes.
    base = [found.column(f'pin_a_{axis}')[0] - found.column(f'pin_e_{axis}')[0] for axis in 'xz']
    assert np.allclose(base, [3e4, sum(weights) - 1e4], rtol=1e-12)


def test_source_of_the_soil_force_is_chosen(excavator):
    motion = swinging(np.linspace(0.0, 2.0, 50))
    assert np.array_equal(inverse(excavator, motion).column('soil_x'), motion.tooth_forces[:, 0])
    assert not inverse(excavator, motion, 'none').column('soil_force').any()
    bare = dataclasses.replace(motion, tooth_forces=None)
    assert not inverse(excavator, bare).column('soil_force').any()
    deep = inverse(excavator, bare, 'law', surface=20.0)
    assert (deep.column('depth') > 0.0).all()
    assert deep.column('soil_force').min() > 1e4
    # Against the way of the tooth, as it moves there in the first row.
    way = np.diff(deep.column('tip_x') + 1j * deep.column('tip_z'))[0]
    push = deep.column('soil_x')[0] + 1j * deep.column('soil_z')[0]
    assert abs(np.angle(-push / way)) < 0.1
    assert not inverse(excavator, bare, 'law', surface=-20.0).column('soil_force').any()


def test_soil_stays_mobilised_while_the_tooth_rests(excavator):
    times = np.linspace(0.0, 2.0, 201)
    run = np.minimum(times, 1.0)
    q = np.radians([20.0, -95.0, 20.0]) - np.outer(run**2 * (3.0 - 2.0 * run), [0.0, 0.0, 0.5])
    names = dict(zip(ANGLES, q.T, strict=True))
    zero = {name: np.zeros(201) for name in (*RATES, *ACCELERATIONS)}
    zero['omega_4'] = -0.5 * np.where(times < 1.0, 6.0 * run - 6.0 * run**2, 0.0)
    motion = motion_from(Table('m', {'time': times, **names, **zero}))
    found = inverse(excavator, motion, 'law')
    assert found.column('soil_force')[0] == 0.0
    resting = found.column('soil_force')[100:]
    assert resting[0] > 1e4
    assert np.allclose(resting, resting[0], rtol=1e-9)


def test_splines_find_rates_and_accelerations_as_well_as_they_say():
    w, errors = 3.7, []
    for h in (0.02, 0.01):
        exact = swinging(np.arange(0.0, 4.0, h), tooth=False)
        columns = {'time': exact.times, **dict(zip(ANGLES, exact.angles.T, strict=True))}
        rates = dict(zip(RATES, exact.rates.T, strict=True))
        inner = slice(20, -20)
        found = motion_from(Table('m', columns))
        better = motion_from(Table('m', columns | rates))
        assert np.array_equal(better.rates, exact.rates)
        errors.append(
            [
                np.abs(part[inner, 2] - full[inner, 2]).max() / np.abs(full[:, 2]).max()
                for part, full in (
                    (found.rates, exact.rates),
                    (found.accelerations, exact.accelerations),
                    (better.accelerations, exact.accelerations),
                )
            ]
        )
        share = w * h
        limits = (share**4 / 180, share**2 / 12, share**4 / 180)
        for error, limit in zip(errors[-1], limits, strict=True):
            assert 0.8 * limit < error < 1.1 * limit
    assert np.allclose(np.array(errors[0]) / errors[1], [16.0, 4.0, 16.0], rtol=0.1)


def test_splines_pass_on_errors_as_they_say():
    count, h = 41, 0.02
    by_row = [
        motion_from(
            Table('m', {'time': h * np.arange(count), **dict.fromkeys(ANGLES, error)})
        ).accelerations[:, 0]
        for error in np.eye(count)
    ]
    found = h**2 * np.sqrt(np.sum(np.square(by_row), axis=0))
    assert found[[0, count // 2, -1]] == pytest.approx([9.22, 6.0, 9.22], abs=0.01)


def test_cutoff_smooths_as_it_says():
    rng = np.random.default_rng(5)
    h, cutoff, noise = 0.01, 3.0, math.radians(0.1)
    W = 2.0 * math.pi * cutoff
    exact = swinging(np.arange(0.0, 40.0, h), tooth=False)
    inner = slice(200, -200)

    def smoothed(angles):
        columns = {'time': exact.times, **dict(zip(ANGLES, angles.T, strict=True))}
        # Columns that are smoothed away, too.
        columns |= {name: np.full(len(angles), 7.0) for name in (*RATES, *ACCELERATIONS)}
        return motion_from(Table('m', columns), cutoff)

    clean = smoothed(exact.angles)
    kept = 1.0 / (1.0 + (np.array([1.1, 2.3, 3.7]) / W) ** 4)
    assert np.allclose(clean.rates[inner], kept * exact.rates[inner], atol=1e-4)
    assert np.allclose(clean.accelerations[inner], kept * exact.accelerations[inner], atol=1e-3)
    noisy = smoothed(exact.angles + noise * rng.standard_normal(exact.angles.shape))
    error = np.std((noisy.accelerations - clean.accelerations)[inner])
    assert math.isclose(error, 0.297 * noise * W**2 * math.sqrt(W * h), rel_tol=0.1)


def test_rows_may_be_uneven():
    rng = np.random.default_rng(6)
    times = np.cumsum(rng.uniform(0.005, 0.015, 1500))
    exact = swinging(times, tooth=False)
    table = Table('m', {'time': times, **dict(zip(ANGLES, exact.angles.T, strict=True))})
    for cutoff, close in ((None, 2e-3), (8.0, 1e-2)):
        found = motion_from(table, cutoff)
        inner = slice(60, -60)
        scale = np.abs(exact.accelerations).max()
        difference = (found.accelerations - exact.accelerations)[inner]
        assert np.abs(difference).max() < close * scale


def test_file_in_degrees_is_the_same_motion(tmp_path, excavator):
    exact = swinging(np.linspace(0.0, 1.0, 30))
    parts = dict(zip(ANGLES, exact.angles.T, strict=True))
    files = []
    for suffix, factor in (('', 1.0), ('_deg', 180.0 / math.pi)):
        names = ['time', *(f'{name}{suffix}' for name in parts), 'force_x', 'force_z']
        rows = np.stack(
            [exact.times, *(factor * part for part in parts.values()), *exact.tooth_forces.T],
            axis=1,
        )
        files.append(tmp_path / f'motion{suffix}.csv')
        np.savetxt(files[-1], rows, '%.17g', ',', header=','.join(names), comments='')
    one, other = (inverse(excavator, read_motion(file)).table for file in files)
    assert np.allclose(one, other, rtol=1e-9, atol=1e-6)
