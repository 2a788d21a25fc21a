"""
The closed loop against an independent program.

The program below shares nothing with the library but parameter and scenario objects, and, for
cranes other than C13R's, the designed matrices. Its right-hand side comes from the mass-matrix
form by elimination, its controller is plain Python. The nonlinear model is integrated from sample
to sample by SciPy: DOP853 at 1e-13. The linear model is sampled exactly, by the matrix
exponential.
"""

import dataclasses
import functools
import itertools
import math

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.linalg import expm

from longreach_crane.design import ControllerMatrices, controller_matrices
from longreach_crane.parameters import CraneParameters
from longreach_crane.scenario import Disturbance, InitialState, Scenario, SetPoint
from longreach_crane.simulation import columns_of, simulate

OUTPUTS = ('same_cycle', 'next_cycle')
BRAKES = ('viscous', 'rigid')


def printed(corrected):
    """Return the matrices of C13R section 2, copied from the paper."""
    M = np.array(
        [
            [0.96, 0, 0, 0, 0],
            [0, 1, 0.01, 0, 0],
            [0.001, 0, 0.9995, 0.981, 0],
            [0, 0, 0, 1, 0.01 if corrected else 0],
            [-0.0002, 0, 0.0001, -0.2158, 1],
        ]
    )
    d = np.array([34.5724, 0.2395, 2.0322, 0.0164, -0.1979])
    h = np.array([2.9, 109.5, 286.0, 1790.6, 44.5])
    return ControllerMatrices(M, np.array([0.04, 0, 0, 0, 0]), d, h, 109.5)


@dataclasses.dataclass(frozen=True)
class Plant:
    """The crane between two sampling instants."""

    crane: CraneParameters
    model: str
    brake: str

    def derivative(self, force, disturbance, braked):
        """Return the nonlinear right-hand side for constant inputs."""
        p = self.crane
        m_l, r, d_l = p.load_mass, p.cable_length, p.load_friction
        d_c = p.brake_friction if braked else p.car_friction
        held = braked and self.brake == 'rigid'

        def function(t, x):
            f, _, v, alpha, omega = x.tolist()
            s, c = math.sin(alpha), math.cos(alpha)
            cable = -m_l * p.gravity * s + disturbance * c - d_l * (c * v + r * omega)
            if held:
                car = 0.0
            else:
                total = f + disturbance - d_c * v + m_l * r * s * omega**2
                total -= d_l * (v + r * c * omega)
                # m_l r alpha'' = cable - m_l c x_c'' put into the car's equation.
                car = (total - c * cable) / (p.car_mass + m_l * s * s)
            swing = (cable / m_l - c * car) / r
            return [p.motor_rate * (force - f), 0.0 if held else v, car, omega, swing]

        return function

    def advance(self, x, force, disturbance, braked, duration):
        if self.model == 'linear':
            return self.advance_linear(x, force, disturbance, braked, duration)
        function, step = self.derivative(force, disturbance, braked), None if braked else duration
        solution = solve_ivp(
            function, (0.0, duration), x, 'DOP853', rtol=1e-13, atol=1e-15, first_step=step
        )
        assert solution.success
        return np.asarray(solution.y[:, -1])

    def advance_linear(self, x, force, disturbance, braked, duration):
        return np.asarray((self.transition(braked, duration) @ [*x, force, disturbance])[:5])

    @functools.lru_cache(maxsize=4)  # noqa: B019
    def transition(self, braked, duration):
        """Return what turns state and inputs into those at the end of an interval."""
        p = self.crane
        d_c = p.brake_friction if braked else p.car_friction
        held = braked and self.brake == 'rigid'
        m_l, r, d_l = p.load_mass, p.cable_length, p.load_friction
        mass = np.array([[p.car_mass + m_l, m_l * r], [m_l * r, m_l * r**2]])
        # Generalised forces on (x_c, alpha) for f_c, x_c, x_c', alpha, alpha', f, f_d.
        on_car = [1, 0, -d_c - d_l, 0, -d_l * r, 0, 1]
        forces = np.array([on_car, [0, 0, -d_l * r, -m_l * p.gravity * r, -d_l * r * r, 0, r]])
        if held:
            accelerations = np.vstack([np.zeros(7), forces[1] / mass[1, 1]])
        else:
            accelerations = np.linalg.solve(mass, forces)
        system = np.zeros((7, 7))
        system[0, 0], system[0, 5] = -p.motor_rate, p.motor_rate
        system[1, 2] = 0.0 if held else 1.0
        system[2], system[3, 4], system[4] = accelerations[0], 1.0, accelerations[1]
        return np.asarray(expm(system * duration))

    def stopped(self, x):
        """Return the state after the car stood still at once."""
        cosine = 1.0 if self.model == 'linear' else math.cos(x[3])
        # The load's velocity across the cable stays.
        across = x[2] * cosine + self.crane.cable_length * x[4]
        return np.array([x[0], x[1], 0.0, x[3], across / self.crane.cable_length])


