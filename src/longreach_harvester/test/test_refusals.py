"""What the harvester refuses, and what it says then."""

import numpy as np
import pytest
from harvesters import IDEAL, REALISTIC, STANDARD, hanging, scenario, shipped

from longreach_dynamics.errors import InputError
from longreach_harvester.control import load_controller
from longreach_harvester.follower import HarvesterFollower
from longreach_harvester.identification import HARVESTER as IDENTIFICATION
from longreach_harvester.identification import SpoolRun
from longreach_harvester.kinematics import angles_at
from longreach_harvester.machine import Harvester
from longreach_harvester.sensors import load_sensors
from longreach_identification.machine import Recording
from longreach_tools.testing import Outcome

HANGING = Harvester(hanging(), scenario())
RUN = SpoolRun(scenario(), 0.0, 2.0)
LOADED = HANGING.attach(HANGING.initial_state(), 250.0)


def refused(function, *arguments, **changes):
    return lambda: function(*arguments, **changes)


def machine(parameters=STANDARD, options=None, **changes):
    """Make a harvester of a scenario with changes."""
    return refused(lambda: Harvester(parameters, scenario().replace(**changes), **(options or {})))


def sensed(**changes):
    """Make a harvester with other sensors."""
    sensors = load_sensors('typical').replace(**changes)
    return refused(Harvester, STANDARD, shipped('tip'), sensors=sensors)


def command(*spools):
    return refused(HANGING.advance, HANGING.initial_state(), spools, 0.0, 0.01)


def line(duration, *to):
    return {'tip': [{'kind': 'line', 'duration': duration, 'to': to}]}


def sine(amplitude, period):
    return {'sines': {'stick': {'amplitude': amplitude, 'period': period}}}


START = {'duration': 5.0, 'angles': (0.0, 0.55, -1.6)}
TURN = {'kind': 'circle', 'duration': 1.0, 'centre': (0, 0, 0), 'normal': (0, 0, 1), 'turn': 2.0}
EDGE = {'kind': 'circle', 'duration': 1.0, 'to': (5, 0, 0)}

