"""The equations of flexible links, for linear models."""

from __future__ import annotations

import numpy as np

from longreach_machine.linear import Signal, SmoothModel
from longreach_symbolic.links import chord_ends
from longreach_symbolic.machine import FlexibleLinks, State, joint_names


def smooth_model(machine: FlexibleLinks, state: State) -> SmoothModel:
    """Return the equations of links near a state, brakes open, with a force at the tip [N]."""
    links, controller = machine.links, machine.controller
    n, N = links.size, len(links.links)

    names = joint_names(links)
    chords = [*names[:N], *names[2 * N :]]
    units = ['rad'] * N + ['m'] * (n - N)
    states = [Signal(*pair) for pair in zip(chords, units, strict=True)]
    states += [
        Signal(f'{name}_rate', f'{unit}/s') for name, unit in zip(chords, units, strict=True)
    ]
    motors = [Signal(name, 'rad') for name in names[N : 2 * N]]
    ends = [Signal('tip_x', 'm'), Signal('tip_z', 'm')]

    def observe(x: np.ndarray, u: np.ndarray) -> np.ndarray:
        angles, _ = controller.motors(x)
        tip = chord_ends(links, x[None, :N])[0, -1]
        return np.concatenate([x, angles, u[:N], tip])

    def rates(x: np.ndarray, u: np.ndarray) -> np.ndarray:
        ends = chord_ends(links, x[None, :N])[0]
        # Joints, and the arms from them to the tip, at right angles to which a joint moves it.
        arms = ends[-1] - np.vstack([np.zeros(2), ends[:-1]])
        moment = arms[:, 0] * u[N + 1] - arms[:, 1] * u[N]
        return controller.rates(x, u[:N], np.append(moment, np.zeros(n - N)))

    torques = [Signal(f'torque_{i}', 'N m') for i in range(1, N + 1)]
    return SmoothModel(
        tuple(states),
        (*torques, Signal('tip_force_x', 'N'), Signal('tip_force_z', 'N')),
        (*states, *motors, *torques, *ends),
        state.x.copy(),
        np.array([*state.torques, 0.0, 0.0]),
        rates,
        observe,
    )
