"""Harvesters and scenarios for tests."""

from functools import cache

from longreach_harvester.machine import Harvester
from longreach_harvester.parameters import default_file, load_harvester
from longreach_harvester.scenario import Scenario, load_scenario
from longreach_harvester.simulation import simulate
from longreach_harvester.spec import HARVESTER

STANDARD = load_harvester()
REALISTIC = load_harvester(default_file().parent / 'harvester_realistic.yaml')
ANGLES = (0.0, 0.55, -1.2)


def scenario(duration=2.0, angles=ANGLES, **spools):
    return Scenario(duration=duration, angles=angles, spools=spools)


def shipped(name, **changes):
    """Return an installed scenario."""
    return load_scenario(HARVESTER.find_scenario(name)).replace(**changes)


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
    machine = STANDARD.with_value('boom_cylinder.valve.resistance_2', 5e11)
    machine = machine.with_value('stick_cylinder.valve.dead_band', 0.08)
    machine = machine.with_value('swing_motor.line.resistance', 3e9)
    machine = machine.with_value('head.mass', 1200.0)
    return machine.with_value('supply_pressure', 2.2e7)


@cache
def hanging():
    """A machine of other numbers with a head that hangs, and swings long."""
    pendulum = {
        'centre': 0.7,
        'transverse_inertia': 160.0,
        'axial_inertia': 45.0,
        'damping': 250.0,
        'grapple': 1.1,
    }
    return changed().replace(head={'mass': 950.0, 'pendulum': pendulum})


@cache
def small_pump():
    """The realistic machine with a pump that limits, and relief valves that open often."""
    machine = REALISTIC.with_value('pump.flow', 7e-4)
    machine = machine.with_value('boom_cylinder.relief.head', 1.8e7)
    machine = machine.with_value('stick_cylinder.relief.rod', 1.2e7)
    return machine.with_value('swing_motor.relief.head', 1.1e7)


def without(machine, *what):
    """Return a machine without a lag of its spools ('lag'), or with a point for its head."""
    if 'pendulum' in what:
        machine = machine.replace(head=machine.head.replace(pendulum=None))
    if 'lag' in what:
        for name in ('swing_motor', 'boom_cylinder', 'stick_cylinder'):
            actuator = getattr(machine, name)
            valve = actuator.valve.replace(time_constant=None, rate=None)
            machine = machine.replace(**{name: actuator.replace(valve=valve)})
    return machine