REFUSED = [
    # Files.
    *(
        (refused(STANDARD.with_value, name, value), what)
        for name, value, what in (
            ('boom_cylinder.linkage.retracted', 3.0, r'pins from 0.85 to 1.75 m apart'),
            ('boom_cylinder.linkage.retracted', 0.8, r'retracted = 0.8 m, allowed: above 0.85 m'),
            ('stick_cylinder.stroke', 0.75, r'stroke = 0.75 m, allowed: .* below 1.9 m'),
            ('boom_cylinder.stroke', 1.2, 'a stroke below retracted'),
            ('boom_cylinder.rod_area', 1.54e-2, 'rod_area = 0.0154 m.2, allowed: below head_area'),
            ('stops.stiffness', 1e7, r'boom_cylinder: .* below 1.69\d* m .* that yield 0.059 m'),
            (
                'boom_cylinder.linkage',
                {'kind': 'rocker', 'lever': 0.05, 'shape': 0.0, 'offset': 0.2},
                r'stroke = 0\.65 m, allowed by the linkage',
            ),
        )
    ),
    # Options of the machine.
    (machine(options={'step': 0.01}), 'step = 0.01 s, allowed for this .* at most 0.00'),
    (machine(STANDARD.with_value('stick_cylinder.viscous', 1e8)), 'at most 0.0003 s; .* fric'),
    (machine(REALISTIC.with_value('head.pendulum.damping', 1e6)), 'at most 0.00022 s; .* fric'),
    (machine(options={'step': float('nan')}), 'step = nan'),
    (machine(options={'model': 'half'}), r'full \| reduced'),
    (machine(REALISTIC, {'model': 'reduced'}), 'does not have pump, relief, make_up'),
    (machine(REALISTIC, {'as_printed': True}), 'as_printed'),
    # Poses, pressures and commands.
    (machine(angles=(0, 2.4, -1)), r'boom = 2\.4 rad, allowed by the stroke of boom'),
    (machine(angles=(0, -0.3, -1.9), rod_pressure=0.0), 'rod_pressure'),
    (command(0.0, 0.0), 'spools'),
    (command(0.0, 0.0, float('nan')), 'spools'),
    (refused(angles_at, STANDARD, (9, 0, 0)), 'from the boom pivot'),
    (refused(angles_at, STANDARD, (0, 0, 1)), 'swing axis'),
    # Motions.
    (machine(spools={'stick': [[0.5, 0.3], [0.4, 0.0]]}), 'spools.stick'),
    (machine(**line(1.0, 9, 0, 0)), r'tip\[0\]: .* from the boom pivot'),
    (
        machine(**line(1.0, 1.5, 0, 0)),
        r'tip\[0\]: tip = \(.*\) m needs stick = .*, allowed by the stroke of stick_cylinder',
    ),
    (machine(tip=[EDGE]), 'centre and normal'),
    (
        machine(
            STANDARD.with_value('stick_cylinder.linkage.offset_angle', 2.1),
            angles=(0.0, 0.3, 0.35),
            **line(4.0, 5.9, 0.0, 2.9),
        ),
        r'angles = \[0\.0, 0\.3, 0\.35\] rad, allowed for a path of the tip: a negative stick',
    ),
    (machine(**sine(-0.5, 1.0)), 'at 0.5 s stick = -2.2 rad, allowed by the stroke of stick'),
    (machine(**START, **sine(0.4, 1.0)), r'at 0\.\d+ s stick has -?1\d\d'),
    (
        refused(HarvesterFollower, STANDARD, load_controller(), scenario()),
        'the scenario moves spools, or nothing, allowed',
    ),
    (refused(load_controller().stick.replace, closing=0.1), 'closing = 0.1, .* at most smallest'),
    (machine(**START, tip=[TURN]), 'swing has 2.*: 54.83 deg/s'),
    (machine(**START, tip=[EDGE | {'kind': 'line', 'turn': 2.0}]), 'turn = 2 rad'),
    (machine(spools={'boom': [[0, 0.1]]}, **sine(0.1, 4.0)), 'allowed: one'),
    (sensed(pistons=IDEAL.replace(rate=50.0)), r'pistons\.rate = 50 Hz, allowed: null, or 100'),
    (sensed(pistons=IDEAL.replace(bias=(1.0, 2.0, 3.0))), r'pistons\.bias has 3 values'),
    # Logs.
    (refused(HANGING.attach, LOADED, 100.0), 'holds a log of 250 kg'),
    (refused(HANGING.attach, HANGING.initial_state(), -1.0), 'mass'),
    (refused(HANGING.release, HANGING.initial_state()), 'no log'),
    (machine(release=[1.0]), 'in turns'),
    (machine(log=10.0, attach=[{'time': 1, 'mass': 1}]), 'in turns'),
    (machine(log=1.0, release=[0.10005]), 'time of attach or release'),
    # Identification.
    (
        refused(IDENTIFICATION.with_values, STANDARD, {'colour': 1.0}),
        "parameter = 'colour', allowed: valve_resistance_swing",
    ),
    (refused(IDENTIFICATION.experiment, STANDARD, Recording('r', {})), 'r lacks q_swing'),
    (
        refused(IDENTIFICATION.predict, STANDARD, RUN, {'spool_boom': np.zeros(2)}),
        "signal = 'spool_boom', allowed",
    ),
]


@pytest.mark.parametrize(('action', 'what'), REFUSED, ids=[what for _, what in REFUSED])
def test_refused(action, what):
    with pytest.raises(InputError, match=what):
        action()


@pytest.mark.parametrize(
    ('words', 'what'),
    [
        (('pose', '--tip', '1,2'), 'X,Y,Z'),
        (('pose', '--pose', '0,1'), '--pose has 2'),
        (('drive', '--set', 'head.weight=1'), 'weight is unknown'),
        (('run', 'open_loop', '--sensors', 'typical'), '--sensors typical, allowed with sines'),
    ],
)
def test_refused_by_the_command(capsys, words, what):
    Outcome(capsys, 'harvester', *words).refused(what)
