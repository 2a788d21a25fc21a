"""The excavator against Lagrange by CasADi, cylinders by the law of cosines, oil as amounts."""

import math

import casadi as ca
import numpy as np
import pytest
from scipy.integrate import solve_ivp

from longreach_excavator.columns import OBSERVED
from longreach_excavator.constants import constants_of
from longreach_excavator.linkage import CYLINDERS
from longreach_excavator.machine import Excavator
from longreach_excavator.motion import HEAD, RATE, ROD, SEAL, SIZE, SOIL, SPOOL, WORK, evaluate
from longreach_excavator.observation import NOTHING, energy, observe
from longreach_excavator.scenario import Scenario, dig_scenario
from longreach_excavator.soil import wedge_factors
from longreach_machine.machine import BY_SCENARIO
from longreach_machine.scenarios import ValveCommand

CLOSED = (0.0, 0.0, 0.0)
OIL = (1.0, 1.0, 1.0)
# (5.8) to (5.10) as printed, and which way they count.
PRINTED = np.array(
    [
        [304693.0, -82794.0, 203089.0, -174147.0, 55726.0, -8025.2, 432.22],
        [143365.0, 261122.0, -124023.0, 21511.0, 990.47, -740.01, 55.87],
        [-305709.0, 51376.0, -45741.0, 20582.0, -5343.7, 695.16, -33.321],
    ]
)
COMPRESSION = np.array([-1.0, 1.0, -1.0])


def printed(t):
    """Return the thesis' forces [N], positive extends."""
    return COMPRESSION * (PRINTED @ t ** np.arange(7.0))


def side(one, two, angle):
    """Return the third side of a triangle."""
    return ca.sqrt(one**2 + two**2 - 2.0 * one * two * ca.cos(angle))


