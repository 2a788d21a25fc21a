"""
Draw the sketches of crane and excavator with the symbols of their models, for docs/.

    python3 scripts/sketches.py crane|excavator FILE

The excavator is drawn from its installed parameter file, in the scale of its links.
"""

from __future__ import annotations

import cmath
import math
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

_INK, _MUTED, _FORCE, _ANGLE, _CYLINDER = '0.15', '0.55', 'tab:red', 'tab:blue', 'tab:orange'
# Pose of the excavator in the sketch: theta_2, theta_3, theta_4 [deg].
_POSE_DEG = (42.0, -95.0, -62.0)


@contextmanager
def _figure(file: Path, size: tuple[float, float], rows: int, columns: int) -> Iterator[Any]:
    """Yield axes of equal scale without ticks, and save the figure at the end of the block."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    with rc_context({'svg.hashsalt': 'longreach', 'svg.fonttype': 'path'}):
        canvas = Figure(figsize=size, layout='constrained')
        axes = canvas.subplots(rows, columns, squeeze=False)
        for axis in axes.flat:
            axis.set_aspect('equal')
            axis.axis('off')
        yield axes
        metadata = {'Date': None} if file.suffix == '.svg' else None
        canvas.savefig(file, dpi=110, metadata=metadata)


def _line(axis: Any, *points: complex, **style: Any) -> None:
    """Draw a polyline through points x + j z."""
    style = {'color': _INK, 'lw': 1.6, 'solid_capstyle': 'round'} | style
    axis.plot([p.real for p in points], [p.imag for p in points], **style)


def _pin(axis: Any, at: complex, name: str, off: complex, color: str = _INK) -> None:
    """Draw a pin with its name at an offset [points]."""
    axis.plot(at.real, at.imag, 'o', color='white', mec=color, ms=5, zorder=5)
    _text(axis, at, f'${name}$', off, color)


def _text(axis: Any, at: complex, text: str, off: complex = 0j, color: str = _INK) -> None:
    """Write a text at an offset [points] from a point."""
    axis.annotate(
        text,
        (at.real, at.imag),
        (off.real, off.imag),
        textcoords='offset points',
        ha='center',
        va='center',
        color=color,
        fontsize=11,
        bbox={'boxstyle': 'square,pad=0.08', 'fc': 'white', 'ec': 'none', 'alpha': 0.75},
        zorder=6,
    )


def _arrow(axis: Any, start: complex, end: complex, color: str = _INK, style: str = '->') -> None:
    """Draw an arrow from a point to another."""
    axis.annotate(
        '',
        (end.real, end.imag),
        (start.real, start.imag),
        arrowprops={'arrowstyle': style, 'color': color, 'lw': 1.2, 'shrinkA': 0, 'shrinkB': 0},
        zorder=4,
    )


def _size(axis: Any, a: complex, b: complex, text: str, shift: float, off: complex = 0j) -> None:
    """Draw a dimension from a to b, shifted to the left of a -> b by a distance."""
    side = 1j * (b - a) / abs(b - a) * shift
    for end in (a, b):
        _line(axis, end, end + 1.1 * side, color=_MUTED, lw=0.5)
    _arrow(axis, a + side, b + side, _MUTED, '<->')
    _text(axis, (a + b) / 2.0 + side, text, off)


def _arc(
    axis: Any, at: complex, first: float, last: float, radius: float, text: str, off: complex = 0j
) -> None:
    """Draw an angle [rad] about a point, from a direction to another, with an arrow head."""
    turns = np.linspace(first, last, 40)
    points = at + radius * np.exp(1j * turns)
    _line(axis, *points, color=_ANGLE, lw=1.0)
    _arrow(axis, points[-3], points[-1], _ANGLE)
    middle = at + 1.0 * radius * cmath.exp(0.5j * (first + last))
    _text(axis, middle, text, off, _ANGLE)


def draw_crane(file: Path) -> None:
    """Draw car, cable and load with state, forces and friction of the crane's model."""
    with _figure(file, (8.0, 5.0), 1, 1) as axes:
        axis = axes[0, 0]
        x, alpha, r = 3.0, math.radians(28.0), 2.6
        hook = complex(x, 0.0)
        load = hook + r * complex(math.sin(alpha), -math.cos(alpha))
        _line(axis, -0.6 + 0.34j, 7.2 + 0.34j, lw=2.5)
        for low, name in ((0.6, r'x_{min}'), (6.4, r'x_{max}')):
            _line(axis, low + 0.34j, low + 0.62j, lw=2.5)
            _text(axis, low + 0.62j, f'${name}$', 10j)
        box = [hook + c for c in (-0.55 - 0.16j, 0.55 - 0.16j, 0.55 + 0.16j, -0.55 + 0.16j)]
        axis.fill([p.real for p in box], [p.imag for p in box], fc='0.85', ec=_INK, zorder=3)
        for wheel in (-0.35, 0.35):
            axis.plot(x + wheel, 0.25, 'o', color=_INK, ms=8, zorder=4)
        _text(axis, hook - 0.3, '$m_c$')
        _line(axis, hook, hook - 2.9j, color=_MUTED, lw=0.8, ls='--')
        _line(axis, hook, load, lw=1.4)
        axis.plot(load.real, load.imag, 'o', color='0.85', mec=_INK, ms=24, zorder=4)
        _text(axis, load, '$m_l$')
        _text(axis, (hook + load) / 2.0, '$r$', 12 + 6j)
        _arc(axis, hook, -0.5 * math.pi, -0.5 * math.pi + alpha, 1.5, r'$\alpha$', -12j)
        _arrow(axis, hook + 0.55, hook + 1.6, _FORCE)
        _text(axis, hook + 1.6, '$f_c$', 12 + 0j, _FORCE)
        _arrow(axis, hook - 0.55, hook - 1.35, _FORCE)
        _text(axis, hook - 1.35, r"$d_c\,x_c'$", -20 + 0j, _FORCE)
        _arrow(axis, load + 0.27, load + 1.3, _FORCE)
        _text(axis, load + 1.3, '$f_d$', 12 + 0j, _FORCE)
        _arrow(axis, load - 0.27j, load - 1.0j, _FORCE)
        _text(axis, load - 1.0j, '$m_l\\,g$', 22 + 6j, _FORCE)
        _arrow(axis, load - 0.27, load - 0.95, _FORCE)
        _text(axis, load - 0.95, r'$d_l\,v_l$', -20 + 0j, _FORCE)
        # Origin and axes.
        _line(axis, 0.0 - 3.6j, 0.0 + 0.34j, color=_MUTED, lw=0.6)
        _arrow(axis, 0j, 0.8 + 0j)
        _text(axis, 0.8 + 0j, '$x$', 8 + 0j)
        _arrow(axis, 0j, 0.8j)
        _text(axis, 0.8j, '$z$', 8j)
        for to, level, text in (
            (hook, -3.05, '$x_c$'),
            (load, -3.55, '$x_l = x_c + r\\,\\sin\\alpha$'),
        ):
            _line(axis, to, complex(to.real, level - 0.08), color=_MUTED, lw=0.5)
            _arrow(axis, complex(0.0, level), complex(to.real, level), _MUTED)
            _text(axis, complex(0.5 * hook.real, level), text, 9j)
        axis.set_xlim(-0.8, 7.4)
        axis.set_ylim(-3.8, 1.2)


