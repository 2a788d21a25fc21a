"""
A pendulum that a cylinder lifts: parameters, equation of motion, and its declaration.

State y = (phi, phi', p_1, p_2, s_v): angle above the horizontal [rad], its rate, pressures [Pa],
spool position. m l^2 phi'' = (p_1 A_1 - p_2 A_2) ds/dphi - m g l cos(phi), s(phi) the linkage.
"""

import dataclasses
import math

import numpy as np
from numba import njit

from longreach_dynamics import hydraulics
from longreach_dynamics.errors import InputError, LongreachError
from longreach_dynamics.hydraulics import actuator_rates, rail_pressure
from longreach_dynamics.kernels import kernel
from longreach_dynamics.linkages import Linkage, piston_and_arm
from longreach_dynamics.parameters import Parameters, quantity
from longreach_dynamics.stepping import nonstiff_integrator, raise_for
from longreach_machine import Curve, MachineSpec, Panel, urdf
from longreach_machine.machine import ByScenario, HydraulicSample, JointSample
from longreach_machine.runs import Column, Columns, Run, Source

GRAVITY = 9.81  # [m/s^2]
Command = tuple[float] | ByScenario


@dataclasses.dataclass(frozen=True)
class PendulumParameters(Parameters):
    """The contents of pendulum.yaml."""

    mass: float = quantity('mass', 'kg', above=0.0)
    length: float = quantity('from the pivot to the mass', 'm', above=0.0)
    angle: float = quantity('above the horizontal at time 0', 'rad')
    linkage: Linkage = quantity('between cylinder and pivot')
    cylinder: hydraulics.Cylinder = quantity('cylinder')
    oil: hydraulics.OilParameters = quantity('oil')

    def check(self) -> None:
        """Raise InputError for an angle beyond the stroke."""
        low, high = self.linkage.angles(self.cylinder.stroke)
        if not low <= self.angle <= high:
            raise InputError(f'angle = {self.angle:g} rad, allowed: {low:.4g} to {high:.4g} rad')


@dataclasses.dataclass(frozen=True)
class Lift(Parameters):
    """The only scenario: the valve is open from 1 to 3 s."""

    duration: float = quantity('length of the simulation', 's', above=0.0, default=5.0)


@njit
def _right_hand_side(t, y, spool, p, dy):  # type: ignore[no-untyped-def]
    mass, length, table = p
    position, arm = piston_and_arm(table, 0, y[0])
    supply = rail_pressure(y, 2, table)
    force = actuator_rates(y, 2, 0, position, arm * y[1], spool, supply, table, dy)
    dy[0], dy[1] = y[1], force * arm / (mass * length**2) - GRAVITY / length * math.cos(y[0])


_integrate = nonstiff_integrator(_right_hand_side)


@kernel
def _advance(time, duration, y, spool, p):  # type: ignore[no-untyped-def]
    return _integrate(time, duration, y, spool, p, 1e-9, 1e-9, 1e-3)


class Pendulum:
    """What runs and node drive: the state is y, the command a spool position."""

    step = 0.01  # of samples [s]

    def __init__(self, p: PendulumParameters) -> None:
        self.parameters = p
        actuators = hydraulics.actuators_of([p.cylinder], p.oil, p.linkage.row()[None], [0.0])
        self._constants = (p.mass, p.length, actuators.table)
        self._range = p.linkage.angles(p.cylinder.stroke)

    def initial_state(self) -> np.ndarray:
        """Return the pendulum at rest, held by the oil."""
        p = self.parameters
        force = p.mass * GRAVITY * p.length * math.cos(p.angle) / p.linkage.arm(p.angle)
        head, rod = hydraulics.holding_pressures(np.array([force]), [p.cylinder], p.oil)
        return np.array([p.angle, 0.0, *head, *rod, 0.0])

    def advance(self, y: np.ndarray, command: Command, time: float, duration: float) -> np.ndarray:
        """Return the state ``duration`` [s] later; by itself the pendulum lifts from 1 to 3 s."""
        spool = 0.5 * (1.0 <= time < 3.0) if isinstance(command, ByScenario) else command[0]
        after, _, _, status = _advance(time, duration, y, spool, self._constants)
        raise_for(status, time, y)
        low, high = self._range
        if not low <= after[0] <= high:
            raise LongreachError(f'{time + duration:.2f} s: the piston leaves its stroke')
        return after

    def joint_sample(self, y: np.ndarray, command: Command) -> JointSample:
        """Return name, angle, rate and (not given here) torque of the joint."""
        return JointSample(('pivot',), (y[0],), (y[1],), (0.0,))

    def hydraulic_sample(self, y: np.ndarray, command: Command) -> HydraulicSample:
        """Return name, pressures and spool of the cylinder."""
        return HydraulicSample(('lift',), (y[2],), (y[3],), spool=(y[4],))


class PendulumSpec(MachineSpec[PendulumParameters, Lift, Parameters]):
    """A pendulum on a hydraulic cylinder."""

    name, summary, file = 'pendulum', 'a pendulum on a hydraulic cylinder', 'pendulum.yaml'
    parameters, scenarios, valves = PendulumParameters, Lift, 'valve_command'
    series = Columns(
        (
            Column('time', 's', 'of the sample'),
            Column('phi', 'rad', 'angle', Source('joint_states', 'position', 'pivot')),
            Column('p_head', 'Pa', 'head side', Source('hydraulics', 'head_pressure', 'lift')),
            Column('p_rod', 'Pa', 'rod side', Source('hydraulics', 'rod_pressure', 'lift')),
        )
    )
    results = {'highest': 'rad'}
    panels = (
        Panel('angle', (Curve('phi', 'pendulum'),), 'deg'),
        Panel('pressure', (Curve('p_head', 'head'), Curve('p_rod', 'rod')), 'bar'),
    )

    def machine(self, parameters: PendulumParameters, scenario: Lift, options: object) -> Pendulum:
        return Pendulum(parameters)

    def measure(self, run: Run[PendulumParameters]) -> list[float]:
        return [float(np.max(run.column('phi')))]

    def describe(self, parameters: PendulumParameters, prefix: str) -> str:
        robot, length = urdf.new_robot('pendulum', ('steel', 'dark')), parameters.length
        urdf.add_box(urdf.add_link(robot, 'ground'), 'dark', (0.4, 0.4, 0.4), (0.0, 0.0, -0.3))
        arm = urdf.add_link(robot, 'arm')
        urdf.add_box(arm, 'steel', (length, 0.1, 0.1), (length / 2.0, 0.0, 0.0))
        urdf.add_joint(robot, 'pivot', 'continuous', 'ground', 'arm', axis=urdf.LIFT)
        return urdf.document(robot, 'A positive angle lifts.', prefix)


PENDULUM = PendulumSpec()
