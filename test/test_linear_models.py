"""Linear models of all machines: against runs, sine sweeps, closed forms; files and reduction."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.io import loadmat
from scipy.linalg import expm

from longreach_boom.disturbances import TipForce
from longreach_boom.linear import smooth_model
from longreach_boom.machine import Boom
from longreach_boom.modes import held_modes, natural_modes
from longreach_boom.parameters import load_boom
from longreach_boom.scenario import Scenario
from longreach_boom.simulation import simulate
from longreach_crane.machine import Command, Crane
from longreach_crane.model import FREE, Constants, Inputs, linear_model
from longreach_crane.parameters import load_machinery
from longreach_crane.simulation import smooth_model as smooth_crane
from longreach_dynamics.errors import InputError
from longreach_excavator.linear import smooth_model as smooth_excavator
from longreach_harvester.linear import smooth_model as smooth_harvester
from longreach_harvester.scenario import LogEvent, SpoolKnots
from longreach_harvester.spec import HARVESTER
from longreach_links.linear import smooth_model as smooth_links
from longreach_machine import LinearModel, Signal, SmoothModel, linearize
from longreach_symbolic.arm import arm_of
from longreach_symbolic.links import load_links
from longreach_symbolic.machine import FlexibleLinks
from longreach_symbolic.scenario import Scenario as HangingLinks
from longreach_symbolic.scenario import Waypoint, resting_scenario
from longreach_tools import cli

# Machine, scenario, time [s], and an interval over which the command is constant [s].
RUNS = [
    ('crane', 'task_b', 3.0, 0.01),
    ('crane', 'task_b', 42.0, 0.01),  # a disturbance begins
    ('boom', 'load_release', 1.0, 0.005),
    ('excavator', 'dig_17kpa', 1.0, 0.005),
    ('harvester', 'open_loop', 6.7, 0.005),
    ('links', 'swing', 0.0, 0.005),  # straight: controllers begin to bend them
    ('links', 'circle', 0.5, 0.005),
]


def loaded(machine: str, scenario: str, **options: Any) -> tuple[Any, ...]:
    """Return a machine's declaration, its parameters, a scenario and its options."""
    spec: Any = getattr(import_module(f'longreach_{machine}.spec'), machine.upper())
    chosen = spec.options(**options)
    parameters = spec.load(None, chosen)
    path = spec.find_scenario(scenario)
    return spec, parameters, spec.load_scenario(path, parameters, chosen), chosen


def smooth(machine: str, scenario: str, time: float, free: bool = False) -> SmoothModel:
    """Return the equations of a machine at a time of a scenario."""
    # Of a method of order 2, with steps that do not matter here.
    options = {'step': 2.5e-4} if machine == 'harvester' else {}
    spec, *given = loaded(machine, scenario, **options)
    model: SmoothModel = spec.smooth(*given, time, free)
    return model


@pytest.mark.parametrize('machine', ['boom', 'crane', 'excavator', 'harvester', 'links'])
def test_a_time_that_is_none_of_the_run_is_refused(machine: str) -> None:
    """Between two steps, before 0 and beyond the end."""
    scenario = {'boom': 'wave', 'crane': 'task_b', 'excavator': 'settle', 'links': 'circle'}
    outside = r'\[0, \d+\.\d\] s; the duration of the scenario'
    for time, allowed in ((0.12345, 'whole steps of 0.0'), (-1.0, outside), (61.0, outside)):
        with pytest.raises(InputError, match=f'^time = {time:g} s, allowed: {allowed}'):
            smooth(machine, scenario.get(machine, 'sine'), time)


def moved(model: SmoothModel, duration: float, change: np.ndarray | float = 0.0) -> np.ndarray:
    """Return the state after a time under constant inputs, by SciPy."""
    start = model.x + change
    found = solve_ivp(
        lambda _, x: model.rates(x, model.u),
        (0.0, duration),
        start,
        method='Radau',
        rtol=1e-9,
        atol=1e-11 * np.maximum(np.abs(model.x), 1e-3),
    )
    return np.asarray(found.y[:, -1])