class Lagrange:
    """An excavator as a CasADi function, with amounts of oil [m^3] in place of pressures."""

    def __init__(self, excavator, surface, joint=math.nan):
        x = self.excavator = excavator
        q, v, amount = ca.SX.sym('q', 3), ca.SX.sym('v', 3), ca.SX.sym('m', 6)
        spool, s, work = ca.SX.sym('u', 3), ca.SX.sym('s', 2), ca.SX.sym('w', 5)
        shear, shearing, lugs = ca.SX.sym('b', 3), [], []
        told, given, oil = ca.SX.sym('c', 3), ca.SX.sym('F', 3), ca.SX.sym('o', 3)
        angle = ca.cumsum(q)
        kinetic, potential, place = 0.0, 0.0, ca.SX.zeros(2)
        for i, link in enumerate((x.boom, x.arm, x.bucket)):
            way = angle[i] + math.radians(link.center_deg)
            center = place + link.center * ca.vertcat(ca.cos(way), ca.sin(way))
            moving = ca.jtimes(center, q, v)
            kinetic += 0.5 * link.mass * ca.dot(moving, moving)
            kinetic += 0.5 * link.inertia * ca.jtimes(angle[i], q, v) ** 2
            potential += link.mass * x.gravity * center[1]
            inboard = place[1] if i == 2 else None
            place = place + link.length * ca.vertcat(ca.cos(angle[i]), ca.sin(angle[i]))
        momentum = ca.gradient(kinetic, v)
        bias = ca.jtimes(momentum, q, v) - ca.gradient(kinetic, q) + ca.gradient(potential, q)
        lengths = ca.vertcat(*self.lengths(q))
        rates = ca.jtimes(lengths, q, v)
        forces, pins, lost, volumes, inflows = [], [], 0.0, [[], []], [[], []]
        for i, c in enumerate(x.cylinders):
            out = lengths[i] - c.retracted
            areas = self._areas(i)
            rooms = (c.dead_length + out, c.dead_length + c.stroke - out)
            pressures = []
            for k in (0, 1):
                volumes[k].append(c.line_volume + areas[k] * rooms[k])
                stretched = ca.log(amount[3 * k + i] / volumes[k][i])
                pressures.append(ca.fmax(x.oil.bulk_modulus * stretched, x.oil.vapour_pressure))
                flow = self._inflow(c.valve, spool[i], k, pressures[k])
                flow -= c.leakage * (pressures[k] - x.oil.tank_pressure)
                # What a valve measures is compressed.
                amount_rate = flow * ca.exp(pressures[k] / x.oil.bulk_modulus)
                inflows[k].append(oil[i] * amount_rate)
            push = pressures[0] * areas[0] - pressures[1] * areas[1]
            forces.append(ca.if_else(oil[i] > 0.5, push, given[i]))
            held, travel = (c.seals.coulomb, c.seals.travel) if c.seals else (0.0, 0.1)
            rubbing = c.viscous * rates[i] + held * shear[i]
            shearing.append((rates[i] - ca.fabs(rates[i]) * shear[i]) / travel)
            low, high, lever = x.lugs()[i]
            stop, drain = self._stops(out, rates[i], c.stroke)
            lug, more = self._stops(lever * (q[i] - low), lever * v[i], lever * (high - low))
            lugs.append(lever * lug)
            pins.append(forces[i] + stop - rubbing)
            lost += rubbing * rates[i] + drain + more
        counted = joint if math.isfinite(joint) else inboard
        edge = counted + x.soil.sweep_radius * ca.sin(angle[2])
        depth = max(surface, -1e3) - edge
        soil = -self._resistance(ca.fmax(depth, 0.0)) * s
        tooth = ca.jtimes(place, q, v)
        load = ca.jtimes(lengths, q, ca.vertcat(*pins), True) + ca.jtimes(place, q, soil, True)
        load += ca.vertcat(*lugs)
        turning = ca.solve(ca.jacobian(momentum, v), load - bias)
        rate = ca.vertcat(
            v,
            turning,
            *inflows[0],
            *inflows[1],
            *(
                oil[i] * (told[i] - spool[i]) / c.valve.time_constant
                for i, c in enumerate(x.cylinders)
            ),
            (tooth - ca.norm_2(tooth) * s) / x.soil.shear_displacement,
            *shearing,
            ca.vertcat(*forces) * rates,
            -ca.dot(soil, tooth),
            lost,
        )
        y = ca.vertcat(q, v, amount, spool, s, shear, work)
        self.rate = ca.Function('rate', [y, told, given, oil], [rate])
        full = ca.vertcat(*volumes[0], *volumes[1])
        self.volumes = ca.Function('volumes', [q, v], [full, ca.jtimes(full, q, v)])
        self.energy = ca.Function('energy', [q, v], [kinetic, potential])
        seen = [turning, lengths, ca.vertcat(*forces), ca.vertcat(*pins), soil, depth, place]
        self.seen = ca.Function('seen', [y, told, given, oil], [ca.vertcat(*seen)])

    def lengths(self, q):
        """Return the cylinders' lengths by the law of cosines; the thesis' (A.1) to (A.8)."""
        boom, arm, bucket = self.excavator.boom, self.excavator.arm, self.excavator.bucket
        lhe, lah = self.excavator.chassis.lhe, self.excavator.chassis.lah
        b2, b5, b6, b8 = np.radians(
            [boom.beta_2_deg, arm.beta_5_deg, arm.beta_6_deg, bucket.beta_8_deg]
        )
        eab = math.atan2(lah, lhe) + q[0] + b2 + math.radians(boom.beta_3_deg)
        leb = side(math.hypot(lhe, lah), boom.lab, eab)
        along, across = boom.length - boom.lai * math.cos(b2), boom.lai * math.sin(b2)
        icf = math.pi - math.atan2(across, along) - q[1] - b5 - b6 - math.radians(arm.beta_7_deg)
        lif = side(math.hypot(along, across), arm.lcf, icf)
        along, across = arm.length - arm.lcl * math.cos(b5), arm.lcl * math.sin(b5)
        lld, cdl = math.hypot(along, across), math.atan2(across, along)
        ldp = math.pi - cdl - b8 - q[2]
        llp = side(lld, bucket.ldp, ldp)
        dlp = ca.atan2(bucket.ldp * ca.sin(ldp), lld - bucket.ldp * ca.cos(ldp))
        plk = ca.acos((bucket.llk**2 + llp**2 - bucket.lpk**2) / (2.0 * bucket.llk * llp))
        along, across = arm.lcl - arm.lcj * math.cos(b6), arm.lcj * math.sin(b6)
        jlk = math.pi + b5 - (dlp + plk - cdl) - math.atan2(across, along)
        return leb, lif, side(math.hypot(along, across), bucket.llk, jlk)

    def _areas(self, i):
        c = self.excavator.cylinders[i]
        piston, rod = (c.count * math.pi * (0.5 * d) ** 2 for d in (c.bore, c.rod))
        return piston, piston - rod

    def _inflow(self, valve, spool, chamber, pressure):
        """Return the flow into a chamber: from the supply, or to the tank."""
        oil = self.excavator.oil
        share = ca.fmin(
            ca.fmax((ca.fabs(spool) - valve.dead_band) / (1.0 - valve.dead_band), 0), 1
        )
        opening = valve.area * share * (valve.area_ratio if chamber else 1.0)
        other = ca.if_else(
            spool > 0.0, *[oil.supply_pressure, oil.tank_pressure][:: 1 - 2 * chamber]
        )
        drop = other - pressure
        speed = drop / (drop**2 + oil.laminar_pressure**2) ** 0.25 * math.sqrt(2.0 / oil.density)
        return oil.contraction * opening * speed

    def _stops(self, out, rate, stroke):
        """Return force and loss of the stops at both ends of a stroke."""
        stops, force, drain = self.excavator.stops, 0.0, 0.0
        for deep, sinking, way in ((-out, -rate, 1.0), (out - stroke, rate, -1.0)):
            spring = stops.stiffness * ca.fmax(deep, 0.0)
            total = spring * ca.fmax(1.0 + stops.loss * sinking, 0.0)
            force += way * total
            drain += (total - spring) * sinking
        return force, drain

    def _resistance(self, depth):
        soil = self.excavator.soil
        if soil.law == 'zelenin':
            return soil.zelenin.factor * soil.cohesion * depth**soil.zelenin.exponent
        blade = soil.earthmoving
        n_gamma, n_c, n_q, n_ca = wedge_factors(blade)
        stuck = soil.cohesion * n_c + blade.surcharge * n_q + blade.adhesion * n_ca
        return blade.width * (blade.unit_weight * depth**2 * n_gamma + depth * stuck)

    def from_pressures(self, y):
        """Return a state (SIZE,) with amounts of oil from one with pressures."""
        z = y.copy()
        z[HEAD:SPOOL] = self.room(y)[0] * np.exp(y[HEAD:SPOOL] / self.excavator.oil.bulk_modulus)
        return z

    def to_pressures(self, z):
        """Return a state (SIZE,) with pressures from one with amounts of oil."""
        y = z.copy()
        stretched = np.log(z[HEAD:SPOOL] / self.room(z)[0])
        y[HEAD:SPOOL] = self.excavator.oil.bulk_modulus * stretched
        return y

    def room(self, y):
        """Return the volumes of the chambers [m^3] and their rates [m^3/s], (2, 6)."""
        return np.array([part.full().ravel() for part in self.volumes(y[:RATE], y[RATE:HEAD])])

    def run(self, y, times, spools, given=None, oil=OIL):
        """Return states (times, SIZE) from a state with pressures on; the tolerance is 1e-10."""
        buffer, call = self.rate.buffer()
        arrays = [np.zeros(SIZE), np.array(spools), np.zeros(3), np.array(oil), np.zeros(SIZE)]
        for k, array in enumerate(arrays[:4]):
            buffer.set_arg(k, memoryview(array))
        buffer.set_res(0, memoryview(arrays[4]))

        def rate(t, z):
            arrays[0][:] = z
            if given is not None:
                arrays[2][:] = given(t)
            call()
            return arrays[4].copy()

        scale = np.full(SIZE, 1e-3)
        scale[SPOOL:WORK], scale[WORK:] = 1.0, 1e3
        found = solve_ivp(
            rate, (times[0], times[-1]), self.from_pressures(y), 'DOP853', times,
            rtol=1e-10, atol=1e-10 * scale, max_step=0.05,
        )  # fmt: skip
        assert found.success, found.message
        return np.array([self.to_pressures(z) for z in found.y.T])


