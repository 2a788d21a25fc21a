"""A slow simulation with located events, Henikl 2015, (26), (27); it shares ``evaluate`` alone."""

import functools

import numpy as np
from scipy.integrate import solve_ivp

from longreach_boom.motion import evaluate
from longreach_dynamics.hydraulics.friction import (
    AT_HEAD_END,
    AT_ROD_END,
    INWARDS,
    OUTWARDS,
    STUCK,
)
from longreach_dynamics.linkages import piston_and_arm
from longreach_machine.machine import step_time

# Far more than in any run; a larger number shows an error in the modes.
_MOST_CHANGES = 100_000
# Two events of one piston within a step are missed.
_LONGEST_STEP = 5e-3


class Phase:
    """The boom between two events, with constant modes, commands and loads."""

    def __init__(self, constants, modes, spools):
        self.constants, self.modes, self.spools = constants, modes, spools
        N, F = constants.length.size, constants.functions
        self._n = N * (1 + F)
        rows = self._n + (0 if constants.truck is None else 2)
        self._M, self._f = np.empty((rows, rows)), np.empty(rows)
        self._known = None

    @property
    def held(self):
        """Whether each piston is held, shape (N,) of bool."""
        return np.asarray(np.abs(self.modes) != 1)

    def derivative(self, t, y):
        """Return the time derivative of the state, shape (2 n + 3 N,)."""
        dy = np.empty(y.size)
        evaluate(y, self.modes, self.spools, self.constants, self._M, self._f, dy)
        return dy

    def net_forces(self, y):
        """Return p_1 A_1 - p_2 A_2 minus the holding force, (26), shape (N,) [N]."""
        key = y.tobytes()
        if self._known is None or self._known[0] != key:
            p = self.constants
            N, n = p.length.size, self._n
            rates = self.derivative(0.0, y)
            truck = rates[:0] if p.truck is None else rates[-2:]
            acceleration = np.concatenate([rates[n : 2 * n], truck])
            arms = np.array([piston_and_arm(p.linkage, i, y[i])[1] for i in range(N)])
            needed = (self._M[:N] @ acceleration + self._f[:N]) / arms
            a = p.actuators
            head, rod = np.maximum(y[2 * n : 2 * n + 2 * N].reshape(2, N), a.vapour)
            self._known = key, head * a.head_area - rod * a.rod_area - needed
        return self._known[1]

    def stopped(self, y):
        """Return the state after impulses have stopped all held pistons."""
        self.derivative(0.0, y)
        n, rows = self._n, self._f.size
        held = np.concatenate([self.held, np.zeros(rows - self.held.size, dtype=bool)])
        after, last = y.copy(), y.size - (rows - n)
        v = np.concatenate([y[n : 2 * n], y[last:]])
        coupled = self._M[np.ix_(~held, held)] @ v[held]
        v[~held] += np.linalg.solve(self._M[np.ix_(~held, ~held)], coupled)
        v[held] = 0.0
        after[n : 2 * n], after[last:] = v[:n], v[n:]
        return after

    def loosened(self, y):
        """Return the phase after releasing pistons that friction or an end cannot hold, (27)."""
        phase = self
        while True:
            excess = phase._excess(phase.net_forces(y))
            worst = int(np.argmax(np.abs(excess)))
            if excess[worst] == 0.0:
                return phase
            modes = phase.modes.copy()
            modes[worst] = OUTWARDS if excess[worst] > 0.0 else INWARDS
            # A released piston changes the forces on the others: check all again.
            phase = Phase(self.constants, modes, self.spools)

    def _excess(self, net):
        """Return the signed excess of the forces on held pistons [N], shape (N,)."""
        static, held, modes = self.constants.actuators.static, self.held, self.modes
        outwards = np.where(held & (modes != AT_ROD_END), np.maximum(net - static, 0.0), 0.0)
        inwards = np.where(held & (modes != AT_HEAD_END), np.minimum(net + static, 0.0), 0.0)
        return outwards + inwards

    def margin(self, t, y, piston, mode):
        """Return the event function, which rises through zero when a piston changes to a mode."""
        p = self.constants
        if mode == STUCK:
            return float(-self.modes[piston] * y[self._n + piston])
        if mode in (AT_ROD_END, AT_HEAD_END):
            position = float(piston_and_arm(p.linkage, piston, y[piston])[0])
            return position - p.actuators.stroke[piston] if mode == AT_ROD_END else -position
        return float(mode * self.net_forces(y)[piston] - p.actuators.static[piston])

    def changes(self):
        """Return all events that can end the phase: (piston, next mode)."""
        found = []
        for i, mode in enumerate(self.modes.tolist()):
            if self.held[i]:
                blocked = {AT_ROD_END: OUTWARDS, AT_HEAD_END: INWARDS}.get(mode)
                found += [(i, new) for new in (OUTWARDS, INWARDS) if new != blocked]
            else:
                found += [(i, AT_ROD_END), (i, AT_HEAD_END)]
                # Without static friction no piston sticks, and its direction does not matter.
                found += [(i, STUCK)] if self.constants.actuators.static[i] > 0.0 else []
        return found

    def solve(self, time, end, y, times, **options):
        """Integrate to ``end`` or the first event; return SciPy's result and :meth:`changes`."""
        events, changes = [], self.changes()
        for piston, mode in changes:
            event = functools.partial(self.margin, piston=piston, mode=mode)
            event.terminal, event.direction = True, 1.0
            events.append(event)
        options |= {'t_eval': np.union1d(times, [end]), 'max_step': _LONGEST_STEP}
        # From a non-finite derivative SciPy would not terminate.
        assert np.all(np.isfinite(self.derivative(time, y)))
        solution = solve_ivp(self.derivative, (time, end), y, events=events, **options)
        assert solution.status >= 0, solution.message
        return solution, changes


