"""Harvesters and scenarios for tests."""

from functools import cache

from longreach_harvester.parameters import load_harvester
from longreach_harvester.scenario import Scenario

STANDARD = load_harvester()
ANGLES = (0.0, 0.55, -1.2)


def scenario(duration=2.0, angles=ANGLES, **spools):
    return Scenario(duration=duration, angles=angles, spools=spools)


@cache
def jumping():
    """All three move, with jumps within a control period, from one side to the other."""
    return scenario(
        3.0,
        angles=(0.3, 0.7, -1.5),
        swing=[[0, 0], [0.2, 0], [0.2, 0.15], [0.7, 0.15], [0.7, 0], [1.0, 0], [2.0, -0.2]],
        boom=[[0, 0.3], [0.5033, 0.3], [0.5033, -0.2], [1.2, -0.1], [1.2071, 0.02], [2.2, 0.2]],
        stick=[
            [0, 0],
            [0.3, -0.4],
            [1.5, 0.4],
            [1.5, 0.0],
            [2, 0],
            [2, 0.3],
            [2.5, 0.3],
            [2.5, 0],
        ],
    )


@cache
def changed():
    """A machine of other numbers, with two different orifices in one valve."""
    machine = STANDARD.with_value('boom_cylinder.valve.resistance_2', 5e11)
    machine = machine.with_value('stick_cylinder.valve.dead_band', 0.08)
    machine = machine.with_value('swing_motor.line.resistance', 3e9)
    machine = machine.with_value('head.mass', 1200.0)
    return machine.with_value('supply_pressure', 2.2e7)
