"""
PID controllers of joints whose outputs are voltages of proportional valves, as compiled code.

For each joint, with the error e = reference - angle at each cycle of the interval T,

    volts = K_f r' + K_p e + I + K_d e',    I grows by K_i e T,

bounded, with the rate r' of the reference since the cycle before, and that of the error, e',
behind a low pass: e' grows by ((e - e_before) / T - e') T / (T_d + T). The integral has a bound of
its own, and does not grow while the output is at its bound and the error would drive it further
(conditional integration). Volts are a share of full_volts; beyond ``smallest`` of them the spool
jumps over the dead band of its valve,

    spool = sign(share) (dead_band + (1 - dead_band) |share|),

below it is closed. An open valve closes only below ``closing``, so that noise does not open and
close it again and again.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

import numpy as np

from longreach_dynamics.kernels import kernel
from longreach_dynamics.parameters import Parameters, quantity


@dataclasses.dataclass(frozen=True)
class ValvePidParameters(Parameters):
    """The controller of one joint."""

    # Else the valve would open and close in turns.
    relations = ('closing <= smallest',)

    proportional: float = quantity('voltage per error, K_p', 'V/rad', at_least=0.0, at_most=1e5)
    integral: float = quantity('its growth per error, K_i', 'V/(rad s)', at_least=0.0, at_most=1e5)
    derivative: float = quantity(
        'voltage per rate of the error, K_d', 'V s/rad', at_least=0.0, at_most=1e5
    )
    derivative_time: float = quantity(
        'time constant of the low pass of that rate, T_d',
        's',
        at_least=0.0,
        at_most=10.0,
        default=0.0,
        kw_only=True,
    )
    feed_forward: float = quantity(
        'voltage per rate of the reference, K_f', 'V s/rad', at_least=0.0, at_most=1e5
    )
    limit: float = quantity('largest voltage', 'V', above=0.0, at_most=1e3)
    integral_limit: float = quantity('largest I', 'V', at_least=0.0, at_most=1e3)
    full_volts: float = quantity(
        'voltage of the full stroke of the spool', 'V', above=0.0, at_most=1e3
    )
    smallest: float = quantity(
        'share of full_volts below which the valve stays closed', at_least=0.0, below=1.0
    )
    closing: float | None = quantity(
        'share below which an open valve closes; left out: smallest',
        at_least=0.0,
        below=1.0,
        default=None,
        kw_only=True,
    )


def pid_table(
    controllers: Sequence[ValvePidParameters], dead_bands: Sequence[float]
) -> np.ndarray:
    """Return the controllers in numbers, in the order of their fields, and bands, by joint."""
    rows = []
    for controller, band in zip(controllers, dead_bands, strict=True):
        numbers = dataclasses.asdict(controller)
        if controller.closing is None:
            numbers['closing'] = controller.smallest
        rows.append([*numbers.values(), band])
    return np.array(rows)


def new_memory(joints: int) -> np.ndarray:
    """Return the memory before the first cycle (5, N): I, last error, reference, rate, spool."""
    nothing = np.full(joints, np.nan)
    return np.array([np.zeros(joints), nothing, nothing, np.zeros(joints), np.zeros(joints)])


@kernel
def pid_cycle(angles, references, memory, table, interval, spools):  # type: ignore[no-untyped-def]
    """Write spools (N,) and memory after a cycle [s]; a reference of NaN closes the valve."""
    for i in range(spools.size):
        if math.isnan(references[i]):
            spools[i], memory[0, i], memory[1, i], memory[2, i] = 0.0, 0.0, np.nan, np.nan
            memory[3, i] = memory[4, i] = 0.0
            continue
        K_p, K_i, K_d, T_d, K_f, limit, most, full, smallest, closing, band = table[i]
        e, before = references[i] - angles[i], memory[1, i]
        wanted = K_p * e + memory[0, i]
        if not math.isnan(before):
            rate, share = (e - before) / interval, interval / (T_d + interval)
            memory[3, i] += share * (rate - memory[3, i])
            wanted += K_d * memory[3, i]
            wanted += K_f * (references[i] - memory[2, i]) / interval
        volts = min(max(wanted, -limit), limit)
        if volts == wanted or e * wanted <= 0.0:
            memory[0, i] = min(max(memory[0, i] + K_i * e * interval, -most), most)
        memory[1, i], memory[2, i] = e, references[i]
        share = min(max(volts / full, -1.0), 1.0)
        least = closing if memory[4, i] * share > 0.0 else smallest
        spools[i] = 0.0
        if abs(share) > least:
            spools[i] = math.copysign(band + (1.0 - band) * abs(share), share)
        memory[4, i] = spools[i]
