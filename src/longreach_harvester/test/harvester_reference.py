"""A second derivation of the harvester: Lagrange by CasADi, oil in NumPy, Radau by pieces."""

import itertools

import casadi as ca
import numpy as np
from scipy.integrate import solve_ivp

JOINTS = ('swing', 'boom', 'stick')


def about_z(angle):
    c, s = ca.cos(angle), ca.sin(angle)
    return ca.vertcat(ca.horzcat(c, -s, 0), ca.horzcat(s, c, 0), ca.horzcat(0, 0, 1))


def lifted(angle):
    """Rotation that lifts the x axis by an angle towards z."""
    c, s = ca.cos(angle), ca.sin(angle)
    return ca.vertcat(ca.horzcat(c, 0, -s), ca.horzcat(0, 1, 0), ca.horzcat(s, 0, c))


def symbols(size=3):
    return ca.SX.sym('q', size), ca.SX.sym('v', size)


def energies(p, q, v, log=0.0):
    """Return kinetic and potential energy, of 3 joints or with those of the head."""
    turned = about_z(q[0])
    frames = (turned @ lifted(q[1]), turned @ lifted(q[1] + q[2]))
    foot = turned @ ca.vertcat(p.swing.offset, 0, 0)
    knee = foot + frames[0] @ ca.vertcat(p.boom.length, 0, 0)
    bodies = [
        (foot + frames[0] @ ca.vertcat(p.boom.centre, 0, 0), frames[0], p.boom),
        (knee + frames[1] @ ca.vertcat(p.stick.centre, 0, 0), frames[1], p.stick),
    ]
    kinetic, potential = p.swing.inertia * v[0] ** 2 / 2, 0
    for place, frame, body in bodies:
        speed = ca.jacobian(place, q) @ v
        rate = ca.reshape(ca.jacobian(ca.reshape(frame, 9, 1), q) @ v, 3, 3)
        spin = frame.T @ rate  # skew-symmetric: angular velocity in the body's frame
        across = spin[2, 0] ** 2 + spin[1, 0] ** 2
        along = spin[2, 1] ** 2
        kinetic += body.mass * ca.dot(speed, speed) / 2
        kinetic += (body.transverse_inertia * across + body.axial_inertia * along) / 2
        potential += body.mass * p.gravity * place[2]
    tip = knee + frames[1] @ ca.vertcat(p.stick.length, 0, 0)
    points = [(tip, p.head.mass), (tip, log)]
    if p.head.pendulum:
        hangs = p.head.pendulum
        frame = turned @ lifted(q[1] + q[2] + q[3]) @ about_z(q[4])
        points = [
            (tip + frame @ ca.vertcat(hangs.centre, 0, 0), p.head.mass),
            (tip + frame @ ca.vertcat(hangs.grapple, 0, 0), log),
        ]
        rate = ca.reshape(ca.jacobian(ca.reshape(frame, 9, 1), q) @ v, 3, 3)
        spin = frame.T @ rate
        across = spin[2, 0] ** 2 + spin[1, 0] ** 2
        kinetic += hangs.transverse_inertia * across / 2
        kinetic += hangs.axial_inertia * spin[2, 1] ** 2 / 2
    for place, mass in points:
        speed = ca.jacobian(place, q) @ v
        kinetic += mass * ca.dot(speed, speed) / 2
        potential += mass * p.gravity * place[2]
    return kinetic, potential


def lengths(p, q):
    """Return lengths of both cylinders as expressions."""
    found = []
    for cylinder, angle in ((p.boom_cylinder, q[1]), (p.stick_cylinder, q[2])):
        a, b = cylinder.linkage.near, cylinder.linkage.far
        turned = angle + cylinder.linkage.offset_angle
        found.append(ca.sqrt(a**2 + b**2 - 2 * a * b * ca.cos(turned)))
    return ca.vertcat(*found)


def equations(p, log=0.0):
    """Return a function (q, v, torques) -> accelerations, by Lagrange's equations."""
    size = 5 if p.head.pendulum else 3
    q, v = symbols(size)
    torque = ca.SX.sym('torque', size)
    kinetic, potential = energies(p, q, v, log)
    momentum = ca.gradient(kinetic, v)
    mass = ca.jacobian(momentum, v)
    bias = ca.jacobian(momentum, q) @ v - ca.gradient(kinetic - potential, q)
    return ca.Function('a', [q, v, torque], [ca.solve(mass, torque - bias), mass, bias])


def spool_at(knots, time):
    """Return a spool between knots; at a jump the value after it."""
    times, values = np.array(knots, dtype=float).T
    if time >= times[-1]:
        return values[-1]
    k = int(np.clip(np.searchsorted(times, time, side='right') - 1, 0, len(times) - 2))
    if times[k + 1] == times[k]:
        return values[k]
    share = np.clip((time - times[k]) / (times[k + 1] - times[k]), 0.0, 1.0)
    return values[k] + share * (values[k + 1] - values[k])


