"""What the pendulum declares: ``longreach pendulum run | sweep | compare | urdf | pause | ..``."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from longreach_dynamics.parameters import Parameters
from longreach_machine import Curve, MachineSpec, Panel, urdf
from longreach_machine.runs import Columns, Run
from longreach_pendulum.machine import COLUMNS, Lift, Pendulum, PendulumParameters, simulate


class PendulumSpec(MachineSpec[PendulumParameters, Lift, Parameters]):
    """A pendulum on a hydraulic cylinder."""

    name, summary = 'pendulum', 'a pendulum on a hydraulic cylinder'
    file = 'pendulum.yaml'
    parameters, scenarios = PendulumParameters, Lift
    results = {'highest': 'rad'}
    panels = (
        Panel('angle', (Curve('phi', 'pendulum'),), 'deg'),
        Panel('pressure', (Curve('p_head', 'head'), Curve('p_rod', 'rod')), 'bar'),
    )

    def default_file(self) -> Path:
        return Path(__file__).with_name(self.file)

    def load_scenario(self, *_: object) -> Lift:
        return Lift()

    def machine(self, parameters: PendulumParameters, scenario: Lift, options: object) -> Pendulum:
        return Pendulum(parameters)

    def command(self, spools: Sequence[float]) -> float:
        return spools[0]

    def simulate(
        self, parameters: PendulumParameters, scenario: Lift, options: Parameters
    ) -> Run[PendulumParameters]:
        return simulate(Pendulum(parameters), scenario.duration)

    def columns(self, parameters: PendulumParameters) -> Columns:
        return COLUMNS

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
