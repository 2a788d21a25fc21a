"""What the pendulum declares: ``longreach pendulum run | sweep | compare | urdf | pause | ..``."""

from pathlib import Path

import numpy as np

from longreach_dynamics import urdf
from longreach_dynamics.parameters import Parameters
from longreach_dynamics.runs import Columns, Run
from longreach_machine import MachineSpec
from longreach_pendulum.machine import COLUMNS, Lift, Pendulum, PendulumParameters, simulate
from longreach_tools.output import figure


class PendulumSpec(MachineSpec[PendulumParameters, Lift, Parameters]):
    """A pendulum on a hydraulic cylinder."""

    name, summary = 'pendulum', 'a pendulum on a hydraulic cylinder'
    file, file_help, swept = 'pendulum.yaml', 'another pendulum', 'mass'
    parameters, scenarios = PendulumParameters, Lift
    results = {'highest': 'rad'}
    plots_recordings = True

    def default_file(self) -> Path:
        return Path(__file__).with_name(self.file)

    def load_scenario(self, *_: object) -> Lift:
        return Lift()

    def simulate(
        self, parameters: PendulumParameters, scenario: Lift, options: Parameters
    ) -> Run[PendulumParameters]:
        return simulate(Pendulum(parameters), scenario.duration)

    def columns(self, parameters: PendulumParameters) -> Columns:
        return COLUMNS

    def measure(self, run: Run[PendulumParameters]) -> list[float]:
        return [float(np.max(run.column('phi')))]

    def draw(self, file: Path, run: Run[PendulumParameters]) -> None:
        with figure(file, size=(7.0, 6.0), rows=3) as axes:
            for axis, name, unit in zip(
                axes, COLUMNS.names[1:], ('deg', 'bar', 'bar'), strict=True
            ):
                axis.plot(run.column('time'), run.column(name, unit))
                axis.set(xlabel='time [s]', ylabel=f'{name} [{unit}]')

    def describe(self, parameters: PendulumParameters, prefix: str) -> str:
        robot, length = urdf.new_robot('pendulum', ('steel', 'dark')), parameters.length
        urdf.add_box(urdf.add_link(robot, 'ground'), 'dark', (0.4, 0.4, 0.4), (0.0, 0.0, -0.3))
        arm = urdf.add_link(robot, 'arm')
        urdf.add_box(arm, 'steel', (length, 0.1, 0.1), (length / 2.0, 0.0, 0.0))
        urdf.add_joint(robot, 'pivot', 'continuous', 'ground', 'arm', axis=urdf.LIFT)
        return urdf.document(robot, 'A positive angle lifts.', prefix)


PENDULUM = PendulumSpec()