def lagrange(machine):
    medium = machine.constants.medium
    return Lagrange(machine.parameters, medium.surface, medium.joint)


def dig(machine, rows):
    """Return states of a dig at every 10 ms, by the machine and by the reference."""
    start = machine.initial_state()
    _, table = machine.advance_recorded(start, BY_SCENARIO, 0, 10 * (rows - 1), 10)
    other, times = lagrange(machine), 0.01 * np.arange(rows)
    states = other.run(start.y, times, (0.0, 0.0, 1.0))
    turned = states[0, :RATE].sum() - states[:, :RATE].sum(axis=1)
    swept = np.flatnonzero(turned >= math.radians(machine.scenario.sweep_deg))
    if swept.size and swept[0] < rows - 1:
        k = swept[0]
        states = np.concatenate([states[:k], other.run(states[k], times[k:], CLOSED)])
    return np.concatenate([start.y[None], table]), states


def random_states(random, excavator, count):
    """Return states with pistons beyond stops, missing oil, and soil half mobilised."""
    low, high = excavator.joint_limits().T
    edge = 0.01 * (high - low)
    y = np.zeros((count, SIZE))
    y[:, :RATE] = random.uniform(low - edge, high + edge, (count, 3))
    y[:, RATE:HEAD] = random.normal(0.0, 1.0, (count, 3))
    y[:, HEAD:SPOOL] = random.uniform(-50e5, 300e5, (count, 6))
    y[:, SPOOL:SOIL] = random.uniform(-1.0, 1.0, (count, 3))
    y[:, SOIL:SEAL] = random.normal(0.0, 0.5, (count, 2))
    y[:, SEAL:WORK] = random.uniform(-1.0, 1.0, (count, 3))
    return y