def reference(machinery, m, scenario, plant):
    """Return the table of the closed loop, one row per cycle."""
    p, controller = machinery.crane, machinery.controller
    T = controller.sample_time
    cycles = round(scenario.duration / T)
    x = np.array(dataclasses.astuple(scenario.initial_state))
    M, d, b, h = m.M.tolist(), m.d.tolist(), m.b.tolist(), m.h.tolist()
    q, put_out, computed = [0.0] * 5, 0.0, 0.0
    since = None
    emergency = standing = False
    rows = []

    def observe(told):
        predicted = [sum(M[i][j] * q[j] for j in range(5)) + b[i] * told for i in range(5)]
        new = [predicted[i] + d[i] * (x[1] - q[1]) for i in range(5)]
        u = m.V * wanted - sum(h[i] * new[i] for i in range(5))
        return new, min(max(u, -controller.maximum_force), controller.maximum_force)

    for n in range(cycles + 1):
        wanted = 0.0
        for point in scenario.set_points:
            if n >= round(point.time / T):
                wanted = point.car_position
        if scenario.diagnosis and not p.minimum_position <= x[1] <= p.maximum_position:
            emergency = True
        if controller.output == 'same_cycle':
            q, computed = observe(put_out)
        force = computed
        if abs(force) >= controller.brake_condition:
            since = None
        elif since is None:
            since = n
        # In hundredths of a cycle, so that rounding of T decides nothing.
        steady = since is not None and (n - since) * T > controller.steady_time + 0.01 * T
        braked = emergency or steady
        put_out = 0.0 if braked else force
        if controller.output == 'next_cycle':
            q, computed = observe(put_out)
        offset = x[3] if plant.model == 'linear' else math.sin(x[3])
        load = x[1] + p.cable_length * offset
        rows.append([n * T, *x, load, put_out, float(braked), float(emergency), wanted])
        if n == cycles:
            break
        disturbance = 0.0
        for part in scenario.disturbances:
            first = round(part.time / T)
            if first <= n < first + round(part.duration / T):
                disturbance += part.force
        if braked and plant.brake == 'rigid' and not standing:
            x = plant.stopped(x)
        standing = braked
        x = plant.advance(x, put_out, disturbance, braked, T)
    return np.array(rows)


def compare(machinery, scenario, plant, m):
    """Check every column of the library's table against the reference's."""
    result = simulate(machinery, scenario, plant.model, plant.brake)
    expected = reference(machinery, m, scenario, plant)
    assert result.table.shape == expected.shape
    for index, name in enumerate(columns_of(machinery.crane).names):
        if name in ('brake', 'emergency'):
            assert np.array_equal(result.table[:, index], expected[:, index]), name
        else:
            worst = np.abs(result.table[:, index] - expected[:, index]).max()
            assert worst < 1e-9, name


def with_variant(machinery, output, matrices):
    controller = machinery.controller.replace(output=output, matrices=matrices)
    return machinery.replace(controller=controller)


CHOICES = ('bc', OUTPUTS, ('corrected', 'as_printed'), BRAKES)


def half():
    """Return half of the variants, in which any choices of three meet, as some take long."""
    return [
        pytest.param(*one, marks=pytest.mark.slow if {'c', 'viscous'} <= set(one) else [])
        for one in itertools.product(*CHOICES)
        if sum(some.index(word) for some, word in zip(CHOICES, one, strict=True)) % 2 == 0
    ]


