"""Bad input: what is refused, with which message, and that nothing is overwritten."""

import json
import math
import re

import numpy as np
import pytest

from longreach_dynamics.errors import InputError
from longreach_dynamics.parameters import load_yaml
from longreach_excavator.breakout import breakout, standing
from longreach_excavator.cohesion import fit_cohesion
from longreach_excavator.forces import PRESSURE_COLUMNS, read_forces
from longreach_excavator.inverse import Motion, inverse, read_motion
from longreach_excavator.linkage import Linkage
from longreach_excavator.machine import CLOSED, Excavator, ExcavatorCommand
from longreach_excavator.measurements import Measurements, read_measurements
from longreach_excavator.parameters import default_file, load_excavator
from longreach_excavator.scenario import Scenario, dig_scenario, load_scenario
from longreach_excavator.simulation import ExcavatorRun
from longreach_excavator.soil import resistance_at
from longreach_excavator.teleoperation import Teleoperation, load_teleoperation
from longreach_machine.scenarios import ValveCommand
from longreach_tools.testing import Outcome

ZERO = (0.0, 0.0, 0.0)
SOIL = json.dumps(load_yaml(default_file())['soil'])


def pattern(message):
    """Return the regular expression of a text with two dots for what is left out."""
    return '.*'.join(re.escape(part) for part in message.split(' .. '))


@pytest.mark.parametrize(
    ('path', 'value', 'message'),
    [
        ('bucket.inertia', 1.1e4, 'inertia = 11000 kg m^2, allowed: up to 10 times mass length'),
        ('boom.center', 57.0, 'center = 57.0 m, allowed: up to 10 times length = 5.648 m'),
        ('cylinders.boom.name', 'Boom', "cylinders have the names ('Boom', 'arm', 'bucket'), all"),
        ('poses.reach.name', '', "poses[1].name = '', allowed: a name"),
        ('poses.reach.name', 'dig', "poses has the name 'dig' twice, allowed: no"),
        ('poses.dig.angles_deg', (20.0, -95.0, 75.0), 'poses[0] (dig): theta_4 (bucket) = 75 deg'),
        ('soil.earthmoving.unit_weight', 1700.0, 'unit_weight = 1700.0, allowed: [3000, 60000]'),
        ('cylinders.boom.stroke', 1.5, 'cylinders[0] (boom): retracted = 1.81 m with stroke = 1.'),
        ('bucket.lpk', 3.0, 'the bucket linkage closes nowhere .. ; look at llk, lpk, ldp'),
        ('soil.earthmoving.blade_friction_deg', 35.0, 'blade_friction_deg = 35 deg, allowed: at '),
        ('soil.earthmoving.rake_angle_deg', 140.0, '= 189 deg leaves no failure wedge, allowed: '),
        ('soil.earthmoving.rake_angle_deg', 129.0, 'a failure wedge of 0. .. deg, allowed: at le'),
    ],
)
def test_parameters(excavator, path, value, message):
    with pytest.raises(InputError, match=pattern(message)):
        excavator.with_value(path, value)


@pytest.mark.parametrize(
    ('changes', 'message'),
    [
        ({'pose_deg': (20.0, -95.0, 0.0)}, 'pose and pose_deg given, allowed: one'),
        ({'pose': '', 'pose_deg': (20.0, -95.0, 80.0)}, 'theta_4 (bucket) = 80 deg, allowed by t'),
        ({'duration': 8.0005}, 'duration = 8.0005 s, allowed: whole steps of 0.0'),
        ({'mode': 'printed', 'duration': 7.5}, 'duration = 7.5 s, allowed with the trend lines'),
        ({'mode': 'printed', 'valve_commands': (ValveCommand(0.0, ZERO),)}, 'valve_commands, loo'),
        ({'mode': 'thesis'}, "depth = 'surface', allowed with mode: thesis: swing"),
        ({'forces': 'x.csv'}, 'forces belongs to mode: printed'),
        ({'loose': ('bukket',)}, "loose has 'bukket', allowed, each once: boom | arm | bucket"),
        ({'valve_commands': (ValveCommand(0.0004, ZERO),)}, 'valve_commands[0].time = 0.0004 s'),
        ({'valve_commands': (ValveCommand(1.0, ZERO),) * 2}, '[1].time = 1.0 s, allowed: after 1'),
        ({'depth': 'terrain', 'surface': -50.0}, 'surface = -50 m is out of reach, allowed with'),
    ],
)
def test_scenarios(excavator, changes, message):
    with pytest.raises(InputError, match=pattern(message)):
        Excavator(excavator, Scenario(**({'duration': 1.0, 'pose': 'dig'} | changes)))


