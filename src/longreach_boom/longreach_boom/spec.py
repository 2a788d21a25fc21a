"""What the boom declares; its command, figures and recordings follow from this."""

from __future__ import annotations

import dataclasses
import math
import multiprocessing
from pathlib import Path
from typing import Any

from longreach_boom.description import ROOT_FRAME, robot_description
from longreach_boom.machine import SAMPLE_TIME, STEP, Boom, longest_step
from longreach_boom.parameters import BoomParameters
from longreach_boom.scenario import Scenario, load_scenario
from longreach_boom.simulation import BoomRun, columns_of, following, simulate
from longreach_boom.visuals import SCALE_COLOURS, YIELD_STRENGTH
from longreach_dynamics.parameters import Parameters, quantity
from longreach_machine import Curve, MachineSpec, Panel, SmoothModel
from longreach_machine.machine import BY_SCENARIO, check_instant
from longreach_machine.runs import Run
from longreach_machine.scenarios import first_pose, spools_at


@dataclasses.dataclass(frozen=True)
class BoomOptions(Parameters):
    """Choices of a run."""

    step: float = quantity(
        'integration step; 0: the longest that is stable and divides the sample time',
        's',
        at_least=0.0,
        default=STEP,
    )
    sample_time: float = quantity(
        'interval of rows, of which extremes are, and cycle of the controller',
        's',
        above=0.0,
        default=SAMPLE_TIME,
    )


class BoomSpec(MachineSpec[BoomParameters, Scenario, BoomOptions]):
    """
    The flexible boom of a concrete pump, Henikl et al. (2015).

    Natural modes and finite elements, static equilibrium, the sudden release of a load, scenarios,
    sweeps over a parameter, and the comparison of recordings with the library.
    """

    name = 'boom'
    summary = 'a flexible concrete-pump boom with hydraulics (Henikl 2015)'
    file, root_frame = 'boom.yaml', ROOT_FRAME
    parameters, scenarios, options = BoomParameters, Scenario, BoomOptions
    studies = 'longreach_boom.commands'
    scenario = 'load_release'
    legend = (('stress 0', *SCALE_COLOURS, f'{YIELD_STRENGTH / 1e6:g} MPa and above'),)
    panels = (
        Panel('cylinder force', (Curve('force_i'),), 'kN'),
        Panel('strain', (Curve('strain_i'),), '1e-6'),
        Panel('piston', (Curve('piston_i'),), 'mm', relative=True),
        Panel('beam tip x', (Curve('tip_x_i'),), relative=True),
        Panel('beam tip z', (Curve('tip_z_i'),), relative=True),
        Panel('slewing gear', (Curve('gear_z', 'z', optional=True),), 'mm', relative=True),
        Panel(
            'joint angle',
            (Curve('phi_i'), Curve('wanted_i', 'wanted *', wanted=True, optional=True)),
            'deg',
            relative=True,
        ),
        Panel('pressure', (Curve('p_head_i', 'head *'), Curve('p_rod_i', 'rod *')), 'bar'),
    )
    results = {
        'tip_highest': 'm',
        'tip_lowest': 'm',
        'longest_piston_travel': 'm',
        'highest_pressure': 'Pa',
        'largest_joint_error': 'rad',
    }
    measures = ('phi_i', 'piston_i', 'p_head_i', 'p_rod_i')
    swept = 'oil.bulk_modulus'
    demo = ('controller:=false', 'real_time_factor:=0.0', 'duration:=20.0')
    demo_next = (
        'longreach boom modes --pose site --plot out/modes.png',
        'longreach boom statics --sweep -5:85:19 --degrees --load 90',
        'longreach boom run config/scenarios/boom_wave.yaml --plot out/wave.png',
        'longreach launch boom scenario:=wave             in real time; Ctrl-C ends it',
    )
    services = {'release-load': 'release all loads of a running boom'}
    loads, load_places = 'a load', True
    moves, valves = 'beams', 'valve_command'
    columns, describe = staticmethod(columns_of), staticmethod(robot_description)

    def load_scenario(
        self, file: str | Path, parameters: BoomParameters, options: Any
    ) -> Scenario:
        """Return the scenario of a file."""
        return load_scenario(file, parameters, getattr(options, 'step', 0.0) or None)

    def rest(self, parameters: BoomParameters) -> Scenario:
        """Return the scenario of a boom that stands in its first pose, valves closed."""
        return Scenario(duration=1.0, pose=first_pose(parameters, 'boom'))

    def machine(self, parameters: BoomParameters, scenario: Scenario, options: Any) -> Boom:
        """Return the boom with a step that suits it."""
        step = options.step or longest_step(parameters, scenario, options.sample_time)
        return Boom(parameters, scenario, step)

    def simulate(
        self, parameters: BoomParameters, scenario: Scenario, options: BoomOptions
    ) -> BoomRun:
        """Return the run of a scenario."""
        # Processes of a sweep share a terminal.
        progress = multiprocessing.parent_process() is None
        return simulate(parameters, scenario, options.step, options.sample_time, progress)

    def smooth(
        self,
        parameters: BoomParameters,
        scenario: Scenario,
        options: BoomOptions,
        time: float,
        free: bool,
    ) -> SmoothModel:
        """Return the equations at a time of a run."""
        from longreach_boom.linear import smooth_model

        check_instant(time, scenario.duration, options.sample_time)
        machine, T = self.machine(parameters, scenario, options), options.sample_time
        state, (_, command) = machine.initial_state(), following(machine, T)
        if command is None:
            state = machine.advance(state, BY_SCENARIO, 0.0, time)
            spools = spools_at(scenario.valve_commands, time, parameters.size)
        else:
            for k in range(round(time / T)):
                state = machine.advance(state, command(k, state), k * T, T)
            spools = command(round(time / T), state)
        loads = [loads for begin, loads in scenario.carried(parameters) if begin <= time][-1]
        state = state._replace(loads=loads)
        if scenario.disturbances:
            state = state._replace(forces=machine.forces_at(round(time / machine.step), state.y))
        return smooth_model(parameters, state, scenario.friction, free, spools)

    def measure(self, run: Run[Any]) -> tuple[float, ...]:
        """Return the results of a run; without a controller the joint error is NaN."""
        summary = run.summary()
        return (
            summary['tip_highest'],
            summary['tip_lowest'],
            max(summary['piston_travel']),
            summary['highest_pressure'],
            max(summary['joint_error'], default=math.nan),
        )


BOOM = BoomSpec()
