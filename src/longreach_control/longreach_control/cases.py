"""Cases of the benchmark of damping: drawn postures, and what disturbs the boom in them."""

from __future__ import annotations

import functools
from typing import NamedTuple

import numpy as np

from longreach_boom.disturbances import Gust, Pumping
from longreach_boom.kinematics import beam_frames
from longreach_boom.model import Load, constants_of
from longreach_boom.parameters import BoomParameters
from longreach_boom.scenario import Attachment, HangingLoad, Scenario
from longreach_boom.state import piston_positions
from longreach_boom.statics import equilibrium
from longreach_control.plant import relief_settings
from longreach_dynamics.errors import InputError, LongreachError

DISTURBANCES = ('release', 'pick_up', 'pumping', 'stop', 'gust')
POSTURES, SEED = 100, 20261126
# Mass at the tip [kg] that controllers believe, and by how much the true one may differ.
PAYLOAD, WRONG = 50.0, 0.2
# Begin of each disturbance, and its end [s].
START = 1.0
ENDS = {'release': START, 'pick_up': START, 'pumping': 10.0, 'stop': 4.0, 'gust': 4.0}
# Rates that the operator asks of the first two joints [rad/s].
RATES = np.radians([1.0, -1.5])
# Concrete in the line [kg/m] and its speed [m/s]; speed of the gust [m/s].
_CONCRETE, _SPEED, _GUST = 8.0, 1.5, 18.0
# Bounds of postures: reach, height of all joints [m], share of the relief pressures, and distance
# from the ends of the strokes as a share of them.
_REACH, _LOWEST, _PRESSURE, _STROKE = 8.0, -3.0, 0.8, 0.08


class Posture(NamedTuple):
    """A drawn posture with what is random in it."""

    number: int
    angles: tuple[float, ...]  # [rad]
    wrong: float  # true mass at the tip over the believed one
    period: float  # of the strokes of pumping [s]
    seed: int  # of noise and delays


class Case(NamedTuple):
    """A disturbance in a posture."""

    posture: Posture
    disturbance: str


@functools.lru_cache(maxsize=4)
def postures(boom: BoomParameters, count: int = POSTURES) -> tuple[Posture, ...]:
    """
    Return drawn postures; the first ones do not depend on the count.

    Joint angles are uniform between the ends of the strokes. A posture counts when the tip reaches
    out, no joint is below the ground, and pressures at rest with all loads of the benchmark are
    well below the relief valves. LongreachError when there are hardly any.
    """
    length = sum(beam.length for beam in boom.beams)
    if length < _REACH:
        raise InputError(
            f'the beams of the boom are {length:g} m long in all, allowed: {_REACH:g} m or more:'
            ' the tip reaches out so far in the postures of the benchmark; give a longer boom'
        )
    random = np.random.default_rng(SEED)
    low, high = boom.joint_limits().T
    found: list[Posture] = []
    for _ in range(4000 * count):
        angles = random.uniform(low, high)
        wrong, period = random.uniform(1.0 - WRONG, 1.0 + WRONG), random.uniform(1.8, 2.8)
        own = int(random.integers(2**31))
        if _is_fit(boom, angles):
            found.append(Posture(len(found), tuple(angles.tolist()), wrong, period, own))
        if len(found) == count:
            return tuple(found)
    raise LongreachError(
        f'only {len(found)} of {count} postures were found in which this boom carries the loads of'
        ' the benchmark; give a boom with larger cylinders or lighter beams'
    )


def _is_fit(boom: BoomParameters, angles: np.ndarray) -> bool:
    """Return whether a posture is one of the benchmark."""
    still = [0.0] * boom.size
    frames = beam_frames(
        [beam.length for beam in boom.beams], False, list(angles), still, [(0.0,) * 4] * boom.size
    )
    places = np.array([complex(frame.origin) for frame in frames])
    if places[-1].real < _REACH or places.imag.min() < _LOWEST:
        return False
    constants = constants_of(boom)
    shares = piston_positions(angles, constants) / constants.actuators.stroke
    if shares.min() < _STROKE or shares.max() > 1.0 - _STROKE:
        return False
    heaviest = scenario_of(Case(Posture(0, tuple(angles), 1.0 + WRONG, 2.0, 0), 'pumping'))
    try:
        rest = equilibrium(boom, angles, heaviest.initial_loads(boom))
    except LongreachError:
        return False
    most = _PRESSURE * np.minimum(relief_settings(boom), boom.oil.supply_pressure)
    return bool(np.all(np.array([rest.head_pressures, rest.rod_pressures]) <= most))


def scenario_of(case: Case, duration: float = 20.0) -> Scenario:
    """Return the scenario of a case; InputError for an unknown disturbance."""
    posture, what = case
    load = HangingLoad(mass=PAYLOAD * posture.wrong)
    pose = tuple(np.degrees(posture.angles).tolist())
    still = Scenario(duration=duration, pose_deg=pose, loads=(load,))
    end = ENDS.get(what, 0.0)
    if what == 'release':
        return still.replace(release=(START,))
    if what == 'pick_up':
        return still.replace(loads=(), attach=(Attachment(time=START, mass=load.mass),))
    if what == 'pumping':
        pumping = Pumping(
            start=START,
            end=end,
            period=posture.period,
            gap=0.25,
            speed=_SPEED,
            mass_per_length=_CONCRETE,
        )
        return still.replace(pumping=(pumping,))
    if what == 'stop':
        return still
    if what == 'gust':
        return still.replace(gusts=(Gust(start=START, end=end, speed=_GUST),))
    raise InputError(f'disturbance = {what!r}, allowed: {" | ".join(DISTURBANCES)}')


def believed_loads(case: Case, boom: BoomParameters) -> tuple[Load, ...]:
    """Return what a controller believes to hang on the boom: the masses without their error."""
    right = Case(case.posture._replace(wrong=1.0), case.disturbance)
    return scenario_of(right).initial_loads(boom)
