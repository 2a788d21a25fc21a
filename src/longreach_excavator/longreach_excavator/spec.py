"""What the excavator declares; its command, figures and recordings follow from this."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from longreach_dynamics.errors import InputError, LongreachError
from longreach_dynamics.parameters import Parameters, quantity
from longreach_excavator.columns import COLUMNS, REACTIONS
from longreach_excavator.description import ROOT_FRAME, robot_description
from longreach_excavator.linkage import CYLINDERS
from longreach_excavator.machine import SAMPLE_TIME, STEP, Excavator, ExcavatorCommand
from longreach_excavator.parameters import ExcavatorParameters
from longreach_excavator.scenario import Scenario, dig_scenario, load_scenario, resting_scenario
from longreach_excavator.simulation import ExcavatorRun, simulate
from longreach_excavator.visuals import FORCE_SCALE
from longreach_machine import Curve, MachineSpec, Panel, Signal, SmoothModel
from longreach_machine.machine import BY_SCENARIO
from longreach_machine.runs import Run

# Largest relative error of the energy balance of a valid run; 1e-10 to 1e-6 is usual.
_WORST_ENERGY = 1e-2
# A sweep takes seconds with hydraulics, and 0.125 s with prescribed forces [s].
_LONGEST_SAMPLE = {'hydraulic': 0.1, 'printed': 0.01, 'thesis': 0.01}
_PINS = dict(zip(REACTIONS, ('boom and chassis', 'arm and boom', 'bucket and arm'), strict=True))


@dataclasses.dataclass(frozen=True)
class ExcavatorOptions(Parameters):
    """Choices of a run."""

    step: float = quantity('integration step', 's', above=0.0, default=STEP)
    sample_time: float = quantity(
        'interval of rows, of which extremes and warnings are', 's', above=0.0, default=SAMPLE_TIME
    )
    tolerance: float = quantity(
        'tolerance of the local error with steps of order 8; 0: steps of order 4',
        at_least=0.0,
        default=0.0,
    )


class ExcavatorSpec(MachineSpec[ExcavatorParameters, Scenario, ExcavatorOptions]):
    """
    Simulate a digging excavator, Ozunlu (2009), corrected.

    Digging with printed forces or with hydraulics, scenarios, poses, loads of a prescribed motion,
    cohesion from measurements, and the comparison of recordings with the library.
    """

    name = 'excavator'
    summary = 'an excavator that digs (Ozunlu 2009)'
    file, root_frame = 'excavator.yaml', ROOT_FRAME
    parameters, scenarios, options = ExcavatorParameters, Scenario, ExcavatorOptions
    series = COLUMNS
    studies = 'longreach_excavator.commands'
    scenario = 'dig_17kpa'
    legend = ((f'arrows are forces, {1e-3 / FORCE_SCALE:g} kN for 1 m, a square of the ground',),)
    figures = 'longreach_excavator.figures'
    panels = (
        Panel('cylinders, soil', (Curve('force_*'), Curve('soil_force', 'soil')), 'kN'),
        Panel('in the joint', [Curve(f'load_{p}', n) for p, n in _PINS.items()], 'kN'),
        Panel(
            'acceleration', [Curve(f'alpha_{k}', n) for k, n in enumerate(CYLINDERS, 2)], 'deg/s^2'
        ),
        Panel('rate', [Curve(f'omega_{k}', n) for k, n in enumerate(CYLINDERS, 2)], 'deg/s'),
        Panel('angle', [Curve(f'theta_{k}', n) for k, n in enumerate(CYLINDERS, 2)], 'deg'),
        Panel('soil in the\nbucket', (Curve('bucket_mass', 'mass'),), optional=True),
    )
    results = {
        'sweep_deg': 'deg',
        'time_to_sweep_s': 's',
        'bucket_joint_moved_m': 'm',
        'peak_soil_force_n': 'N',
        'highest_pressure_pa': 'Pa',
    }
    commands, measures = ExcavatorCommand, ('theta_*', 'omega_*', 'p_head_*', 'p_rod_*')
    swept = 'scenario.cohesion'
    demo = ('operator:=false', 'real_time_factor:=0.0', 'duration:=7.0')
    demo_next = (
        'longreach excavator dig --cohesion 20000 --plot out/stall.png',
        'longreach excavator dig --mode printed --plot out/printed.png',
        'longreach excavator pose --pose 20,-95,39.45 --degrees',
        'longreach launch excavator scenario:=none        in real time, to be driven',
    )
    optional_topics = ('terrain',)
    valves, by_hand = 'cylinder_command', 'operator:=false'
    rest, describe = staticmethod(resting_scenario), staticmethod(robot_description)

    def load_scenario(
        self, file: str | Path, parameters: ExcavatorParameters, options: Parameters
    ) -> Scenario:
        """Return the scenario of a file."""
        return load_scenario(file, parameters, getattr(options, 'step', STEP))

    def with_scenario(
        self, parameters: ExcavatorParameters, scenario: Scenario
    ) -> ExcavatorParameters:
        """Return the excavator with the cohesion of a scenario."""
        return scenario.excavator(parameters)

    def check(self, scenario: Scenario, options: ExcavatorOptions) -> None:
        """Raise InputError for an interval of rows too long to detect the end of the sweep."""
        longest = _LONGEST_SAMPLE[scenario.mode]
        if scenario.sweep_deg and options.sample_time > longest:
            raise InputError(
                f'--sample-time = {options.sample_time:g} s, allowed with mode: {scenario.mode}'
                f' and a sweep: up to {longest:g} s, as the end of the sweep is looked for in'
                ' the rows'
            )

    def machine(
        self, parameters: ExcavatorParameters, scenario: Scenario, options: Any
    ) -> Excavator:
        """Return the excavator of a scenario; only runs choose a tolerance."""
        return Excavator(parameters, scenario, options.step, getattr(options, 'tolerance', 0.0))

    def simulate(
        self, parameters: ExcavatorParameters, scenario: Scenario, options: ExcavatorOptions
    ) -> ExcavatorRun:
        """Return the run of a scenario; LongreachError for too large an error of its energy."""
        run = simulate(parameters, scenario, options.step, options.sample_time, options.tolerance)
        # In this form NaN fails as well.
        if not run.message and not (error := run.energy_error()) <= _WORST_ENERGY:
            raise LongreachError(
                f'the energy balance of the run is wrong by a share of {error:.2g}, allowed: up to'
                f' {_WORST_ENERGY:g}; take a shorter --step or a --tolerance of 1e-9, or look for'
                ' forces and parameters of impossible size'
            )
        return run

    def warm_up(self) -> None:
        """Compile the kernels, those of steps of order 8 as well."""
        super().warm_up()
        simulate(self.load(None, None), dig_scenario(duration=0.01), tolerance=1e-6)

    def smooth_at(self, machine: Excavator, state: Any, time: float, free: bool) -> SmoothModel:
        """Return the equations at a time of a run."""
        from longreach_excavator.linear import smooth_model

        # Whether the sweep ends here, and valves close, is seen in the step that follows.
        later = machine.advance(state, BY_SCENARIO, time, machine.step)
        return smooth_model(machine, state._replace(swept=later.swept), time, free)

    def cosimulation(
        self, parameters: ExcavatorParameters, scenario: Scenario, options: ExcavatorOptions
    ) -> tuple[Any, Sequence[Signal], Callable[[Sequence[float]], Any]]:
        """Return what an FMU needs; InputError for prescribed forces."""
        if scenario.is_driven:
            raise InputError(
                f'mode = {scenario.mode}, allowed: hydraulic, as the inputs of an FMU are spools'
            )
        return super().cosimulation(parameters, scenario, options)

    def measure(self, run: Run[Any]) -> tuple[float, ...]:
        """Return the results of a run; NaN for a sweep that does not end."""
        assert isinstance(run, ExcavatorRun)
        summary = run.summary() | run.swing()
        pressures = [p for p in summary['peak_pressures_pa'].values() if p is not None]
        return (
            summary['sweep_deg'],
            math.nan if summary['time_to_sweep_s'] is None else summary['time_to_sweep_s'],
            summary['bucket_joint_moved_m'],
            summary['peak_soil_force_n'],
            max(pressures, default=math.nan),
        )


EXCAVATOR = ExcavatorSpec()
