"""The equations of flexible links, for linear models."""

from __future__ import annotations

import numpy as np

from longreach_machine.linear import Signal, SmoothModel
from longreach_symbolic.links import chord_ends
from longreach_symbolic.machine import FlexibleLinks, State, joint_names


def smooth_model(machine: FlexibleLinks, state: State) -> SmoothModel:
    """
    Return the equations of links near a state, brakes open.

    Inputs are the torques of the motors. States are joint angles and deflections with their rates.
    """
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
        return np.concatenate([x, angles, u, tip])

    torques = [Signal(f'torque_{i}', 'N m') for i in range(1, N + 1)]
    return SmoothModel(
        tuple(states),
        tuple(torques),
        (*states, *motors, *torques, *ends),
        state.x.copy(),
        np.array(state.torques, dtype=float),
        controller.rates,
        observe,
    )