@pytest.mark.slow_after(2)
@pytest.mark.parametrize(('task', 'output', 'matrices', 'brake'), half())
def test_nonlinear_tasks(task, output, matrices, brake, machinery, task_b, task_c):
    compare(
        with_variant(machinery, output, matrices),
        task_b if task == 'b' else task_c,
        Plant(machinery.crane, 'nonlinear', brake),
        printed(matrices == 'corrected'),
    )


@pytest.mark.slow_after(4)
@pytest.mark.parametrize(('task', 'output', 'matrices', 'brake'), [*itertools.product(*CHOICES)])
def test_linear_tasks(task, output, matrices, brake, machinery, task_b, task_c):
    compare(
        with_variant(machinery, output, matrices),
        task_b if task == 'b' else task_c,
        Plant(machinery.crane, 'linear', brake),
        printed(matrices == 'corrected'),
    )


LIVELY = Scenario(
    duration=9.87,
    set_points=(SetPoint(0.0, -1.5), SetPoint(3.07, -2.25), SetPoint(6.5, 1.0)),
    disturbances=(
        Disturbance(0.5, 2.0, -40.0),
        Disturbance(1.25, 3.0, 70.0),
        Disturbance(2.0, 0.25, -15.0),
    ),
    initial_state=InitialState(
        motor_force=12.0, car_position=0.8, car_velocity=-0.3, angle=0.25, angular_velocity=-0.1
    ),
)


@pytest.mark.slow_after(3)
@pytest.mark.parametrize('brake', BRAKES)
@pytest.mark.parametrize('output', OUTPUTS)
@pytest.mark.parametrize(
    'changes',
    [
        {'cable_length': 2.0, 'load_mass': 40.0, 'maximum_position': 1.2},
        {'cable_length': 11.0, 'car_mass': 25.0, 'load_friction': 0.4, 'car_friction': 3.0},
        {'gravity': 1.62, 'motor_rate': 9.0, 'minimum_position': -1.0, 'brake_friction': 3e4},
    ],
    ids=['short', 'long', 'moon'],
)
def test_other_cranes_and_scenarios(changes, output, brake, machinery):
    crane = machinery.crane.replace(**changes)
    other = with_variant(machinery, output, 'auto').replace(crane=crane)
    m = controller_matrices(other.crane, other.controller, other.design)
    compare(other, LIVELY, Plant(other.crane, 'nonlinear', brake), m)


@pytest.mark.parametrize('brake', BRAKES)
@pytest.mark.parametrize('output', OUTPUTS)
def test_other_controllers(output, brake, machinery):
    # A wide brake condition makes the brake close and open several times, at speed.
    controller = machinery.controller.replace(
        output=output, sample_time=0.02, maximum_force=45.0, brake_condition=8.0, steady_time=0.1
    )
    other = machinery.replace(controller=controller)
    m = controller_matrices(other.crane, controller, other.design)
    scenario = LIVELY.replace(
        duration=8.0, set_points=(SetPoint(0.0, 0.5), SetPoint(4.0, -1.0)), disturbances=()
    )
    brakes = simulate(other, scenario, brake=brake).column('brake')
    assert np.count_nonzero(np.diff(brakes) > 0) >= 2
    compare(other, scenario, Plant(other.crane, 'nonlinear', brake), m)


def located(plant, x, force, duration):
    """Return when the car passes a limit in an interval, from SciPy's dense output."""
    limits = {
        'minimum_position': plant.crane.minimum_position,
        'maximum_position': plant.crane.maximum_position,
    }
    solution = solve_ivp(
        plant.derivative(force, 0.0, False),
        (0.0, duration),
        x,
        'DOP853',
        rtol=1e-13,
        atol=1e-15,
        max_step=duration / 50,
        events=[lambda _, x, limit=limit: x[1] - limit for limit in limits.values()],
    )
    pairs = zip(limits, solution.t_events, strict=True)
    return sorted((float(time), name) for name, times in pairs for time in times)