def instants(p, spools, end):
    """Return the times between which all that switches stays as it is."""
    found = {0.0, end}
    for name in JOINTS:
        band = parts(p, name).valve.dead_band
        for (t0, u0), (t1, u1) in zip(spools[name][:-1], spools[name][1:], strict=True):
            found |= {t0, t1}
            for level in (-band, 0.0, band):
                if (u0 - level) * (u1 - level) < 0:
                    found.add(t0 + (level - u0) / (u1 - u0) * (t1 - t0))
    return sorted(t for t in found if 0.0 <= t <= end)


def right_hand_side(p, switching=True, as_printed=False):
    """Return f(y, u, closed) and its Jacobian for 18 states (q, v, p_1, p_2, Q_1, Q_2)."""
    y, u, closed = ca.SX.sym('y', 18), ca.SX.sym('u', 3), ca.SX.sym('closed', 3)
    q, v, p1, p2, q1, q2 = (y[3 * k : 3 * k + 3] for k in range(6))
    # Lines that lack oil have the vapour pressure.
    c1, c2 = (p1, p2) if as_printed else (ca.fmax(p1, 0), ca.fmax(p2, 0))
    acceleration = equations(p)
    x = lengths(p, q)
    arms = ca.diag(ca.jacobian(x, q)[:, 1:])
    speeds = arms * v[1:]
    motor = p.swing_motor
    D = motor.displacement / (2 * np.pi) * motor.gear
    R = motor.line.resistance
    # Nodes e and f: what comes through the lines leaves by the motor and the leakages.
    pe, pf = ca.SX.sym('pe'), ca.SX.sym('pf')
    across = (pe - pf) / motor.leakage_across
    nodes = ca.vertcat(
        (c1[0] - pe) / R - D * v[0] - across - pe / motor.leakage_tank,
        D * v[0] + across - pf / motor.leakage_tank - (pf - c2[0]) / R,
    )
    ports = ca.vertcat(pe, pf)
    solved = ca.solve(ca.jacobian(nodes, ports), -ca.substitute(nodes, ports, ca.SX.zeros(2)))
    into = ca.vertcat((c1[0] - solved[0]) / R)
    out = ca.vertcat((solved[1] - c2[0]) / R)
    torques = [D * (solved[0] - solved[1]) - p.swing.viscous * v[0]]
    for k, cylinder in ((0, p.boom_cylinder), (1, p.stick_cylinder)):
        in_k, out_k = cylinder.head_area * speeds[k], cylinder.rod_area * speeds[k]
        head = c1[k + 1] - cylinder.line.resistance * in_k * ca.fabs(in_k)
        rod = c2[k + 1] + cylinder.line.resistance * out_k * ca.fabs(out_k)
        force = cylinder.head_area * head - cylinder.rod_area * rod - cylinder.viscous * speeds[k]
        torques.append(arms[k] * (force + at_stops(p, cylinder, x[k], speeds[k])))
        into, out = ca.vertcat(into, in_k), ca.vertcat(out, out_k)
    rates = [v, acceleration(q, v, ca.vertcat(*torques))[0]]
    dp1, dp2, dq1, dq2 = [], [], [], []
    rail = p.supply_pressure
    if p.pump:
        given = 0
        for k in range(3):
            taken = ca.if_else(u[k] > 0, q1[k], -q2[k])
            given += ca.if_else(closed[k], 0, taken)
        share = given / p.pump.flow
        rail -= p.pump.band * share / ca.sqrt(1 - share**2)
    for k, name in enumerate(JOINTS):
        valve, line = parts(p, name).valve, parts(p, name).line
        s = ca.fmax((ca.fabs(u[k]) - valve.dead_band) / (1 - valve.dead_band), valve.least)
        resistances = (valve.resistance, valve.resistance_2 or valve.resistance)
        pump = u[k] > 0
        side1 = ca.if_else(pump, rail, p.tank_pressure)
        side2 = ca.if_else(pump, p.tank_pressure, rail)
        drop1 = side1 - c1[k]
        drop2 = c2[k] + side2 if as_printed else c2[k] - side2
        is_open = 1 - closed[k] if switching else 1
        head, rod = at_ports(p, name, c1[k], 'head'), at_ports(p, name, c2[k], 'rod')
        dp1.append((is_open * q1[k] - into[k] + head) / line.capacitance)
        dp2.append((out[k] - is_open * q2[k] + rod) / line.capacitance)
        for drop, flow, found, full in zip(
            (drop1, drop2), (q1[k], q2[k]), (dq1, dq2), resistances, strict=True
        ):
            C_R = full / s**2
            # With a slope, for the Jacobian, where a line that lacks oil meets the tank.
            residual = ca.sign(drop) * ca.sqrt(ca.fabs(drop) / C_R + 1e-30)
            moving = (drop - C_R * flow * ca.fabs(flow)) / line.inertance
            found.append(ca.if_else(is_open, moving, (residual - flow) / valve.residual_time))
    f = ca.vertcat(*rates, *dp1, *dp2, *dq1, *dq2)
    return (
        ca.Function('f', [y, u, closed], [f]),
        ca.Function('J', [y, u, closed], [ca.jacobian(f, y)]),
    )