def check_equations(random, excavator, joint, count):
    """Compare rates, what is observed, and energies of random states."""
    states = random_states(random, excavator, count)
    turned = np.sin(np.cumsum(states[:, :RATE], axis=1))
    joints = turned[:, :2] @ [excavator.boom.length, excavator.arm.length]
    joints = np.where(math.isnan(joint), joints, joint)
    surface = float(np.median(joints + turned[:, 2] * excavator.soil.sweep_radius))
    constants, other = constants_of(excavator, surface, joint), Lagrange(excavator, surface, joint)
    parts = {'alpha_2': 3, 'length_boom': 3, 'force_boom': 3, 'pin_force_boom': 3, 'soil_x': 2}
    parts |= {'depth': 1, 'tip_x': 2}
    columns = [OBSERVED.index(name) + k for name, size in parts.items() for k in range(size)]
    depths = []
    for y in states:
        spools, oil = random.uniform(-1.0, 1.0, 3), random.random(3) < 0.7
        forces = np.where(oil, np.nan, random.normal(0.0, 3e5, 3))
        z = other.from_pressures(y)
        arguments = (z, spools, np.nan_to_num(forces), oil.astype(float))
        expected, rate = other.rate(*arguments).full().ravel(), np.empty(SIZE)
        # An amount of oil grows with pressure and with volume.
        volume, growth = other.room(y)
        squeezed = expected[HEAD:SPOOL] / z[HEAD:SPOOL] - growth / volume
        pressures = excavator.oil.bulk_modulus * squeezed
        expected[HEAD:SPOOL] = np.where(np.tile(oil, 2), pressures, 0.0)
        evaluate(y, spools, forces, constants, rate)
        size = np.repeat([1.0, 1.0, 1e8, 1.0, 1.0, 1.0, 1e5], [3, 3, 6, 3, 2, 3, 5])
        np.testing.assert_allclose(rate / size, expected / size, rtol=1e-9, atol=1e-10)
        seen, energies = np.empty((1, len(OBSERVED))), np.empty((1, 3))
        observe(y[None], forces[None], NOTHING, constants, seen)
        known = other.seen(*arguments).full().ravel()
        np.testing.assert_allclose(seen[0, columns], known, rtol=1e-9, atol=1e-8)
        energy(y[None], constants, energies)
        held = [float(part) for part in other.energy(y[:RATE], y[RATE:HEAD])]
        np.testing.assert_allclose(energies[0, :2], held, rtol=1e-12, atol=1e-8)
        depths.append(float(seen[0, OBSERVED.index('depth')]))
    assert min(depths) < 0.0 < max(depths)