@pytest.mark.parametrize(('machine', 'scenario', 'time', 'interval'), RUNS)
def test_the_equations_are_those_of_the_run(
    machine: str, scenario: str, time: float, interval: float
) -> None:
    check_motion(*(smooth(machine, scenario, t) for t in (time, time + interval)), interval)


def check_motion(now: SmoothModel, later: SmoothModel, interval: float) -> None:
    # What the equations hold, such as the residual flow of a closed valve, is left out.
    free = now.rates(now.x, now.u) != 0.0
    assert free.sum() > 4
    change, found = (later.x - now.x)[free], (moved(now, interval) - now.x)[free]
    # Each state by its own size; what hardly moves by the size of what it could.
    scale = np.maximum(np.abs(change), 1e-6 * np.maximum(np.abs(now.x[free]), 1e-3))
    assert np.abs((found - change) / scale).max() < 0.02


@pytest.mark.parametrize('time', [0.0, 1.0])
def test_a_harvester_moves_by_the_events_of_its_time(time: float) -> None:
    """Valves that open and close, and a log, at that time, are in the equations."""
    options = HARVESTER.options(step=2.5e-4)
    harvester = HARVESTER.load(None, options)
    spools = SpoolKnots(
        swing=((0.0, 0.0), (1.0, 0.0), (1.0, 0.3)),
        boom=((0.0, 0.3), (1.0, 0.3), (1.0, 0.0)),
        stick=((0.0, -0.2),),
    )
    scenario = HARVESTER.rest(harvester).replace(
        duration=2.0, spools=spools, attach=(LogEvent(time=time, mass=500.0),)
    )
    now, later = (
        HARVESTER.smooth(harvester, scenario, options, t, False) for t in (time, time + 0.005)
    )
    assert now.u[:3].tolist() == ([0.3, 0.0, -0.2] if time else [0.0, 0.3, -0.2])
    names = [one.name for one in now.outputs]
    assert now.observe(now.x, now.u)[names.index('log')] == 500.0
    check_motion(now, later, 0.005)


def test_an_excavator_closes_its_valves_where_the_sweep_ends() -> None:
    spec, parameters, scenario, options = loaded('excavator', 'dig_17kpa')
    brief = scenario.replace(sweep_deg=1.0, duration=1.0)
    run = spec.simulate(parameters, brief, options)
    # It is looked for in each cycle of 10 ms, every second row.
    end = 2 * int((run.column('swept')[::2] >= np.radians(1.0)).argmax())
    times = run.column('time')[[end - 2, end]].tolist()
    spools = [spec.smooth(parameters, brief, options, t, False).u[2] for t in times]
    assert spools == [1.0, 0.0]


def test_the_crane_begins_with_the_first_command() -> None:
    """At time 0 its controller sees a set point 3 m away: the motor's lag in the cycle after."""
    now, later = (smooth('crane', 'task_b', t) for t in (0.0, 0.01))
    rate = load_machinery().crane.motor_rate
    assert now.u[0] == pytest.approx(later.x[0] / -math.expm1(-0.01 * rate))
    assert now.rates(now.x, now.u) == pytest.approx([rate * now.u[0], 0.0, 0.0, 0.0, 0.0])


def test_a_crane_whose_rigid_brake_closes_has_stopped() -> None:
    """In the cycle in which it closes the car rests, and the cable has what the stop gives it."""
    spec, *given = loaded('crane', 'task_b', brake='rigid')
    run = spec.simulate(*given)
    first = int(np.flatnonzero(run.column('brake'))[0])
    assert run.column('car_velocity')[first] != 0.0
    now = spec.smooth(*given, first * 0.01, False)
    after = run.table[first + 1, 1:6]
    assert moved(now, 0.01)[1:] == pytest.approx(after[1:], rel=1e-6, abs=1e-9)


