"""
Operators of machines with a boom: sticks, what they ask for, and the age of an order.

Joint by joint, sticks command valve openings, as on a real machine: the deflection beyond the dead
zone, shaped by an expo curve, is the relative opening. The two common control patterns:

    stick   direction    iso      sae      motion for forward or left
    left    fore-aft     arm      boom     arm out; boom down
    left    sideways     swing    swing    to the left
    right   fore-aft     boom     arm      boom down; arm out
    right   sideways     tool     tool     curl in

Under tip control the stick of the arm moves the tip out and in, that of the boom down and up, and
that of the swing around, with a speed in proportion; the tool is moved as before. The tip is the
outer pin of the arm. Rates of the joints are those of the inverse Jacobian; near the ends of the
reach they are damped (Nakamura and Hanafusa 1986), and the tip is slower than commanded.
"""

from __future__ import annotations

import dataclasses
import math
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Generic, NamedTuple, Self, TypeVar

import numpy as np

from longreach_dynamics.errors import InputError
from longreach_dynamics.parameters import Parameters, choice, quantity

FUNCTIONS = ('swing', 'boom', 'arm', 'tool')
CONTROLS = ('joints', 'tip')
# For each function: the stick, and the sign of forward or left; positive is left, up, out, in.
_SIDEWAYS = {'swing': ('left_sideways', 1.0), 'tool': ('right_sideways', 1.0)}
_PATTERNS = {
    'iso': {**_SIDEWAYS, 'boom': ('right_fore_aft', -1.0), 'arm': ('left_fore_aft', 1.0)},
    'sae': {**_SIDEWAYS, 'boom': ('left_fore_aft', -1.0), 'arm': ('right_fore_aft', 1.0)},
}
PATTERNS = tuple(_PATTERNS)
_AXES = ('left_fore_aft', 'left_sideways', 'right_fore_aft', 'right_sideways')
# Smallest singular value of the Jacobian over the arm's length from which on rates are damped.
_SINGULAR = 0.1
# Nearer to the axis of the swing it turns no faster for a speed of the tip [m].
_NEAREST = 1.0


@dataclasses.dataclass(frozen=True)
class StickAxis(Parameters):
    """Index and sign of a stick's direction in the axes of sensor_msgs/Joy."""

    axis: int = quantity('index in the axes, from 0', '', at_least=0, at_most=63)
    sign: int = quantity('sign of the value for forward or left', '', at_least=-1, at_most=1)

    def check(self) -> None:
        """Raise InputError for a sign of 0."""
        if not self.sign:
            raise InputError('sign = 0, allowed: -1 | 1')