def draw_excavator(file: Path) -> None:
    """Draw the machine, and each link with its pins, lengths and angles."""
    from longreach_excavator.linkage import lever_pin
    from longreach_excavator.parameters import load_excavator

    excavator = load_excavator()
    pins = excavator.pins()
    q = [math.radians(angle) for angle in _POSE_DEG]
    boom = cmath.exp(1j * q[0])
    arm = boom * cmath.exp(1j * q[1])
    bucket = arm * cmath.exp(1j * q[2])
    C = pins.c * boom
    D = C + pins.d * arm
    K = C + arm * (pins.l + lever_pin(q[2], pins)[0])
    at = {
        'A': 0j, 'B': pins.b * boom, 'I': pins.i * boom, 'C': C, 'E': pins.e,
        'F': C + pins.f * arm, 'J': C + pins.j * arm, 'L': C + pins.l * arm, 'D': D, 'K': K,
        'P': D + pins.p * bucket, 'N': D + pins.n * bucket,
    }  # fmt: skip
    centers = {}
    for number, (link, origin, turn) in enumerate(
        ((excavator.boom, 0j, boom), (excavator.arm, C, arm), (excavator.bucket, D, bucket)), 1
    ):
        direction = turn * cmath.exp(1j * math.radians(link.center_deg))
        centers[number] = (origin, turn, origin + link.center * direction)
    with _figure(file, (13.0, 11.5), 2, 2) as axes:
        _draw_machine(axes[0, 0], at, centers, q)
        _draw_boom(axes[0, 1], at, centers[1], q)
        _draw_arm(axes[1, 0], at, centers[2])
        _draw_bucket(axes[1, 1], at, centers[3])