@pytest.mark.parametrize(('machine', 'scenario', 'time', 'interval'), RUNS)
def test_a_small_change_grows_as_the_model_says(
    machine: str, scenario: str, time: float, interval: float
) -> None:
    """The motion of a state beside that of the point follows expm(A t)."""
    model = smooth(machine, scenario, time)
    found = linearize(model, outputs=[])
    random = np.random.default_rng(1)
    change = 1e-5 * np.maximum(np.abs(model.x), 1e-3) * random.standard_normal(model.x.size)
    # A spool at its end has a kink; brief: the point hardly moves.
    change[[one.name.startswith('spool') for one in model.states]] = 0.0
    brief = 0.1 * interval
    apart = moved(model, brief, change) - moved(model, brief)
    said = expm(found.A * brief) @ change
    scale = np.maximum(np.abs(said), np.abs(change)) + 1e-9 * np.maximum(np.abs(model.x), 1e-3)
    assert np.abs((apart - said) / scale).max() < 5e-3


def test_links_follow_their_model() -> None:
    links = load_links()
    machine = FlexibleLinks(links, arm_of(links), resting_scenario(links))
    state = machine.initial_state()
    torques = tuple(1.1 * torque + 0.1 for torque in state.torques)
    after = machine.advance(state, torques, 0.0, 0.02)
    model = smooth_links(machine, state)._replace(u=np.array([*torques, 0.0, 0.0]))
    assert moved(model, 0.02) == pytest.approx(after.x, rel=1e-6, abs=1e-9)


def test_derivatives_of_the_crane_are_exact() -> None:
    """At rest the linear model is that of C13R, and sampled it is exact for a held input."""
    crane = load_machinery().crane
    p = Constants.of(crane)
    model = smooth_crane(np.zeros(5), Inputs(0.0, 0.0, p.d_c, FREE), p)
    found = linearize(model)
    A, b, e = linear_model(crane)
    assert pytest.approx(A, rel=1e-9, abs=1e-12) == found.A
    assert pytest.approx(np.column_stack([b, e]), rel=1e-9, abs=1e-12) == found.B
    assert found.error < 1e-6
    # The first-order lag of the crane's motor is known.
    A, B = found.discretize(0.1)
    assert A[0, 0] == pytest.approx(math.exp(-0.1 * crane.motor_rate))
    assert B[0, 0] == pytest.approx(1.0 - math.exp(-0.1 * crane.motor_rate))


@pytest.mark.parametrize(
    ('time', 'behind', 'fast'), [(0.12, 0.3, True), (0.15, 0.2 / math.e, False)]
)
def test_spools_with_a_lag_follow_their_commands(time: float, behind: float, fast: bool) -> None:
    """Within 0.02 s, at 10 1/s at most; also while their valves are closed."""
    options = HARVESTER.options()
    harvester = HARVESTER.load(HARVESTER.default_file().with_stem('harvester_realistic'), options)
    jump = {'swing': [[0.0, 0.0], [0.1, 0.0], [0.1, 0.5]]}
    scenario = HARVESTER.rest(harvester).replace(spools=SpoolKnots(**jump))
    found = linearize(HARVESTER.smooth(harvester, scenario, options, time, False))
    # Each state, such as a rate of the head, has the name of its column.
    assert set(found.states) <= set(found.outputs)
    assert found.x[-3:] == pytest.approx([0.5 - behind, 0.0, 0.0])
    assert found.u[:3].tolist() == [0.5, 0.0, 0.0]
    assert found.rate[-3:] == pytest.approx([10.0 if fast else behind / 0.02, 0.0, 0.0])
    inverse = np.diag([0.0 if fast else 50.0, 50.0, 50.0])
    assert found.A[-3:, -3:] == pytest.approx(-inverse)
    assert found.B[-3:, :3] == pytest.approx(inverse)
    note = 'the spool of the swing moves at its full speed: spool_swing has no effect'
    assert (note in found.notes) is fast


def test_a_spool_at_its_full_speed_is_named() -> None:
    found = linearize(smooth('excavator', 'dig_17kpa', 0.0), ['spool_bucket'], [])
    assert not found.B.any()
    note = 'the spool of cylinder bucket moves at its full speed: spool_bucket has no effect'
    assert note in found.notes