@dataclasses.dataclass(frozen=True)
class SticksParameters(Parameters):
    """Sticks of an operator; the base of a machine's teleoperation file."""

    pattern: str = choice('control pattern: which stick moves which joint', PATTERNS)
    left_fore_aft: StickAxis = quantity('left stick, forward')
    left_sideways: StickAxis = quantity('left stick, to the left')
    right_fore_aft: StickAxis = quantity('right stick, forward')
    right_sideways: StickAxis = quantity('right stick, to the left')
    dead_zone: float = quantity(
        'deflection below which a stick counts as centred', at_least=0.0, at_most=0.9
    )
    expo: float = quantity('shape of the curve: 0 linear, 1 cubic', at_least=0.0, at_most=1.0)
    deadman: int | None = quantity(
        'index of the button that must be held down; none: no such button',
        '',
        at_least=0,
        at_most=63,
    )
    timeout: float = quantity(
        'time without a command after which the valves close', 's', above=0.0, at_most=60.0
    )
    control: str = choice(
        'joints: sticks open valves; tip: they move the tip', CONTROLS, default='joints'
    )
    tip_speed: float = quantity(
        'speed of the tip at full deflection', 'm/s', above=0.0, at_most=10.0, default=0.5
    )

    def check(self) -> None:
        """Raise InputError when two directions use the same axis."""
        taken: dict[int, str] = {}
        for name in _AXES:
            axis = getattr(self, name).axis
            if axis in taken:
                raise InputError(
                    f'{name}.axis = {axis} is also used by {taken[axis]}, allowed: an unused axis'
                )
            taken[axis] = name

    def controlling(self, control: str) -> Self:
        """Return the parameters with another choice of ``control``; ``file``: the same."""
        return self if control == 'file' else self.replace(control=control)

    def deflection(self, axes: Sequence[float], name: str) -> float:
        """Return a stick's deflection, forward or left; InputError if missing or not finite."""
        stick: StickAxis = getattr(self, name)
        if stick.axis >= len(axes):
            raise InputError(
                f'joy has {len(axes)} axes, allowed with {name}.axis = {stick.axis}:'
                f' {stick.axis + 1} or more'
            )
        if not math.isfinite(axes[stick.axis]):
            raise InputError(
                f'joy has {axes[stick.axis]} on axis {stick.axis}, allowed: finite numbers'
            )
        return stick.sign * axes[stick.axis]

    def asked(self, axes: Sequence[float], buttons: Sequence[int] = ()) -> dict[str, float]:
        """Return what sticks ask for, by FUNCTIONS, -1 to 1; InputError for a wrong message."""
        if self.deadman is not None and self.deadman >= len(buttons):
            raise InputError(
                f'joy has {len(buttons)} buttons, allowed with deadman = {self.deadman}:'
                f' {self.deadman + 1} or more'
            )
        places = _PATTERNS[self.pattern]
        found = {name: way * self.deflection(axes, stick) for name, (stick, way) in places.items()}
        if self.deadman is not None and not buttons[self.deadman]:
            return dict.fromkeys(FUNCTIONS, 0.0)
        return {name: stick_curve(x, self.dead_zone, self.expo) for name, x in found.items()}


def stick_curve(deflection: float, dead_zone: float, expo: float) -> float:
    """Return (1 - expo) x + expo x^3 with x from 0 at the edge of the dead zone to 1; else 0."""
    x = (min(abs(deflection), 1.0) - dead_zone) / (1.0 - dead_zone)
    if x <= 0.0:
        return 0.0
    return math.copysign((1.0 - expo) * x + expo * x**3, deflection)


def spool_of_opening(opening: float, dead_band: float) -> float:
    """Return the spool beyond the dead band for a relative opening in [-1, 1]; 0 for 0."""
    if opening == 0.0:
        return 0.0
    return math.copysign(min(dead_band + (1.0 - dead_band) * abs(opening), 1.0), opening)


def tip_rates(
    lengths: tuple[float, float], offset: float, angles: Sequence[float], tip: Sequence[float]
) -> np.ndarray:
    """
    Return the rates of swing, boom and arm [rad/s] for a velocity of the tip.

    ``lengths`` are of boom and arm, ``offset`` is the pivot of the boom in front of the axis of
    the swing [m]; ``angles`` of the boom from the horizontal and of the arm from the boom,
    positive up [rad]; ``tip`` is the velocity outwards, to the left, up [m/s].
    """
    (a, b), (boom, arm) = lengths, angles
    reach = a * math.cos(boom) + b * math.cos(boom + arm)
    height = a * math.sin(boom) + b * math.sin(boom + arm)
    J = np.array([[-height, -b * math.sin(boom + arm)], [reach, b * math.cos(boom + arm)]])
    U, sizes, Vt = np.linalg.svd(J)
    # Below the threshold s / (s^2 + d^2) in place of 1 / s, d growing to half the threshold.
    threshold = _SINGULAR * b
    damping = 0.5 * threshold * np.clip(1.0 - (sizes / threshold) ** 2, 0.0, None)
    inverse = sizes / np.maximum(sizes**2 + damping**2, np.finfo(float).tiny)
    planar = Vt.T @ (inverse * (U.T @ np.array([tip[0], tip[2]])))
    return np.array([tip[1] / max(abs(offset + reach), _NEAREST), *planar.tolist()])