def _outline(axis: Any, at: dict[str, complex], names: str) -> None:
    """Fill the polygon of some pins."""
    points = [at[name] for name in names]
    axis.fill(
        [p.real for p in points], [p.imag for p in points], fc='0.93', ec=_INK, lw=1.2, zorder=1
    )


def _center(axis: Any, center: tuple[complex, complex, complex], number: int, radius: float,
            off: complex, arc_off: complex) -> None:  # fmt: skip
    """Draw a centre of gravity with its distance and its angle from the link's line."""
    origin, turn, place = center
    axis.plot(place.real, place.imag, 'o', color=_INK, ms=4, zorder=5)
    _line(axis, origin, place, color=_MUTED, lw=0.8, ls='--')
    _text(axis, place, f'$G_{number + 1}$', off)
    first = cmath.phase(turn)
    last = first + cmath.phase((place - origin) / turn)
    _arc(axis, origin, first, last, radius, rf'$\lambda_{number}$', arc_off)


def _draw_machine(
    axis: Any, at: dict[str, complex], centers: dict[int, tuple[complex, complex, complex]],
    q: list[float],
) -> None:  # fmt: skip
    """Draw joint angles, link lengths, weights, cylinders and the soil's force."""
    axis.set_title('machine: joint angles, link lengths, forces', fontsize=11)
    _outline(axis, at, 'ABIC')
    _outline(axis, at, 'CFJLD')
    _outline(axis, at, 'DPN')
    for ends in ('EB', 'IF', 'JK'):
        _line(axis, *(at[name] for name in ends), lw=4.0, color=_CYLINDER)
    for ends in ('LK', 'PK'):
        _line(axis, *(at[name] for name in ends), lw=2.5)
    for name, off in {
        'A': -10 + 9j, 'B': -12 + 6j, 'I': -4 + 13j, 'C': -14 + 10j, 'E': 10 - 8j, 'F': -4 + 12j,
        'J': 12 + 8j, 'L': -13 + 2j, 'D': -12 - 4j, 'K': 13 + 2j, 'P': 12 - 4j, 'N': 0 - 12j,
    }.items():  # fmt: skip
        _pin(axis, at[name], name, off)
    _line(axis, 0j, 2.6 + 0j, color=_MUTED, lw=0.8, ls='--')
    _arc(axis, 0j, 0.0, q[0], 1.9, r'$\theta_2$', 12 + 4j)
    for joint, length, first, last, radius, name, off in (
        (at['C'], 1.6, q[0], q[0] + q[1], 1.2, r'$\theta_3$', 13 + 3j),
        (at['D'], 1.3, q[0] + q[1], q[0] + q[1] + q[2], 1.0, r'$\theta_4$', 16 - 6j),
    ):
        _line(axis, joint, joint + length * cmath.exp(1j * first), color=_MUTED, lw=0.8, ls='--')
        _arc(axis, joint, first, last, radius, name, off)
    _line(axis, at['A'], at['C'], color=_MUTED, lw=0.8, ls=':')
    _text(axis, 0.66 * at['C'], '$L_2$', 10 - 10j)
    _line(axis, at['C'], at['D'], color=_MUTED, lw=0.8, ls=':')
    _text(axis, 0.5 * (at['C'] + at['D']), '$L_3$', 12 + 0j)
    _text(axis, 0.5 * (at['D'] + at['N']), '$L_4$', 2 + 10j)
    for number, (_, _, place) in centers.items():
        _arrow(axis, place, place - 0.6j, _FORCE)
        _text(axis, place - 0.6j, f'$m_{number + 1}\\,g$', -9j, _FORCE)
        axis.plot(place.real, place.imag, 'o', color=_INK, ms=4, zorder=5)
    for ends, name, share, off in (('EB', 'F_{EB}', 0.1, 24 + 0j), ('IF', 'F_{IF}', 0.5, -8 + 15j),
                                   ('JK', 'F_{JK}', 0.5, 24 + 6j)):  # fmt: skip
        place = (1.0 - share) * at[ends[0]] + share * at[ends[1]]
        _text(axis, place, f'${name}$', off, _CYLINDER)
    push = cmath.exp(1j * (cmath.phase(at['N'] - at['D']) + 0.5 * math.pi))
    _arrow(axis, at['N'] - 0.0 * push, at['N'] + 1.1 * push, _FORCE)
    _text(axis, at['N'] + 1.1 * push, '$F$', 9 + 4j, _FORCE)
    _arrow(axis, -1.3 - 1.0j, -0.5 - 1.0j)
    _text(axis, -0.5 - 1.0j, '$x$', 8 + 0j)
    _arrow(axis, -1.3 - 1.0j, -1.3 - 0.2j)
    _text(axis, -1.3 - 0.2j, '$z$', 8j)