@pytest.mark.slow
def test_equations_are_lagranges(excavator):
    check_equations(np.random.default_rng(11), excavator, math.nan, 200)


def test_equations_with_the_printed_depth(excavator):
    check_equations(np.random.default_rng(12), excavator, 1.3, 100)


def test_equations_of_other_machines(random_excavator):
    random = np.random.default_rng(13)
    for k in range(6):
        other = random_excavator(random)
        rubbing = [
            c.replace(seals={'coulomb': 1e5 * c.bore, 'travel': 1e-3}, leakage=1e-13)
            for c in other.cylinders
        ]
        other = other.with_value('soil.law', ('zelenin', 'earthmoving')[k % 2])
        other = other.replace(cylinders=rubbing)
        check_equations(random, other, math.nan, 30)


def check_states(found, expected, share=1.0):
    """
    Compare states to about the error of steps of 1 ms.

    It is made where a spool leaves its dead band or a piston meets its stop within a step: the
    surge is off by 1e-4 of its size, and dies away. Nothing grows from it.
    """
    error = np.abs(found - expected).max(axis=0)
    assert error[:RATE].max() < share * 2e-6  # [rad]: 20 um at the tooth
    assert error[RATE:HEAD].max() < share * 3e-4
    assert error[HEAD:SPOOL].max() < share * 3e3  # [Pa]
    assert error[SPOOL:SOIL].max() < share * 1e-8
    assert error[SOIL:SEAL].max() < share * 3e-4
    assert error[WORK:].max() < share * (0.05 + 2e-6 * np.abs(expected[:, WORK:]).max())  # [J]


@pytest.mark.slow
@pytest.mark.parametrize(
    ('cohesion', 'depth'), [(10e3, 'swing'), (17e3, 'swing'), (20e3, 'swing'), (17e3, 'surface')]
)
def test_hydraulic_dig(excavator, cohesion, depth):
    machine = Excavator(excavator, dig_scenario('hydraulic', cohesion, depth=depth))
    found, expected = dig(machine, 701)
    check_states(found, expected)
    # Something happened: the bucket turned, and the soil took much of the work.
    turned = expected[0, :RATE].sum() - expected[-1, :RATE].sum()
    assert turned > math.radians(35.0)
    assert expected[-1, WORK + 3] > 2e4


@pytest.mark.parametrize('depth', ['swing', 'surface'])
@pytest.mark.parametrize('cohesion', [10e3, 17e3, 20e3])
def test_printed_dig(excavator, cohesion, depth):
    scenario = dig_scenario('printed', cohesion, duration=0.2, depth=depth)
    machine = Excavator(excavator, scenario)
    start = machine.initial_state()
    _, table = machine.advance_recorded(start, BY_SCENARIO, 0, 200, 1)
    turned = start.y[:RATE].sum() - table[:, :RATE].sum(axis=1)
    rows = 1 + int(np.argmax(turned >= math.radians(scenario.sweep_deg)))
    assert rows > 100
    times = 1e-3 * np.arange(rows + 1)
    expected = lagrange(machine).run(start.y, times, CLOSED, printed, CLOSED)[1:]
    found = table[:rows].copy()
    # Oil that does not act is not followed.
    found[:, HEAD:SPOOL] = expected[:, HEAD:SPOOL] = 0.0
    check_states(found, expected)


