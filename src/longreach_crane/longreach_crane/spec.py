"""What the crane declares; its command, figures and recordings follow from this."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path
from typing import Any

import numpy as np

from longreach_crane.description import ROOT_FRAME, robot_description
from longreach_crane.machine import BRAKES, MODELS, Command, Crane
from longreach_crane.model import HELD, stop_car
from longreach_crane.parameters import MATRICES, OUTPUTS, Machinery
from longreach_crane.scenario import Scenario, load_scenario
from longreach_crane.simulation import CraneRun, columns_of, simulate, smooth_model
from longreach_dynamics.parameters import Parameters, choice
from longreach_machine import Curve, Lane, MachineSpec, Panel, SmoothModel
from longreach_machine.machine import check_instant
from longreach_machine.runs import Columns, Run

_AS_IN_FILE = 'as_in_file'


@dataclasses.dataclass(frozen=True)
class PlantOptions(Parameters):
    """Choices of the simulated crane."""

    model: str = choice('equations of motion', MODELS, default='nonlinear')
    brake: str = choice('model of the closed brake', BRAKES, default='viscous')


@dataclasses.dataclass(frozen=True)
class ControlOptions(Parameters):
    """Choices of its controller."""

    matrices: str = choice(
        "matrices of observer and regulator; as_in_file: the crane file's",
        (_AS_IN_FILE, *MATRICES),
        default=_AS_IN_FILE,
    )
    output: str = choice(
        "cycle from which a computed force acts; as_in_file: the crane file's",
        (_AS_IN_FILE, *OUTPUTS),
        default=_AS_IN_FILE,
    )


@dataclasses.dataclass(frozen=True)
class CraneOptions(PlantOptions, ControlOptions):
    """Choices of a run."""


class CraneSpec(MachineSpec[Machinery, Scenario, CraneOptions]):
    """
    The crane of ARGESIM benchmark C13R.

    Simulations with its digital controller, design of controllers, comparison of recordings with
    the library, and commands to a crane that runs as nodes.
    """

    name = 'crane'
    summary = 'a crane with digital control and diagnosis (ARGESIM C13R)'
    file, root_frame = 'crane.yaml', ROOT_FRAME
    parameters, scenarios, options = Machinery, Scenario, CraneOptions
    studies = 'longreach_crane.commands'
    scenario_prefix, scenario = 'task_', 'task_c'
    rows = 'control cycle'
    panels = (
        Panel(
            'position',
            (
                Curve('car_position', 'car'),
                Curve('load_position', 'load'),
                Curve('set_point', 'set point', wanted=True),
            ),
            limits=('minimum_position', 'maximum_position'),
        ),
        Panel('angle', (Curve('angle', 'cable'),), 'deg'),
        Panel('force', (Curve('command', 'desired'), Curve('motor_force', 'motor'))),
    )
    lanes = (Lane('emergency', 'emergency', alarm=True), Lane('brake', 'brake'))
    results = {
        'max_abs_angle': 'rad',
        'max_car_position': 'm',
        'min_car_position': 'm',
        'final_car_position': 'm',
        'final_load_position': 'm',
        'first_emergency': 's',
    }
    swept = 'crane.load_mass'
    demo = ('lockstep:=true', 'real_time_factor:=0.0', 'duration:=60.0')
    demo_next = (
        'longreach bag info {bag}',
        'longreach crane c13r --task c --brake rigid --plot out/rigid.png',
        'longreach launch crane scenario:=task_b          in real time; Ctrl-C ends it',
        'longreach crane set-point 2.5                    in a second shell meanwhile',
    )

    def load(self, file: str | Path | None, options: Any) -> Machinery:
        """Return the crane of a file, with the options of its controller."""
        machinery = super().load(file, options)
        if not isinstance(options, ControlOptions):
            return machinery
        given = {'matrices': options.matrices, 'output': options.output}
        changes = {name: value for name, value in given.items() if value != _AS_IN_FILE}
        return machinery.replace(controller=machinery.controller.replace(**changes))

    def load_scenario(self, file: str | Path, parameters: Machinery, options: Any) -> Scenario:
        """Return the scenario of a file."""
        return load_scenario(file, parameters.controller.sample_time)

    def rest(self, parameters: Machinery) -> Scenario:
        """Return a scenario without set points."""
        return Scenario(duration=1.0)

    def machine(self, parameters: Machinery, scenario: Scenario, options: Any) -> Crane:
        """Return the crane of a scenario."""
        return Crane(parameters.crane, scenario, options.model, options.brake)

    def simulate(
        self, parameters: Machinery, scenario: Scenario, options: CraneOptions
    ) -> CraneRun:
        """Return the run of a scenario."""
        return simulate(parameters, scenario, options.model, options.brake)

    def smooth(
        self,
        parameters: Machinery,
        scenario: Scenario,
        options: CraneOptions,
        time: float,
        free: bool,
    ) -> SmoothModel:
        """Return the equations in the control cycle from a time on, with ``free`` brake open."""
        T = parameters.controller.sample_time
        check_instant(time, scenario.duration, T)
        run = self.simulate(parameters, scenario.replace(duration=max(time, T)), options)
        run.check()
        row, crane = round(time / T), self.machine(parameters, scenario, options)
        x, brake = run.table[row, 1:6], bool(run.column('brake')[row]) and not free
        inputs = crane.inputs(Command(run.column('command')[row], brake), time, T)
        p = crane.constants
        return smooth_model(stop_car(x, p) if inputs.car == HELD else x, inputs, p)

    def columns(self, parameters: Machinery) -> Columns:
        """Return the columns of a run."""
        return columns_of(parameters.crane)

    def run_columns(self, parameters: Machinery, options: CraneOptions) -> Columns:
        """Return the columns of a run with a model."""
        return columns_of(parameters.crane, options.model)

    def recorded_run(self, parameters: Machinery, columns: Columns, table: np.ndarray) -> CraneRun:
        """Return a recorded run."""
        return CraneRun(parameters.crane, columns, table)

    def describe(self, parameters: Machinery, prefix: str) -> str:
        """Return the URDF."""
        return robot_description(parameters.crane, prefix)

    def measure(self, run: Run[Any]) -> tuple[float, ...]:
        """Return the results of a run; without an emergency its time is NaN."""
        summary = run.summary()
        extrema, final = summary['extrema'], summary['final']
        emergencies = [e['time'] for e in summary['events'] if e['name'] == 'emergency']
        return (
            *(extrema[name] for name in list(self.results)[:3]),
            final['car_position'],
            final['load_position'],
            min(emergencies, default=math.nan),
        )


CRANE = CraneSpec()