def _draw_boom(
    axis: Any, at: dict[str, complex], center: tuple[complex, complex, complex], q: list[float]
) -> None:
    """Draw the pins of chassis and boom."""
    axis.set_title('chassis and boom', fontsize=11)
    _outline(axis, at, 'ABIC')
    _line(axis, at['E'], at['B'], lw=4.0, color=_CYLINDER)
    for name, off in {'A': -10 + 8j, 'B': -4 + 12j, 'I': -6 + 11j, 'C': 11 + 6j,
                      'E': 12 - 2j}.items():  # fmt: skip
        _pin(axis, at[name], name, off)
    a, e = at['A'], at['E']
    corner = complex(0.0, e.imag)
    _line(axis, a, corner, color=_MUTED, lw=0.8)
    _line(axis, corner, e, color=_MUTED, lw=0.8)
    _text(axis, 0.5 * (a + corner), '$L_{AH}$', -18 + 0j)
    _text(axis, 0.5 * (corner + e), '$L_{HE}$', -10j)
    _text(axis, corner, '$H$', -8 - 8j)
    _line(axis, a, at['C'], color=_MUTED, lw=0.8)
    _line(axis, a, at['I'], color=_MUTED, lw=0.8)
    _size(axis, a, at['C'], '$L_2$', -0.55, 8 - 8j)
    _text(axis, 0.8 * at['B'], '$L_{AB}$', -17 + 4j)
    _text(axis, 0.86 * at['I'], '$L_{AI}$', 14 - 8j)
    first, middle, last = (cmath.phase(at[name]) for name in 'CIB')
    _arc(axis, a, first, middle, 1.25, r'$\beta_2$', 12 + 4j)
    _arc(axis, a, middle, last, 1.75, r'$\beta_3$', -18 + 8j)
    _line(axis, a, 1.2 + 0j, color=_MUTED, lw=0.8, ls='--')
    _arc(axis, a, 0.0, q[0], 0.75, r'$\theta_2$', 12 - 2j)
    _center(axis, center, 1, 1.9, 14 + 2j, 13 + 4j)
    _text(axis, 0.88 * center[2], '$L_{G2}$', 16 - 8j)