@pytest.mark.parametrize(
    ('machine', 'scenario'), [('boom', 'load_release'), ('excavator', 'settle')]
)
def test_a_free_valve_is_at_the_edge_of_its_dead_band(machine: str, scenario: str) -> None:
    """There it opens as fast as beyond the edge; one that is open stays as it is."""
    real, free = (smooth(machine, scenario, 0.0, free) for free in (False, True))
    names = [one.name for one in real.states]
    spool = next(k for k, name in enumerate(names) if name.startswith('spool_'))
    pressure = next(k for k, name in enumerate(names) if name.startswith('p_head_'))

    def flow(model: SmoothModel, position: float) -> float:
        x = model.x.copy()
        x[spool] = position
        return float(model.rates(x, model.u)[pressure])

    for way in (-1.0, 1.0):
        beyond, at_edge = flow(real, 0.051 * way), flow(free, 0.001 * way)
        assert flow(real, 0.05 * way) - flow(free, 0.0) == pytest.approx(0.0, abs=1e-6)
        assert at_edge == pytest.approx(beyond, rel=1e-9)


def test_an_open_valve_stays_as_it_is_when_all_is_free() -> None:
    real, free = (smooth('boom', 'reversals', 1.0, free) for free in (False, True))
    assert np.abs(free.x[-4:]).min() > 0.9
    assert (free.x == real.x).all()
    pressures = slice(-12, -4)
    assert free.rates(free.x, free.u)[pressures].tolist() == pytest.approx(
        real.rates(real.x, real.u)[pressures].tolist()
    )


def test_derivatives_equal_complex_steps() -> None:
    """Of functions with known derivatives, also stiff and badly scaled ones."""

    def f(x: np.ndarray, u: np.ndarray) -> np.ndarray:
        return np.array([np.sin(x[0]) * x[1] * 1e-6, 1e9 * np.sqrt(1e4 + x[1] ** 2) * u[0]])

    x, u = np.array([0.3, 2e5]), np.array([0.2])
    signals = (Signal('angle', 'rad'), Signal('pressure', 'Pa'))
    model = SmoothModel(signals, (Signal('spool', '1'),), signals, x, u, f, f)
    found = linearize(model)
    steps = np.array([1e-30, 1e-20])
    exact = np.empty((2, 3))
    for k, step in enumerate([*steps, 1e-30]):
        point = np.concatenate([x, u]).astype(complex)
        point[k] += 1j * step
        exact[:, k] = f(point[:2], point[2:]).imag / step
    assert np.hstack([found.A, found.B]) == pytest.approx(exact, rel=1e-6)
    assert np.hstack([found.C, found.D]) == pytest.approx(exact, rel=1e-6)
    assert found.error < 1e-6
    assert not found.notes


def test_a_kink_is_named() -> None:
    one = (Signal('speed', 'm/s'),)
    model = SmoothModel(
        one, (), one, np.zeros(1), np.zeros(0), lambda x, _: -np.abs(x) + x, lambda x, _: x**2
    )
    found = linearize(model)
    assert len(found.notes) == 1
    assert 'rate of speed has a kink in speed' in found.notes[0]
    assert found.A[0, 0] == pytest.approx(1.0)


@pytest.mark.parametrize('free', [False, True])
def test_frequencies_of_the_boom_are_those_of_its_modes(free: bool) -> None:
    """The oscillating poles of a boom at rest are its natural modes, pistons locked or sliding."""
    boom = load_boom()
    pose = boom.pose('site')
    state = Boom(boom, Scenario(duration=1.0, pose='site')).initial_state()
    found = linearize(smooth_model(boom, state, free=free), outputs=[])
    poles = [pole for pole in found.poles() if pole.value.imag > 0.0]
    expected, ratios = held_modes(boom, pose, (), np.full(4, free))
    # Damping is not proportional: |pole| of a higher mode is not its undamped frequency.
    assert [p.frequency for p in poles[:3]] == pytest.approx(expected[:3].tolist(), rel=2e-2)
    assert poles[0].frequency == pytest.approx(expected[0], rel=1e-4)
    assert [p.damping for p in poles[:3]] == pytest.approx(ratios[:3].tolist(), rel=1e-2)
    if not free:
        modes = natural_modes(boom, pose, count=3)
        assert poles[0].frequency == pytest.approx(modes.frequencies[0], rel=1e-4)
        assert 'cylinder_1 sticks: its joint is locked' in found.notes