def test_a_start_in_the_ground(excavator):
    """Tooth first, and with a curled bucket whose back is lowest."""
    for pose, lowest in ((20.0, -95.0, -15.0), -2.439), ((20.0, -95.0, -90.0), -1.847):
        scenario = Scenario(duration=1.0, pose_deg=pose, depth='terrain')
        touched = scenario.surface_height(excavator)
        assert touched == pytest.approx(lowest, abs=1e-3)
        scenario.replace(surface=touched).check_with(excavator, 1e-3)
        with pytest.raises(InputError, match=rf'surface = .* up to {touched:.4f} m.*begin above'):
            scenario.replace(surface=touched + 0.01).check_with(excavator, 1e-3)


def test_soil_and_law_of_a_scenario_must_fit(excavator):
    sticky = excavator.with_value('soil.law', 'earthmoving')
    with pytest.raises(InputError, match=r'earthmoving\.adhesion = 2000 Pa, allowed: at most coh'):
        Excavator(sticky, dig_scenario(cohesion=1e3))
    with pytest.raises(InputError, match=r"law = 'earthmoving'.*mode: thesis: zelenin"):
        Excavator(sticky, dig_scenario('thesis'))
    assert dig_scenario(cohesion=1e3).excavator(excavator).soil.cohesion == 1e3
    Excavator(sticky, Scenario(duration=1.0, pose='dig', mode='thesis', soil=False))
    flat = sticky.soil.earthmoving.replace(rake_angle_deg=10.0, adhesion=15e3)
    with pytest.raises(InputError, match='else the resistance would be negative') as error:
        sticky.soil.replace(earthmoving=flat)
    allowed = float(str(error.value).split('at most ')[1].split()[0])
    sticky.soil.replace(earthmoving=flat.replace(adhesion=0.999 * allowed))


def motion(**changes):
    known = {'times': np.arange(3.0)} | dict.fromkeys(
        ('angles', 'rates', 'accelerations'), np.tile(np.radians([20.0, -95.0, 0.0]), (3, 1))
    )
    return Motion(**(known | changes))


def pose_data(name='theta_4', **changes):
    return Measurements(**({'columns': (name,), 'values': np.zeros((1, 1))} | changes))


def fitted(x, *rest, **changes):
    return fit_cohesion(x, dig_scenario(duration=1.0).replace(**changes), pose_data(), *rest)


def in_unit(x, name, value):
    return fit_cohesion(x, dig_scenario(), pose_data(name, values=np.full((1, 1), value)))


def advanced(x, *command):
    machine = Excavator(x, dig_scenario())
    return machine.advance(machine.initial_state(), ExcavatorCommand(*command), 0.0, 0.1)


def sticks(x, axes, buttons):
    station = Teleoperation(load_teleoperation().replace(deadman=1), x)
    return station.order_of_sticks(axes, buttons)