def _draw_arm(axis: Any, at: dict[str, complex], center: tuple[complex, complex, complex]) -> None:
    """Draw the pins of the arm."""
    axis.set_title('arm', fontsize=11)
    _outline(axis, at, 'CFJLD')
    c = at['C']
    for name, off in {'C': -13 + 4j, 'F': -2 + 12j, 'J': 12 + 8j, 'L': 13 + 4j,
                      'D': -4 - 13j}.items():  # fmt: skip
        _pin(axis, at[name], name, off)
    _line(axis, at['I'], at['F'], lw=4.0, color=_CYLINDER)
    _line(axis, at['J'], at['K'], lw=4.0, color=_CYLINDER)
    for name in 'FJLD':
        _line(axis, c, at[name], color=_MUTED, lw=0.8)
    phases = {name: cmath.phase(at[name] - c) for name in 'DLJF'}
    order = [phases['D']]
    for name in 'LJF':
        phase = phases[name]
        while phase < order[-1]:
            phase += 2.0 * math.pi
        order.append(phase)
    for k, (radius, off) in enumerate(((1.75, 15 + 4j), (0.36, 11 + 4j), (0.3, 10 + 10j))):
        _arc(axis, c, order[k], order[k + 1], radius, rf'$\beta_{k + 5}$', off)
    _text(axis, 0.55 * at['F'] + 0.45 * c, '$L_{CF}$', -14 + 6j)
    _text(axis, 0.75 * at['J'] + 0.25 * c, '$L_{CJ}$', 4 + 12j)
    _text(axis, 0.85 * at['L'] + 0.15 * c, '$L_{CL}$', 20 + 2j)
    _size(axis, c, at['D'], '$L_3$', -0.42, -12 + 0j)
    _center(axis, center, 2, 0.95, 14 - 4j, 13 - 9j)
    _text(axis, 0.2 * c + 0.8 * center[2], '$L_{G3}$', 22 + 8j)


def _draw_bucket(
    axis: Any, at: dict[str, complex], center: tuple[complex, complex, complex]
) -> None:
    """Draw the pins of bucket, lever and rod."""
    axis.set_title('bucket, lever LK and rod PK', fontsize=11)
    _outline(axis, at, 'DPN')
    for ends, text, off in (('LK', '$L_{LK}$', 4 + 13j), ('PK', '$L_{PK}$', 18 + 2j)):
        a, b = (at[name] for name in ends)
        _line(axis, a, b, lw=2.5)
        _text(axis, 0.5 * (a + b), text, off)
    d = at['D']
    toward = (at['J'] - at['K']) / abs(at['J'] - at['K'])
    _line(axis, at['K'], at['K'] + 0.75 * toward, lw=4.0, color=_CYLINDER)
    _text(axis, at['K'] + 0.75 * toward, '$F_{JK}$', 10 + 10j, _CYLINDER)
    _line(axis, at['L'], d, color=_MUTED, lw=1.2)
    for name, off in {'D': -12 - 4j, 'P': 12 + 6j, 'N': 0 - 13j, 'K': 12 + 2j,
                      'L': -13 + 4j}.items():  # fmt: skip
        _pin(axis, at[name], name, off)
    _text(axis, 0.5 * (d + at['P']), '$L_{DP}$', 2 + 13j)
    _size(axis, d, at['N'], '$L_4$', -0.3, -10 - 8j)
    first = cmath.phase(at['N'] - d)
    last = first + cmath.phase((at['P'] - d) / (at['N'] - d))
    _arc(axis, d, first, last, 0.26, r'$\beta_8$', 12 - 5j)
    _center(axis, center, 3, 0.55, 14 + 0j, -6 - 12j)
    _text(axis, 0.75 * center[2] + 0.25 * d, '$L_{G4}$', 18 + 6j)
    along = cmath.exp(1j * first)
    push = 1j * along
    _arrow(axis, at['N'], at['N'] + 0.45 * push, _FORCE)
    _text(axis, at['N'] + 0.45 * push, '$F$', 9 + 4j, _FORCE)


_SKETCHES: dict[str, Callable[[Path], None]] = {'crane': draw_crane, 'excavator': draw_excavator}

if __name__ == '__main__':
    if len(sys.argv) != 3 or sys.argv[1] not in _SKETCHES:
        sys.exit(f'usage: sketches.py {"|".join(_SKETCHES)} FILE')
    _SKETCHES[sys.argv[1]](Path(sys.argv[2]))