def at_stops(p, cylinder, length, speed):
    """Return the force of springs at both ends of a stroke, k b (1 + c b'), none that pull."""
    force = 0
    for beyond, way in (
        (cylinder.linkage.retracted - length, 1),
        (length - cylinder.linkage.retracted - cylinder.stroke, -1),
    ):
        share = ca.fmax(1 - p.stops.loss * way * speed, 0)
        force += way * p.stops.stiffness * ca.fmax(beyond, 0) * share
    return force


def at_ports(p, name, pressure, side):
    """Return the flow through relief and make-up valve into a line as an expression."""
    relief, make_up, flow = parts(p, name).relief, parts(p, name).make_up, 0

    def opened(excess, valve):
        x = ca.fmin(ca.fmax(excess / valve.override, 0), 1)
        return valve.area * (3 * x**2 - 2 * x**3)

    def root(drop):
        return drop / (drop**2 + p.oil.laminar_pressure**2) ** 0.25

    if relief:
        area = opened(pressure - getattr(relief, side), relief)
        flow -= p.oil.contraction * area * np.sqrt(2 / p.oil.density) * root(
            pressure - p.tank_pressure
        )  # fmt: skip
    if make_up:
        feed = p.tank_pressure if make_up.supply is None else make_up.supply
        area = opened(feed - make_up.cracking - pressure, make_up)
        flow += p.oil.contraction * area * np.sqrt(2 / p.oil.density) * root(feed - pressure)
    return flow


def parts(p, name):
    return {'swing': p.swing_motor, 'boom': p.boom_cylinder, 'stick': p.stick_cylinder}[name]


def at_rest(p, scenario):
    """Return the state at time 0: weight in the head sides."""
    q, v = symbols()
    weights = np.array(
        ca.Function('w', [q], [ca.gradient(energies(p, q, v)[1], q)])(ca.DM(scenario.angles))
    ).ravel()
    x = ca.Function('x', [q], [ca.diag(ca.jacobian(lengths(p, q), q)[:, 1:])])
    arms = np.array(x(ca.DM(scenario.angles))).ravel()
    y = np.zeros(18)
    y[:3] = scenario.angles
    y[[6, 9]] = scenario.swing_pressure
    for k, cylinder in ((1, p.boom_cylinder), (2, p.stick_cylinder)):
        force = weights[k] / arms[k - 1]
        y[9 + k] = scenario.rod_pressure
        y[6 + k] = (force + cylinder.rod_area * scenario.rod_pressure) / cylinder.head_area
    return y


def solve(p, scenario, times, *, switching=True, as_printed=False, tolerance=1e-10):
    """Return the states at times, (rows, 18)."""
    f, jacobian = right_hand_side(p, switching, as_printed)
    spools = {name: getattr(scenario.spools, name) for name in JOINTS}
    scale = np.array([1, 1, 1, 1, 1, 1, *[1e7] * 6, *[1e-3] * 6])
    y = at_rest(p, scenario)
    rows = []
    edges = instants(p, spools, float(times[-1]))
    for begin, end in itertools.pairwise(edges):
        middle = [spool_at(spools[name], (begin + end) / 2) for name in JOINTS]
        closed = [
            float(abs(u) <= parts(p, name).valve.dead_band)
            for u, name in zip(middle, JOINTS, strict=True)
        ]
        first = np.array([spool_at(spools[name], begin + 1e-9 * (end - begin)) for name in JOINTS])
        slope = (np.array(middle) - first) / ((end - begin) / 2)
        done = solve_ivp(
            lambda t, z: np.asarray(f(z * scale, first + slope * (t - begin), closed)).ravel() / scale,  # noqa: B023, E501
            (begin, end),
            y / scale,
            method='Radau',
            rtol=tolerance,
            atol=tolerance,
            first_step=1e-7,
            dense_output=True,
            jac=lambda t, z: np.asarray(jacobian(z * scale, first + slope * (t - begin), closed)) * scale / scale[:, None],  # noqa: B023, E501
        )  # fmt: skip
        assert done.success, done.message
        inside = [t for t in times if begin <= t < end or t == end == edges[-1]]
        rows += [done.sol(t) * scale for t in inside]
        y = done.y[:, -1] * scale
    return np.array(rows)