@pytest.mark.slow_after(1)
@pytest.mark.parametrize('frequency', [0.3, 1.5])
def test_a_sine_sweep_confirms_the_frequency_response(frequency: float) -> None:
    boom = load_boom()
    # Damped so that the beginning of the sine dies out within the run.
    beams = tuple(beam.replace(beam_damping=20.0 * beam.beam_damping) for beam in boom.beams)
    boom = boom.replace(beams=beams)
    force, duration = 20.0, 40.0
    scenario = Scenario(
        duration=duration,
        pose='site',
        friction=False,
        forces=(TipForce(start=0.0, end=duration, z=force, frequency=frequency),),
    )
    run = simulate(boom, scenario, step=2.5e-4)
    time = run.column('time')
    late = time > 0.5 * duration
    wave = 2.0 * math.pi * frequency * time[late]
    basis = np.column_stack([np.sin(wave), np.cos(wave), np.ones(wave.size), time[late]])
    state = Boom(boom, scenario, 2.5e-4).initial_state()._replace(forces=np.zeros((4, 2)))
    model = linearize(
        smooth_model(boom, state, friction=False), ['tip_force_z_4'], ['tip_z', 'strain_2']
    )
    said = model.response(np.array([frequency]))[0, :, 0]
    for name, expected in zip(('tip_z', 'strain_2'), said, strict=True):
        part = np.linalg.lstsq(basis, run.column(name)[late], rcond=None)[0]
        assert complex(part[0], part[1]) / force == pytest.approx(expected, rel=0.02)


class Swept(NamedTuple):
    """A machine near a state, an input of it, and outputs that follow."""

    machine: Any
    state: Any
    model: SmoothModel
    command: Callable[[np.ndarray], Any]
    commanded: int  # inputs, which come first
    input: str
    amplitude: float
    outputs: tuple[str, ...]
    frequencies: tuple[float, ...] = (3.0,)
    field: str = 'y'  # of the state, which begins with that of the model

    def run(self, start: np.ndarray, wave: np.ndarray, interval: float) -> np.ndarray:
        """Return the outputs from a state on, the input moved by a wave."""
        whole = getattr(self.state, self.field).copy()
        whole[: start.size] = start
        state, u = self.state._replace(**{self.field: whole}), self.model.u.copy()
        place = [one.name for one in self.model.inputs].index(self.input)
        shown = [one.name for one in self.model.outputs]
        chosen = [shown.index(name) for name in self.outputs]
        rows = []
        for k, value in enumerate(wave):
            x = getattr(state, self.field)[: start.size]
            rows.append(self.model.observe(x, u)[chosen])
            u[place] = self.model.u[place] + value
            state = self.machine.advance(
                state, self.command(u[: self.commanded]), k * interval, interval
            )
        return np.array(rows)


def swept_crane() -> Swept:
    """Return the crane at rest, its brake open, pushed by the motor."""
    crane = load_machinery().crane
    machine = Crane(crane)
    state, p = machine.initial_state(), machine.constants
    model = smooth_crane(state.x, Inputs(0.0, 0.0, p.d_c, FREE), p)
    outputs = ('angle', 'load_position')
    frequencies = (0.2, 3.0)
    return Swept(
        machine, state, model, lambda u: Command(*u), 1, 'command', 50.0, outputs, frequencies, 'x'
    )


def swept_links() -> Swept:
    """Return links that hang in a curve, under torques."""
    links = load_links()
    pose = (Waypoint(time=0.0, angles_deg=(-60.0, -60.0)),)
    machine = FlexibleLinks(links, arm_of(links), HangingLinks(duration=1.0, trajectory=pose))
    state = machine.initial_state()
    model = smooth_links(machine, state)
    outputs, frequencies = ('f_1_1', 'tip_z'), (0.5, 5.0)
    torques = len(state.torques)
    return Swept(
        machine, state, model, tuple, torques, 'torque_1', 1e-3, outputs, frequencies, 'x'
    )