def test_crossing_of_task_c_is_located(machinery, task_c):
    result = simulate(machinery, task_c)
    (crossing,) = result.crossings
    row = result.table[math.floor(crossing.time / 0.01)]
    plant = Plant(machinery.crane, 'nonlinear', 'viscous')
    ((time, name),) = located(plant, row[1:6], row[7], 0.01)
    assert crossing.name == name == 'maximum_position'
    assert crossing.time == pytest.approx(row[0] + time, abs=1e-9)


@pytest.mark.parametrize('side', [-1.0, 1.0])
@pytest.mark.parametrize('depth', [2.5e-5, 1e-7])
def test_touch_between_two_samples_is_found_twice(side, depth, machinery):
    # The slanting cable pulls the car back: it turns within the first cycle.
    start = np.array([0.0, 0.0, 0.05 * side, -0.1 * side, 0.0])
    plant = Plant(machinery.crane, 'nonlinear', 'viscous')
    # The force of cycle 0 depends on the position: find the reach for the one it will have.
    for _ in range(8):
        scenario = Scenario(duration=0.01, initial_state=InitialState(*start.tolist()))
        force = simulate(machinery, scenario).column('command')[0]
        function, times = plant.derivative(force, 0.0, False), np.linspace(0.0, 0.01, 2001)
        solution = solve_ivp(function, (0.0, 0.01), start, 'DOP853', times, rtol=1e-13, atol=1e-15)
        start[1] += side * (5.0 + depth - (side * solution.y[1]).max())
    result = simulate(machinery, scenario)
    assert np.abs(result.column('car_position')).max() < 5.0
    assert result.events == ()
    force = result.column('command')[0]
    expected = located(plant, result.table[0, 1:6], force, 0.01)
    assert len(expected) == 2
    name = 'maximum_position' if side > 0 else 'minimum_position'
    assert [event.name for event in result.crossings] == [name, name]
    times = [event.time for event in result.crossings]
    assert times == pytest.approx([time for time, _ in expected], abs=1e-9)


@pytest.mark.parametrize('limit', [0.5, 2.0])
def test_crossings_within_cycles_longer_than_a_swing(limit, machinery):
    T = 2.0
    crane = machinery.crane.replace(minimum_position=-1e3, maximum_position=limit)
    slow = machinery.controller.replace(sample_time=T)
    start = InitialState(angle=0.5)
    scenario = Scenario(duration=5 * T, diagnosis=False, initial_state=start)
    result = simulate(machinery.replace(crane=crane, controller=slow), scenario)
    assert not result.column('brake').any()
    plant, expected = Plant(crane, 'nonlinear', 'viscous'), []
    for row in result.table[:-1]:
        expected += [row[0] + time for time, _ in located(plant, row[1:6], row[7], T)]
    assert len(expected) > 4
    assert [event.time for event in result.crossings] == pytest.approx(expected, abs=1e-8)


def test_car_that_turns_before_the_limit_crosses_nothing(machinery):
    start = InitialState(car_position=4.9995, car_velocity=0.05, angle=-0.1)
    result = simulate(machinery, Scenario(duration=0.05, initial_state=start))
    assert result.column('car_velocity')[0] > 0.0 > result.column('car_velocity')[1]
    assert result.crossings == ()


def test_car_that_goes_out_and_comes_back_crosses_twice(machinery):
    start = InitialState(car_position=4.99, car_velocity=0.6, angle=-0.1)
    scenario = Scenario(duration=1.0, diagnosis=False, initial_state=start)
    result = simulate(machinery, scenario)
    position = result.column('car_position')
    out = np.flatnonzero(position > 5.0)
    assert position[-1] < 5.0
    first, second = (event.time for event in result.crossings)
    assert 0.01 * (out[0] - 1) <= first <= 0.01 * out[0]
    assert 0.01 * out[-1] <= second <= 0.01 * (out[-1] + 1)
    plant = Plant(machinery.crane, 'nonlinear', 'viscous')
    for time in (first, second):
        row = result.table[math.floor(time / 0.01)]
        (crossing,) = located(plant, row[1:6], row[7], 0.01)
        assert time == pytest.approx(row[0] + crossing[0], abs=1e-9)
