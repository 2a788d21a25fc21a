"""
A crane that hoists while it drives: observer and regulator scheduled by the length of the cable.

    python3 docs/tutorials/crane_hoisting.py

The crane is that of C13R, with a cable r(t) between 14.5 m and 1.5 m: r'' sin(alpha) and
2 r' alpha' cos(alpha) accelerate the load along the track, too. The car follows two set points.
Compared are the digital controller that is designed for the mean length, and one whose matrices
are those of the present length.
"""

import math

import numpy as np
from scipy.integrate import solve_ivp

from longreach_crane.control import Controller, sense
from longreach_crane.design import ControllerMatrices, design_controller
from longreach_crane.parameters import Machinery, load_machinery

CYCLE, CYCLES = 0.02, 2000  # [s]
MEAN, AMPLITUDE, PERIOD = 8.0, 6.5, 60.0  # of the cable [m], [s]
SET_POINTS = (2.0, 2.5), (20.0, -1.0)  # from a time on [s], the car's position [m]


def cable(time: float) -> tuple[float, float, float]:
    """Return r, r' and r'' at a time [s]."""
    omega = 2.0 * math.pi / PERIOD
    wave, slope = AMPLITUDE * math.cos(omega * time), AMPLITUDE * math.sin(omega * time)
    return MEAN + wave, -omega * slope, -(omega**2) * wave


def rates(time: float, x: np.ndarray, force: float, machinery: Machinery) -> np.ndarray:
    """Return the derivative of x = (f_c, x_c, x_c', alpha, alpha') under a desired force [N]."""
    crane = machinery.crane
    (r, r_1, r_2), (f_c, _, v, alpha, omega) = cable(time), x
    sine, cosine, m_c, m_l = math.sin(alpha), math.cos(alpha), crane.car_mass, crane.load_mass
    drag = crane.load_friction * np.array(
        [v + r_1 * sine + r * cosine * omega, cosine * v + r * omega]
    )
    # On the car without the pull of the cable and on the load across it, per mass of the load.
    pushed = f_c - crane.car_friction * v - drag[0]
    pushed += m_l * (r * sine * omega**2 - 2.0 * r_1 * omega * cosine - r_2 * sine)
    across = -m_l * crane.gravity * sine - drag[1] - 2.0 * m_l * r_1 * omega
    mass = np.array([[m_c + m_l, m_l * r * cosine], [m_l * cosine, m_l * r]])
    car, swing = np.linalg.solve(mass, [pushed, across])
    return np.array([crane.motor_rate * (force - f_c), v, car, omega, swing])


def controllers(machinery: Machinery, lengths: np.ndarray) -> list[Controller]:
    """Return the controllers for some lengths of the cable [m]."""
    found = []
    for length in lengths:
        crane = machinery.crane.replace(cable_length=float(length))
        matrices = design_controller(crane, machinery.controller, machinery.design)
        found.append(Controller(crane, machinery.controller, matrices, diagnosis=False))
    return found


def scheduled(known: list[Controller], lengths: np.ndarray, length: float) -> Controller:
    """Return the controller for a length, its matrices between those of its neighbours."""
    k = int(np.clip(np.searchsorted(lengths, length), 1, len(lengths) - 1))
    share = (length - lengths[k - 1]) / (lengths[k] - lengths[k - 1])
    low, high = known[k - 1], known[k]
    between = (
        (1.0 - share) * a + share * b for a, b in zip(low.matrices, high.matrices, strict=True)
    )
    return Controller(low.crane, low.parameters, ControllerMatrices(*between), diagnosis=False)


def run(machinery: Machinery, schedule: bool) -> np.ndarray:
    """Return time [s], and positions of car and load [m], a row a cycle."""
    lengths = np.linspace(MEAN - AMPLITUDE, MEAN + AMPLITUDE, 13) if schedule else [MEAN, 2 * MEAN]
    known = controllers(machinery, np.array(lengths))
    x, state, rows = np.zeros(5), known[0].initial_state(), []
    for k in range(CYCLES):
        time = k * CYCLE
        length = cable(time)[0]
        wanted = next((at for start, at in reversed(SET_POINTS) if time >= start), 0.0)
        control = scheduled(known, np.array(lengths), length) if schedule else known[0]
        state = control.cycle(state, sense(x[1], control.crane), wanted)
        rows.append((time, x[1], x[1] + length * math.sin(x[3])))
        arguments = (state.command.force, machinery)
        span = (time, time + CYCLE)
        x = solve_ivp(rates, span, x, args=arguments, rtol=1e-7, atol=1e-9).y[:, -1]
    return np.array(rows)


def arrivals(rows: np.ndarray) -> list[float]:
    """Return how long after each set point the load stays within 5 cm of it [s]; inf: never."""
    time, _, load = rows.T
    ends = [start for start, _ in SET_POINTS[1:]] + [CYCLES * CYCLE]
    found = []
    for (start, wanted), end in zip(SET_POINTS, ends, strict=True):
        late = time[(time >= start) & (time < end) & (np.abs(load - wanted) > 0.05)]
        ends_late = late[-1] > end - 2.0 * CYCLE
        found.append(math.inf if ends_late else float(late[-1] - start) + CYCLE)
    return found


def machinery_of_the_example() -> Machinery:
    """Return the crane of C13R with cycles of CYCLE, and a brake that stays open."""
    given = load_machinery()
    control = given.controller.replace(sample_time=CYCLE, steady_time=1e3)
    return given.replace(controller=control)


if __name__ == '__main__':
    for schedule in (False, True):
        found = arrivals(run(machinery_of_the_example(), schedule))
        said = ' and '.join('never' if math.isinf(one) else f'{one:.1f} s' for one in found)
        print(f'{"scheduled" if schedule else "mean length"}: the load has arrived after {said}')