@pytest.mark.parametrize(
    ('make', 'message'),
    [
        (lambda x: x.check_pose(np.zeros(2)), 'pose has 2 values, allowed: 3'),
        (lambda x: standing(x, np.array([0.3, 0.5, 0.0])), 'theta_3 (arm) = 28.6479 deg, allowed'),
        (lambda x: breakout(x, 'boom', x.pose('dig')), "cylinder = 'boom', allowed: bucket | arm"),
        (lambda x: Linkage(x.pins()._replace(lk=math.nan)), 'closes nowhere with a lever'),
        (
            lambda x: x.linkage().angles(np.array([2.5, 2.7])),
            'lengths has shape (2,), allowed: (3,)',
        ),
        (lambda x: x.linkage().angle(1, math.nan), 'length of the arm cylinder = nan m'),
        (lambda x: x.linkage().lengths(np.zeros(2)), 'a pose has shape (2,), allowed: (..., 3)'),
        (lambda x: x.linkage().levers(np.array([0.0, -1.0, math.nan])), 'theta_4 = nan deg, allo'),
        (lambda x: resistance_at(x.soil, np.array([np.nan])), 'depths has values that are not fi'),
        (lambda x: Excavator(x, dig_scenario(), math.nan), 'step = nan s, allowed'),
        (lambda x: Excavator(x, dig_scenario(), tolerance=1.0), 'tolerance = 1.0, allowed: 0, or'),
        (
            lambda x: Excavator(x, dig_scenario()).advance_recorded(None, CLOSED, 10, -3, 0),
            'duration is -3 steps, allowed: 0 or more',
        ),
        (lambda x: advanced(x, (0.0, 0.0)), 'spools of the command has 2 values, allowed: 3'),
        (lambda x: advanced(x, (0.0, 1.001, 0.0)), 'spools = (0.0, 1.001, 0.0), allowed: [-1, 1]'),
        (lambda x: advanced(x, ZERO, (math.nan, 0.0, 0.0)), 'up to 1e+07 N, or None'),
        (lambda x: sticks(x, [0.0] * 4, [0, 1]), 'joy has 4 axes, allowed with right_fore_aft.ax'),
        (lambda x: sticks(x, [0.0] * 4 + [math.nan], [0, 1]), 'joy has nan on axis 4, allowed: f'),
        (lambda x: sticks(x, [0.0] * 5, [1]), 'joy has 1 buttons, allowed with deadman = 1: 2 or'),
        # A motion, and its loads.
        (lambda _: motion(times=np.array([0.0, 0.25, 0.2])), 'time in row 3 = 0.2 s, allowed: ab'),
        (lambda _: motion(rates=np.full((3, 3), math.nan)), 'rates go to nan, allowed: up to 10'),
        (lambda _: motion(angles=np.zeros((2, 3))), 'angles has shape (2, 3), allowed: (3, 3)'),
        (lambda _: motion(tooth_forces=np.ones((1, 2))), 'tooth_forces has shape (1, 2), allowed'),
        (lambda _: Motion(np.zeros(0), *[np.zeros((0, 3))] * 3), 'shape (0,), allowed: (1,)'),
        (lambda _: motion(tooth_forces=np.full((3, 2), 1e9)), 'tooth_forces go to 1e+09, allowed'),
        (lambda _: motion(loads=np.full((3, 2), -1.0)), 'bucket_mass = -1 kg, allowed: 0 or more'),
        (lambda x: inverse(x, motion(), 'clay'), "soil = 'clay', allowed: file | law | none"),
        (lambda x: inverse(x, motion(), depth='deep'), "depth = 'deep', allowed: surface | swing"),
        (lambda x: inverse(x, motion(), surface=math.nan), 'surface = nan m, allowed'),
        # Measurements, and the search for a cohesion.
        (lambda _: pose_data(values=np.full((1, 1), math.nan)), 'values that are not finite'),
        (lambda x: in_unit(x, 'theta_4', -5.0), 'theta_4 goes from -5 to -5 rad, allowed by the '),
        (lambda x: in_unit(x, 'length_arm', 2100.0), 'to 2100 m, allowed by the strokes: '),
        (
            lambda x: in_unit(x, 'force_pk', 290.0),
            'data: force_pk: a force of 290 N is the larges',
        ),
        (lambda _: pose_data(times=np.array([-1.0])), 'time begins at -1 s'),
        (
            lambda _: pose_data(values=np.zeros((3, 1)), times=np.array([0.0, 1.0, 1.0])),
            'time in row 3 = 1 s, allowed: above 1 s',
        ),
        (lambda x: fitted(x, (1e3, math.nan)), 'bounds = (1000, nan) Pa, allowed: 0 < lowest'),
        (lambda x: fitted(x, (1e3, 2e6)), 'bounds = (1000, 2e+06) Pa: cohesion = '),
        (lambda x: fitted(x.with_value('soil.law', 'earthmoving')), 'bounds = .. adhesion = 2000'),
        (lambda x: fitted(x, soil=False), 'soil: false'),
        (lambda x: fitted(x, (1e3, 1e5), {'force_lk': 1.0}), "column of noise = 'force_lk'"),
        (lambda x: fitted(x, (1e3, 1e5), {'theta_4': 0.0}), 'noise of theta_4 = 0 rad'),
        (lambda x: fitted(x, depth='terrain'), "depth = 'terrain', allowed .. : surface | swing;"),
    ],
)
def test_arguments(excavator, make, message):
    with pytest.raises(InputError, match=pattern(message)):
        make(excavator)


