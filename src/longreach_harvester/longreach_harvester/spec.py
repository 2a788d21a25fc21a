"""What the harvester declares; its command, figures and recordings follow from this."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np

from longreach_dynamics.errors import InputError
from longreach_dynamics.parameters import Parameters, choice, quantity
from longreach_harvester.control import load_controller
from longreach_harvester.description import ROOT_FRAME, robot_description
from longreach_harvester.machine import MODELS, SAMPLE_TIME, STEP, Harvester
from longreach_harvester.model import LOG
from longreach_harvester.parameters import JOINTS, HarvesterParameters
from longreach_harvester.scenario import Scenario, resting_scenario
from longreach_harvester.sensors import load_sensors
from longreach_harvester.simulation import (
    HarvesterRun,
    columns_of,
    simulate,
    warm_up,
    with_step_error,
)
from longreach_harvester.visuals import FORCE_SCALE
from longreach_machine import Curve, MachineSpec, Panel, SmoothModel
from longreach_machine.machine import BY_SCENARIO
from longreach_machine.runs import Run


@dataclasses.dataclass(frozen=True)
class PlantOptions(Parameters):
    """Choices of the simulated machine."""

    model: str = choice(
        'full: with lines, 18 states; reduced: resistances, 6 states', MODELS, default='full'
    )
    switching: bool = quantity(
        'whether closed valves lock; otherwise their greatest resistance leaks', default=True
    )
    as_printed: bool = quantity(
        'with +P_S2 in the return lines, as (A6a) is printed', default=False
    )
    sensors: str = quantity(
        'sensor file, or typical: what the controllers get for angles; empty: the truth',
        '',
        default='',
    )


@dataclasses.dataclass(frozen=True)
class HarvesterOptions(PlantOptions):
    """Choices of a run."""

    step: float = quantity('integration step', 's', above=0.0, default=STEP)
    sample_time: float = quantity(
        'interval of rows, of which times and paths are', 's', above=0.0, default=SAMPLE_TIME
    )
    step_error: bool = quantity(
        'estimate the error of the angles by runs with a half and a quarter of the step',
        default=False,
    )


class HarvesterSpec(MachineSpec[HarvesterParameters, Scenario, HarvesterOptions]):
    """
    Simulate a forestry machine, Papadopoulos and Gonthier (2002), corrected.

    Hydraulics with hoses in full, or reduced to resistances; closed valves that lock or leak.
    """

    name = 'harvester'
    summary = 'a forestry machine with hoses (Papadopoulos and Gonthier 2002)'
    file, root_frame = 'harvester.yaml', ROOT_FRAME
    parameters, scenarios = HarvesterParameters, Scenario
    run, options = HarvesterRun, HarvesterOptions
    studies = 'longreach_harvester.commands'
    of_recording = ('sample_time', 'step_error')
    scenario = 'open_loop'
    legend = ((f'arrows are forces, {1e-3 / FORCE_SCALE:g} kN for 1 m, a square of the ground',),)
    panels = (
        Panel('angle', (Curve('q_*'),), 'deg'),
        Panel('spool', (Curve('spool_*'),)),
        Panel('pressure', (Curve('p_1_*', '* 1'), Curve('p_2_*', '* 2')), 'bar'),
        Panel('flow', (Curve('q_1_*', '* 1'), Curve('q_2_*', '* 2')), 'l/min'),
    )
    results = {f'q_{name}': 'rad' for name in JOINTS} | {
        f'highest_p_1_{name}': 'Pa' for name in JOINTS
    }
    measures, swept = ('q_*',), 'head.mass'
    demo = ('real_time_factor:=0.0', 'duration:=12.0')
    demo_next = (
        'longreach harvester compare-models --plot out/models.png',
        'longreach harvester run tip --plot out/tip.png',
        'longreach launch harvester scenario:=none        in real time; Ctrl-C ends it',
        'longreach harvester drive                        meanwhile, in another terminal',
    )
    services = {'release-load': 'let a running harvester drop its log'}
    loads, moves, valves = 'a log', 'joints', 'valve_command'
    by_hand = 'controller:=false operator:=false'
    columns, describe = staticmethod(columns_of), staticmethod(robot_description)

    def rest(self, parameters: HarvesterParameters) -> Scenario:
        """Return a scenario of the installed pose."""
        return resting_scenario()

    def machine(
        self, parameters: HarvesterParameters, scenario: Scenario, options: Any
    ) -> Harvester:
        """Return the simulated machine of a scenario."""
        # Only nodes choose a controller.
        controller = getattr(options, 'controller', '')
        return Harvester(
            parameters,
            scenario,
            options.step,
            options.model,
            options.switching,
            options.as_printed,
            load_controller(controller) if controller else None,
            load_sensors(options.sensors) if options.sensors else None,
        )

    def check(self, scenario: Scenario, options: HarvesterOptions) -> None:
        """Raise InputError for sensors that nothing reads."""
        if options.sensors and not scenario.is_controlled:
            raise InputError(
                f'--sensors {options.sensors}, allowed with sines or a path of the tip, whose'
                ' controllers read them'
            )

    def simulate(
        self, parameters: HarvesterParameters, scenario: Scenario, options: HarvesterOptions
    ) -> HarvesterRun:
        """Return the run of a scenario."""
        machine = self.machine(parameters, scenario, options)
        # Code that is loaded is not to be counted as time of a run.
        warm_up()
        run = simulate(machine, options.sample_time)
        return with_step_error(machine, run, options.sample_time) if options.step_error else run

    def smooth_at(self, machine: Harvester, state: Any, time: float, free: bool) -> SmoothModel:
        """Return the equations of the full model at a time of a run, right after its events."""
        from longreach_harvester.linear import smooth_model

        # Valves, commands and log are those of a moment later.
        brief = machine.step / math.ceil(machine.step / 2e-6)
        later = dataclasses.replace(machine, step=brief).advance(state, BY_SCENARIO, time, brief)
        y = np.append(state.y[:LOG], later.y[LOG])
        return smooth_model(machine, later._replace(y=y, spools=state.spools), free)

    def measure(self, run: Run[Any]) -> tuple[float, ...]:
        """Return angles at the end and highest pressures."""
        final = run.stack([f'q_{name}' for name in JOINTS])[-1]
        pressures = run.stack([f'p_1_{name}' for name in JOINTS]).max(axis=0)
        return (*final.tolist(), *pressures.tolist())


HARVESTER = HarvesterSpec()
