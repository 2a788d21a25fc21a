"""Harvesters and scenarios for tests."""

from functools import cache

from longreach_dynamics.parameters import load
from longreach_harvester.machine import Harvester
from longreach_harvester.parameters import default_file, load_harvester
from longreach_harvester.scenario import Scenario
from longreach_harvester.simulation import simulate
from longreach_harvester.spec import HARVESTER
from longreach_machine.sensors import SensorKind

STANDARD = load_harvester()
REALISTIC = load_harvester(default_file().parent / 'harvester_realistic.yaml')
ANGLES = (0.0, 0.55, -1.2)
IDEAL = SensorKind(rate=None, noise=0.0, bias=(), drift=(), step=0.0)


def scenario(duration=2.0, angles=ANGLES, **spools):
    return Scenario(duration=duration, angles=angles, spools=spools)


def shipped(name, **changes):
    """Return an installed scenario."""
    return load(Scenario, HARVESTER.find_scenario(name)).replace(**changes)


def run_of(chosen, parameters=STANDARD, step=2.5e-4, **options):
    """Return a run that reached its end."""
    run = simulate(Harvester(parameters, chosen, step, **options))
    run.check()
    return run


@cache
def jumping():
    """All three move, with jumps within a control period, from one side to the other."""
    return scenario(
        3.0,
        angles=(0.3, 0.7, -1.5),
        swing=[[0, 0], [0.2, 0], [0.2, 0.15], [0.7, 0.15], [0.7, 0], [1.0, 0], [2.0, -0.2]],
        boom=[[0, 0.3], [0.5033, 0.3], [0.5033, -0.2], [1.2, -0.1], [1.2071, 0.02], [2.2, 0.2]],
        stick=[[0, 0], [0.3, -0.4], [1.5, 0.4], [1.5, 0], [2, 0], [2, 0.3], [2.5, 0.3], [2.5, 0]],
    )


@cache
def changed():
    """A machine of other numbers, with two different orifices in one valve."""
    changes = {
        'boom_cylinder.valve.resistance_2': 5e11,
        'stick_cylinder.valve.dead_band': 0.08,
        'swing_motor.line.resistance': 3e9,
        'head.mass': 1200.0,
        'supply_pressure': 2.2e7,
    }
    return STANDARD.with_values(changes)


@cache
def hanging():
    """A machine of other numbers with a head that hangs, and swings long."""
    pendulum = {'centre': 0.7, 'transverse_inertia': 160.0, 'axial_inertia': 45.0}
    pendulum |= {'damping': 250.0, 'grapple': 1.1}
    return changed().replace(head={'mass': 950.0, 'pendulum': pendulum})


@cache
def small_pump():
    """The realistic machine with a pump that limits, and relief valves that open often."""
    changes = {
        'pump.flow': 7e-4,
        'boom_cylinder.relief.head': 1.8e7,
        'stick_cylinder.relief.rod': 1.2e7,
        'swing_motor.relief.head': 1.1e7,
    }
    return REALISTIC.with_values(changes)


def without(machine, *what):
    """Return a machine without a lag of its spools ('lag'), or with a point for its head."""
    changes = {'head.pendulum': None} if 'pendulum' in what else {}
    if 'lag' in what:
        for name in ('swing_motor', 'boom_cylinder', 'stick_cylinder'):
            changes |= {f'{name}.valve.{key}': None for key in ('time_constant', 'rate')}
    return machine.with_values(changes)