def reference_run(boom, times, relative=1e-10, absolute=1e-12):
    """Return states (rows, 2 n + 3 N) and modes (rows, N) at times, before what changes then."""
    times = np.asarray(times, dtype=float)
    state = boom.initial_state()
    y, modes, loads = state.y, state.modes, state.loads
    spools = np.zeros(modes.size)
    states = np.tile(y, (times.size, 1))
    mode_table = np.tile(modes, (times.size, 1))
    commands = {round(c.time / boom.step): c.spools for c in boom.scenario.valve_commands}
    changes = boom.scenario.load_changes(boom.parameters)
    steps = {0, *commands, *(round(time / boom.step) for time, _ in changes)}
    edges = [k for k in sorted(steps) if step_time(k, boom.step) < times[-1]]
    ends = [*(step_time(k, boom.step) for k in edges[1:]), float(times[-1])]
    options, count = {'method': 'DOP853', 'rtol': relative, 'atol': absolute}, 0
    for edge, end in zip(edges, ends, strict=True):
        time = step_time(edge, boom.step)
        for at, load in changes:
            if round(at / boom.step) == edge:
                loads = () if load is None else (*loads, load)
        spools = np.array(commands.get(edge, spools), dtype=float)
        phase = Phase(boom.constants(loads), modes, spools).loosened(y)
        while time < end:
            asked = times[(times > time) & (times <= end)]
            solution, possible = phase.solve(time, end, y, asked, **options)
            # The solution contains the end even when it is not among the requested times.
            reached = min(len(solution.t), asked.size)
            if reached:
                rows = np.searchsorted(times, asked[:reached])
                states[rows], mode_table[rows] = solution.y.T[:reached], phase.modes
            if solution.status == 0:
                y = solution.y[:, -1]
                break
            count += 1
            assert count <= _MOST_CHANGES, time
            modes = phase.modes.copy()
            for (piston, mode), at, there in zip(
                possible, solution.t_events, solution.y_events, strict=True
            ):
                if at.size:
                    time, y, modes[piston] = float(at[0]), there[0], mode
            phase = Phase(phase.constants, modes, spools)
            y = phase.stopped(y)
            phase = phase.loosened(y)
        modes = phase.modes
    return states, mode_table