class Order(NamedTuple):
    """What an operator wants: spool positions, rates of the joints, or a velocity of the tip."""

    spools: tuple[float, ...] = ()  # in [-1, 1]; with a velocity of the tip: those of the tool
    rates: tuple[float, ...] = ()  # [rad/s]
    tip: tuple[float, ...] = ()  # outwards, to the left, up [m/s]

    @property
    def moves(self) -> bool:
        """Whether any value is not 0."""
        return any((*self.spools, *self.rates, *self.tip))


class OperatorState(NamedTuple):
    """State of an operator's station; immutable."""

    order: Order = Order()
    given: float = -math.inf  # time of the order [s], by the clock of Station.take
    engaged: bool = False  # a motion has been commanded
    memory: Any = None  # of the machine's station
    time: float = 0.0  # of the previous sample [s]


Measurement = TypeVar('Measurement', bound=Any)
Command = TypeVar('Command')


class Station(Generic[Measurement, Command]):
    """The operator's station of a machine; a base of dataclasses of parameters and machine."""

    parameters: SticksParameters
    closed: Command
    measurement: ClassVar[type[Any]]  # takes time [s] and what the machine ``measures``
    read: ClassVar[Callable[[str | None], Any]]  # parameters of a file, None: the installed one

    @classmethod
    def of(cls, machine: Any, control: str, file: str | None = None) -> Self:
        """Return the station of a machine, see ``controlling``, compiled."""
        station = cls(cls.read(file).controlling(control), machine)  # type: ignore[call-arg]
        station.warm_up()
        return station

    # --- what a machine provides -------------------------------------------------------------

    @abstractmethod
    def warm_up(self) -> None:
        """Compile the functions of a cycle."""

    @abstractmethod
    def spools_of(self, asked: Mapping[str, float]) -> tuple[float, ...]:
        """Return spools for relative openings by FUNCTIONS, positive: left, up, out, in."""

    @abstractmethod
    def obey(self, state: OperatorState, measured: Measurement) -> tuple[Any, Command]:
        """Return memory and command for an order; the state's time [s] is that before."""

    def observe(self, state: OperatorState, measured: Measurement) -> Any:  # noqa: ARG002
        """Return the machine's memory at a sample, before any order; the same here."""
        return state.memory

    # --- orders ------------------------------------------------------------------------------

    def order_of_sticks(self, axes: Sequence[float], buttons: Sequence[int] = ()) -> Order:
        """Return the order of joysticks; raises as :meth:`SticksParameters.asked`."""
        return self.order_of(self.parameters.asked(axes, buttons))

    def order_of(self, asked: Mapping[str, float]) -> Order:
        """Return the order for what is asked for, -1 to 1 by FUNCTIONS."""
        if self.parameters.control == 'joints':
            return Order(self.spools_of(asked))
        tool = {**dict.fromkeys(FUNCTIONS, 0.0), 'tool': asked['tool']}
        speed = self.parameters.tip_speed
        velocity = (speed * asked['arm'], speed * asked['swing'], speed * asked['boom'])
        return Order(self.spools_of(tool), tip=velocity)

    def take(self, state: OperatorState, order: Order, now: float) -> OperatorState:
        """
        Return the state with a new order, received at the time ``now`` [s].

        Before the first order with motion the machine follows its scenario.
        """
        return state._replace(order=order, given=now, engaged=state.engaged or order.moves)

    def cycle(
        self, state: OperatorState, measured: Measurement, now: float
    ) -> tuple[OperatorState, Command | None]:
        """Return the state after a sample at ``now`` [s], and the command; None until engaged."""
        state = state._replace(memory=self.observe(state, measured))
        command: Command | None = None
        if state.engaged and now - state.given > self.parameters.timeout:
            state = state._replace(order=Order())
            command = self.closed
        elif state.engaged:
            memory, command = self.obey(state, measured)
            state = state._replace(memory=memory)
        return state._replace(time=measured.time), command