@pytest.mark.parametrize('joint', range(3))
@pytest.mark.parametrize('side', [0, 1])
def test_poses_beyond_a_stroke_or_a_dead_point(excavator, joint, side):
    way, linkage, name = (-1.0, 1.0)[side], excavator.linkage(), ('boom', 'arm', 'bucket')[joint]
    limits = excavator.joint_limits()
    pose = limits.mean(axis=1)
    pose[joint] = limits[joint, side]
    excavator.check_pose(pose)
    beyond = pose + way * 1e-3 * np.eye(3)[joint]
    low, high = np.degrees(limits[joint])
    with pytest.raises(InputError, match=pattern(f'({name}) = .. : [{low:.4f}, {high:.4f}] deg')):
        excavator.check_pose(beyond)
    # Stops give way a little: a motion may go beyond a stroke by 1 deg.
    still = np.zeros((4, 3))
    angles = np.tile(pose, (4, 1))
    angles[2, joint] += way * math.radians(0.9)
    inverse(excavator, Motion(np.arange(4.0), angles, still, still))
    angles[2, joint] += way * math.radians(0.2)
    with pytest.raises(
        InputError, match=pattern(f'({name}) in row 3 (time = 2 s) = .. , allowed')
    ):
        inverse(excavator, Motion(np.arange(4.0), angles, still, still))
    dead = linkage.ranges()[joint][side]
    for off in (1e-6, 30.0, math.inf):
        pose[joint] = dead + way * off
        for call in (linkage.lengths, linkage.levers, lambda q: linkage.rod_forces(q, 1.0)):
            with pytest.raises(InputError, match=f'dead points of the {name} linkage'):
                call(pose)
        ends = np.sort(linkage.lengths(np.array(linkage.ranges()).T)[:, joint])
        with pytest.raises(InputError, match=f'length of the {name} cylinder = .* m, allowed'):
            linkage.angle(joint, float(ends[side] + way * off))


def forces_file(file):
    return read_forces(file, load_excavator())


FORCES = 'time,force_boom,force_arm,force_bucket\n-1,0,0,0\n0,10,20,30\n2,30,0,-50\n'
PRESSURES = ','.join(('time', *PRESSURE_COLUMNS)) + '\n0,{0}\n9,{0}\n'
MOTION = 'time,theta_2,theta_3,theta_4\n0,0.3,-1.6,0\n1,0.3,-1.6,0\n2,0.3,-1.6,0\n'


@pytest.mark.parametrize(
    ('read', 'text', 'message'),
    [
        (forces_file, FORCES.replace('force_bucket', 'x'), 'found the columns time, force_boom, '),
        (forces_file, FORCES.replace('-1,0,0,0\n0,', '0.5,'), 'data.csv: time begins at 0.5 s, a'),
        (forces_file, FORCES.replace('20', '2e8'), 'a force of 2e+08 N is the largest, allowed: '),
        (forces_file, PRESSURES.format('1e7,1e7,1e7,1e6,-1.0,1e6'), 'a pressure of -1 Pa, allowe'),
        (forces_file, PRESSURES.format('120,80,290,5,5,60'), 'no pressure is above 290 Pa, .. in'),
        (read_motion, MOTION.replace('theta_3', 'x'), 'data.csv lacks theta_3; found: '),
        (read_motion, MOTION, 'has 3 rows, allowed: at least 4, .. omega_2'),
        (
            read_motion,
            'time,theta_2,theta_3,theta_2_deg\n0,0,0,0\n1,0,0,0\n',
            'has columns theta_2 and theta_2_deg, allowed: one',
        ),
        (lambda file: read_motion(file, 9.0), MOTION + '3,0,-1,0\n4,0,-1,0\n', 'cutoff = 9 Hz'),
        (read_measurements, 'time,x\n0,1\n1,2\n', 'found the columns time, x; allowed: time with'),
        (read_measurements, 'theta_4\n0\n1\n', '2 rows and no column time'),
        (
            lambda file: read_measurements(file, 1e-3),
            'force_lk,strain_lk\n0,0\n',
            'has columns force_lk and strain_lk, allowed: one of them',
        ),
        (read_measurements, 'theta_2,theta_2_deg\n0,0\n', 'has columns theta_2 and theta_2_deg, '),
        (read_measurements, 'strain_lk\n1e-4\n', 'has the column strain_lk, but rod_area is miss'),
        (lambda file: read_measurements(file, math.nan), 'strain_lk\n0\n', 'rod_area = nan m^2, '),
        (
            lambda file: read_measurements(file, 1e-3),
            'strain_lk\n-120\n',
            'strain_lk goes to 120, allowed: up to 0.01; microstrain',
        ),
        (load_teleoperation, '{axis: 0, sign: 1}', 'left_sideways: sign = 0, allowed: -1 | 1'),
    ],
)
def test_files(tmp_path, read, text, message):
    file = tmp_path / 'data.csv'
    if read is load_teleoperation:
        source = default_file().with_name('teleoperation.yaml').read_text()
        assert text in source
        text = source.replace(text, '{axis: 0, sign: 0}')
    file.write_text(text)
    with pytest.raises(InputError, match=pattern(message)):
        read(file)