def check_run(excavator, scenario):
    """Compare a run of a scenario without sweep, and return its states every 10 ms."""
    machine = Excavator(excavator, scenario)
    start, rows = machine.initial_state(), round(scenario.duration / 0.01)
    _, table = machine.advance_recorded(start, BY_SCENARIO, 0, rows * 10, 10)
    other, oil = lagrange(machine), [float(name not in scenario.loose) for name in CYLINDERS]
    edges = [round(command.time / 0.01) for command in scenario.valve_commands]
    spools = [command.spools for command in scenario.valve_commands]
    if not edges or edges[0] > 0:
        edges, spools = [0, *edges], [CLOSED, *spools]
    states = start.y[None]
    for first, last, told in zip(edges, [*edges[1:], rows], spools, strict=True):
        times = 0.01 * np.arange(first, last + 1)
        states = np.concatenate([states[:-1], other.run(states[-1], times, told, None, oil)])
    found = np.concatenate([start.y[None], table])
    found[:, HEAD:SPOOL] *= np.tile(oil, 2)
    states[:, HEAD:SPOOL] *= np.tile(oil, 2)
    check_states(found, states, 5.0)
    return found


def test_teleoperated_digging(excavator):
    commands = (
        ValveCommand(0.1, (-0.5, 0.3, 0.0)),
        ValveCommand(1.5, (-0.2, 0.8, 0.9)),
        ValveCommand(2.7, (1.0, 0.2, 0.7)),
        ValveCommand(3.5, (0.0, 0.0, -1.0)),
    )
    scenario = Scenario(duration=4.0, pose='reach', surface=-1.5, valve_commands=commands)
    found = check_run(excavator.with_value('soil.law', 'earthmoving'), scenario)
    assert found[-1, WORK + 3] > 1e3
    assert np.all(np.ptp(found[:, :RATE], axis=0) > 0.1)


def test_free_swing(excavator):
    scenario = Scenario(duration=2.0, pose_deg=(60.0, -100.0, -20.0), loose=CYLINDERS, soil=False)
    found = check_run(excavator, scenario)
    assert np.all(np.ptp(found[:, :RATE], axis=0) > 0.5)


def test_ends_of_strokes(excavator):
    commands = (ValveCommand(0.0, (-1.0, 1.0, -1.0)), ValveCommand(3.0, (0.0, -1.0, 1.0)))
    low, high = np.degrees(excavator.joint_limits().T)
    pose = (low[0] + 3.0, low[1] + 4.0, high[2] - 6.0)
    scenario = Scenario(duration=4.0, pose_deg=pose, soil=False, valve_commands=commands)
    found = check_run(excavator, scenario)
    lengths = excavator.linkage().lengths(found[:, :RATE])
    assert lengths[:, 0].min() < excavator.cylinders[0].retracted
    assert lengths[:, 1].max() > excavator.cylinders[1].extended
    assert lengths[:, 2].min() < excavator.cylinders[2].retracted


def test_missing_oil(excavator):
    # The boom falls faster than its rod side fills.
    narrow = excavator.with_value('cylinders.boom.valve.area_ratio', 0.1)
    commands = (ValveCommand(0.0, (-1.0, 0.0, 0.0)), ValveCommand(0.7, CLOSED))
    scenario = Scenario(duration=1.5, pose='reach', soil=False, valve_commands=commands)
    found = check_run(narrow, scenario)
    assert found[:, ROD].min() < -1e6


def test_other_machines(random_excavator):
    random = np.random.default_rng(21)
    for _ in range(4):
        spools = random.uniform(-1.0, 1.0, (3, 3))
        commands = [ValveCommand(0.4 * k, tuple(row)) for k, row in enumerate(spools.tolist())]
        scenario = Scenario(duration=1.2, pose='random', valve_commands=tuple(commands))
        check_run(random_excavator(random), scenario)