def swept_hydraulics(name: str, scenario: str, outputs: tuple[str, ...]) -> Swept:
    """Return a machine whose first moving valve is just open: it hardly leaves its state."""
    spec, *given = loaded(name, scenario)
    machine, inputs, command = spec.cosimulation(*given)
    u = np.zeros(len(inputs))
    place = 1 if name == 'harvester' else 0
    u[place] = 0.07  # dead bands are 0.05
    state = machine.initial_state()
    for k in range(400):
        state = machine.advance(state, command(u), k * 0.005, 0.005)
    if name == 'harvester':
        model = smooth_harvester(machine, state, False)
    else:
        model = smooth_excavator(machine, state, 2.0, False)
    model = model._replace(u=np.append(u, np.zeros(len(model.inputs) - u.size)))
    name = model.inputs[place].name
    return Swept(machine, state, model, command, len(inputs), name, 1e-3, outputs)


@pytest.mark.parametrize(
    'make',
    [
        swept_crane,
        swept_links,
        lambda: swept_hydraulics('excavator', 'settle', ('omega_2', 'p_head_boom')),
        lambda: swept_hydraulics('harvester', 'open_loop', ('rate_boom', 'p_1_boom')),
    ],
    ids=['crane', 'links', 'excavator', 'harvester'],
)
def test_sines_confirm_the_frequency_response(make: Callable[[], Swept]) -> None:
    swept = make()
    found = linearize(swept.model, [swept.input], swept.outputs)
    for frequency in swept.frequencies:
        interval = min(1e-3, 0.005 / frequency)
        time = interval * np.arange(round(3.0 / frequency / interval))
        omega = 2.0 * math.pi * frequency
        # The state begins on the orbit of the sine, so that nothing has to die out.
        orbit = np.linalg.solve(1j * omega * np.eye(len(found.A)) - found.A, found.B[:, 0])
        start = swept.model.x + swept.amplitude * orbit.imag
        # Held over an interval, a wave is that of its middle.
        wave = swept.amplitude * np.sin(omega * (time + 0.5 * interval))
        apart = swept.run(start, wave, interval) - swept.run(swept.model.x, 0.0 * wave, interval)
        basis = np.column_stack(
            [np.sin(omega * time), np.cos(omega * time), np.ones(time.size), time, time**2]
        )
        sine, cosine, *_ = np.linalg.lstsq(basis, apart, rcond=None)[0]
        said = found.response(np.array([frequency]))[0, :, 0]
        assert (sine + 1j * cosine) / swept.amplitude == pytest.approx(said, rel=0.02)


@pytest.mark.parametrize(
    ('machine', 'scenario', 'inputs', 'outputs'),
    [
        ('boom', 'hold', 'torque_1 torque_3 tip_force_z_4', 'phi_1 phi_3 tip_z'),
        (
            'excavator',
            'settle',
            'torque_boom torque_arm torque_bucket tooth_force_x tooth_force_z',
            'theta_2 theta_3 theta_4 tip_x tip_z',
        ),
        ('harvester', 'open_loop', 'torque_boom torque_stick', 'q_boom q_stick'),
        (
            'links',
            'circle',
            'torque_1 torque_2 tip_force_x tip_force_z',
            'motor_1 motor_2 tip_x tip_z',
        ),
    ],
)
def test_forces_and_motions_are_reciprocal(
    machine: str, scenario: str, inputs: str, outputs: str
) -> None:
    """At rest what one force moves at another is what the other moves at the one (Maxwell)."""
    at_rest = smooth(machine, scenario, 0.0, free=True)
    model = linearize(at_rest, inputs.split(), outputs.split())
    found = model.response(np.array([0.5, 2.0, 7.0]))
    size = np.sqrt(np.abs(np.einsum('fii,fjj->fij', found, found)))
    assert np.abs((found - found.transpose(0, 2, 1)) / size).max() < 1e-3