def test_forces_are_read_with_the_scenario(tmp_path, excavator):
    (tmp_path / 'data.csv').write_text(FORCES)
    file = tmp_path / 'scenario.yaml'
    file.write_text('duration: 3.0\npose: dig\nmode: printed\nforces: data.csv\n')
    message = r'scenario\.yaml: .*data\.csv ends at 2 s, allowed: at duration = 3 s or later'
    with pytest.raises(InputError, match=message):
        load_scenario(file, excavator, 1e-3)


@pytest.mark.parametrize(
    ('words', 'text'),
    [
        (('dig', '--mode', 'printed', '--sample-time', 0.1), '--sample-time = 0.1 s, allowed wit'),
        (('dig', '--mode', 'printed', '--flow', 200), '--flow, allowed with --mode hydraulic'),
        (('dig', '--set', 'scenario.mode=printed'), 'without an option that gives mode, here hyd'),
        (('dig', '--held', '--set', 'scenario.held.0=arm'), "held, here ('boom', 'arm');"),
        (
            ('cohesion', '--data', 'x.csv', '--depth', 'swing', '--set', 'scenario.depth=surface'),
            'without an option that gives depth, here swing',
        ),
        (('dig', '--flow', 1e9), '--flow 1e+09 L/min: cylinders.bucket.valve.area = '),
        (('pose', '--set', 'scenario.surface=1'), 'as this command has no scenario'),
        (('pose', '--tip', '1'), 'x,z or x,z,attitude'),
        (
            ('pose', '--tip', '5,0,90'),
            'attitude up to 90 rad, allowed: [-2 pi, 2 pi]; add --degrees',
        ),
        (('steps', '--set', 'soil.cohesion=3'), '--set soil.cohesion, allowed: the cohesions'),
        (('steps', '--set', f'soil={SOIL}'), '--set soil.cohesion, allowed: the cohesions'),
        (
            ('inverse', '--motion', 'x', '--set', 'soil.cohesion=3'),
            '--set soil., allowed with --soil law, here file',
        ),
    ],
)
def test_commands(capsys, tmp_path, monkeypatch, words, text):
    monkeypatch.chdir(tmp_path)
    Outcome(capsys, 'excavator', *words).refused(text)
    assert not list(tmp_path.iterdir())


def test_forces_that_are_read_are_not_replaced(capsys, tmp_path):
    forces, given, data = (tmp_path / name for name in ('forces.csv', 'given.yaml', 'data.csv'))
    text = 'time,force_boom,force_arm,force_bucket\n0,0,0,0\n9,0,0,0\n'
    forces.write_text(text)
    given.write_text('duration: 0.5\npose: dig\nmode: printed\nforces: forces.csv\n')
    data.write_text('time,theta_2,theta_3,theta_4\n0,0,-1,0\n')
    for words in (
        ('dig', '--mode', 'printed', '--set', f'scenario.forces={forces}'),
        ('run', given),
        ('cohesion', '--data', data, '--scenario', given),
    ):
        outcome = Outcome(capsys, 'excavator', *words, '--csv', forces)
        outcome.refused('is one of the inputs; give another place')
    for option in ('--rod-area', '--youngs-modulus'):
        outcome = Outcome(capsys, 'excavator', 'cohesion', '--data', data, option, 1)
        outcome.refused(f'{option}, allowed with columns strain_lk or strain_pk')
    assert forces.read_text() == text


def test_a_run_out_of_balance_is_no_result(capsys, tmp_path, monkeypatch):
    file = tmp_path / 'run.csv'
    for error in (0.5, math.nan):
        monkeypatch.setattr(ExcavatorRun, 'energy_error', lambda _, error=error: error)
        outcome = Outcome(capsys, 'excavator', 'dig', '--duration', 0.1, '--csv', file)
        outcome.refused(f'energy balance of the run is wrong by a share of {error}', code=1)
        assert not list(tmp_path.iterdir())
