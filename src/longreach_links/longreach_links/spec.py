"""What flexible links declare; their command, figures and recordings follow from this."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np

from longreach_dynamics.parameters import Parameters, quantity
from longreach_links.description import ROOT_FRAME, robot_description
from longreach_machine import Curve, MachineSpec, Panel, SmoothModel
from longreach_symbolic.arm import arm_of
from longreach_symbolic.links import Links
from longreach_symbolic.machine import FlexibleLinks
from longreach_symbolic.scenario import Scenario, load_scenario, resting_scenario
from longreach_symbolic.simulation import LinksRun, columns_of, simulate


@dataclasses.dataclass(frozen=True)
class LinksOptions(Parameters):
    """Choices of a run."""

    arm: str = quantity(
        'arm file: motors, gains, cycle, damping; empty: designed for the links', '', default=''
    )


class LinksSpec(MachineSpec[Links, Scenario, LinksOptions]):
    """
    Simulate chains of flexible links under digital controllers, as machines made of equations.

    Equations are generated and compiled for the number of links and functions of the file at the
    first call, and kept.
    """

    name = 'links'
    summary = 'a chain of flexible links with motors (Yu and Chen 2019)'
    file, root_frame = 'two_links.yaml', ROOT_FRAME
    parameters, scenarios = Links, Scenario
    run, options = LinksRun, LinksOptions
    studies = 'longreach_links.commands'
    scenario = 'circle'
    figures = 'longreach_links.commands'
    panels = (
        Panel('motor angle', (Curve('motor_*', 'motor *'),), 'deg'),
        Panel('torque', (Curve('torque_*', 'motor *'),)),
        Panel('deflection coordinate', (Curve('f_*', 'f *'),), 'mm'),
    )
    results = {'tip_error': 'm', 'largest_torque': 'N m', 'largest_deflection': 'm'}
    measures, swept = ('motor_*', 'motor_rate_*'), 'links.1.lumped_mass'
    rest, columns = staticmethod(resting_scenario), staticmethod(columns_of)
    describe = staticmethod(robot_description)
    demo = ('real_time_factor:=0.0', 'duration:=22.0')
    demo_next = (
        'longreach launch links view:=true                in real time; Ctrl-C ends it',
        'longreach symbolic generate --file {file} --format latex --out my_links.tex',
    )

    def load_scenario(self, file: str | Path, parameters: Links, options: Any) -> Scenario:
        """Return the scenario of a file."""
        return load_scenario(file, parameters)

    def machine(self, parameters: Links, scenario: Scenario, options: Any) -> FlexibleLinks:
        """Return the links with their arm."""
        return FlexibleLinks(parameters, arm_of(parameters, options.arm), scenario)

    def simulate(self, parameters: Links, scenario: Scenario, options: LinksOptions) -> LinksRun:
        """Return the run of a scenario."""
        return simulate(self.machine(parameters, scenario, options))

    def smooth_at(
        self, machine: FlexibleLinks, state: Any, time: float, free: bool
    ) -> SmoothModel:
        """Return the equations at a time of a run; nothing sticks."""
        from longreach_links.linear import smooth_model

        # The torques of the cycle that begins.
        angles, rates = machine.controller.motors(state.x)
        torques = machine.controller.torques(angles, rates, round(time / machine.step))
        return smooth_model(machine, state._replace(torques=np.array(torques)))


LINKS = LinksSpec()