def boom_model() -> LinearModel:
    """Return the model of a boom from a force at its tip."""
    boom = load_boom()
    state = Boom(boom, Scenario(duration=1.0, pose='site')).initial_state()
    return linearize(smooth_model(boom, state, free=True), ['tip_force_z_4'], ['tip_z'])


def test_a_reduced_model_responds_alike() -> None:
    model = boom_model()
    small = model.reduce(18)
    assert small.A.shape == (18, 18)
    # Rounding is no damping of what does not move.
    assert all(pole.value == 0.0 or pole.frequency > 0.1 for pole in small.poles())
    frequencies = np.array([0.2, 0.413, 0.9, 2.0])
    assert small.response(frequencies) == pytest.approx(model.response(frequencies), rel=0.01)
    with pytest.raises(InputError, match='order = 2, allowed: '):
        model.reduce(2)


def test_a_reduction_is_balanced_over_sizes_and_keeps_the_rate() -> None:
    """Two lags, one of 1 kPa and one of 1 rad, which is more."""
    A, C, D = np.diag([-1.0, -100.0]), np.diag([1e3, 1.0]), np.zeros((2, 2))
    inputs, rest, rate = (Signal('a', '1'), Signal('b', '1')), np.zeros(2), np.array([3.0, 4.0])
    outputs = (Signal('pressure', 'Pa'), Signal('angle', 'rad'))
    model = LinearModel(A, -A, C, D, inputs, inputs, outputs, rest, rest, rest, rate)
    whole, small = model.reduce(2), model.reduce(1)
    assert whole.C @ whole.rate == pytest.approx([3e3, 4.0])
    assert small.A.tolist() == [[pytest.approx(-100.0)]]
    assert small.C @ small.rate == pytest.approx([0.0, 4.0])
    # Hankel singular values of lags are half their gains, 1e-3 and 1 in their sizes.
    assert 'off by up to 0.002 of the largest one' in small.notes[-1]


def test_files_hold_the_model(tmp_path: Path) -> None:
    model = boom_model()
    model.save(tmp_path / 'model.mat')
    model.save(tmp_path / 'model.json')
    mat, plain = loadmat(tmp_path / 'model.mat'), json.loads((tmp_path / 'model.json').read_text())
    assert np.array_equal(mat['A'], model.A)
    assert np.array_equal(plain['B'], model.B)
    assert mat['inputs'][0, 0][0] == 'tip_force_z_4'
    assert plain['output_units'] == ['m']
    assert plain['states'][0] == 'phi_1'
    with pytest.raises(InputError, match=r"'\.txt', allowed: \.mat \| \.json"):
        model.save(tmp_path / 'model.txt')


def test_unknown_names_are_refused() -> None:
    with pytest.raises(InputError, match=r"input = 'spool', allowed: command \| disturbance"):
        linearize(smooth('crane', 'task_b', 0.0), inputs=['spool'])


def test_no_response_at_a_pole() -> None:
    """A crane without a brake goes on for ever after a push."""
    with pytest.raises(InputError, match='a frequency is a pole of the model'):
        linearize(smooth('crane', 'task_b', 3.0)).response(np.array([1.0, 0.0]))


def test_a_figure_of_too_many_curves_is_refused(tmp_path: Path, capsys: Any) -> None:
    file = tmp_path / 'bode.png'
    words = ['crane', 'linearize', '--scenario', 'task_b', '--plot', str(file)]
    assert cli.main(words) == 0
    assert file.stat().st_size > 10_000
    file.unlink()
    assert cli.main(['harvester', *words[1:3], 'open_loop', *words[4:]]) == 2
    wanted = '--plot with 228 curves (6 inputs, 38 outputs), allowed: up to 16; choose'
    assert wanted in capsys.readouterr().err
    assert not file.exists()


def test_the_package_control_takes_the_model() -> None:
    pytest.importorskip('control')
    model = boom_model()
    system = model.to_control()
    assert system.input_labels == ['tip_force_z_4']
    (found,) = system(2j * np.pi * np.array([0.8])).ravel()
    assert found == pytest.approx(model.response(np.array([0.8]))[0, 0, 0])
