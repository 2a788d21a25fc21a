"""
Whether a machine follows a trajectory within tolerances: the goal of FollowJointTrajectory.

The rules are those of ``control_msgs/action/FollowJointTrajectory``: on the way each joint stays
within its path tolerance of the reference, and after the end it comes within its goal tolerance
of the last waypoint before ``goal_time`` is over. Only positions are monitored.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from enum import IntEnum
from typing import NamedTuple

import numpy as np

from longreach_dynamics.errors import InputError, check_among
from longreach_machine.trajectories import Trajectory

# Default tolerances of a goal [rad], [s].
PATH, GOAL, GOAL_TIME = math.radians(5.0), math.radians(1.0), 5.0


class Outcome(IntEnum):
    """How a goal ended; the numbers are those of the action's result."""

    SUCCESSFUL = 0
    INVALID_GOAL = -1
    PATH_TOLERANCE_VIOLATED = -4
    GOAL_TOLERANCE_VIOLATED = -5


class Verdict(NamedTuple):
    """The end of a goal."""

    outcome: Outcome
    text: str


class Tolerances(NamedTuple):
    """Allowed deviations; inf: no limit."""

    path: np.ndarray  # (N,) [rad]
    goal: np.ndarray  # (N,) [rad]
    goal_time: float = GOAL_TIME  # [s]


class Goal(NamedTuple):
    """A trajectory that is to be followed."""

    joints: tuple[str, ...]  # (N,) names
    trajectory: Trajectory
    tolerances: Tolerances

    def judge(
        self, time: float, angles: np.ndarray, behind: np.ndarray | float = 0.0
    ) -> Verdict | None:
        """
        Return the result at a time [s] and measured angles (N,) [rad]; None while it is active.

        ``behind`` (N,) [rad] is left behind on purpose. NaN is within no tolerance.
        """
        end = self.trajectory.duration
        wanted = self.trajectory.angles[-1]
        if time < end:
            wanted = self.trajectory.at(time).angles - behind
        errors = np.abs(wanted - angles)
        if time < end:
            if (errors <= self.tolerances.path).all():
                return None
            text = self._text('is off the path by', errors, self.tolerances.path)
            return Verdict(Outcome.PATH_TOLERANCE_VIOLATED, text)
        if (errors <= self.tolerances.goal).all():
            return Verdict(Outcome.SUCCESSFUL, f'goal reached {time - end:.3f} s after its time')
        if time <= end + self.tolerances.goal_time:
            return None
        text = self._text('is off the goal by', errors, self.tolerances.goal)
        return Verdict(
            Outcome.GOAL_TOLERANCE_VIOLATED, f'{text}, {time - end:.3f} s after its time'
        )

    def _text(self, what: str, errors: np.ndarray, allowed: np.ndarray) -> str:
        """Return a text with the joint of the largest deviation, its value and the tolerance."""
        # NaN counts as the largest.
        k = int(np.argmax(errors - allowed))
        return (
            f'{self.joints[k]} {what} {math.degrees(errors[k]):.4g} deg, allowed:'
            f' {math.degrees(allowed[k]):.4g} deg'
        )


def positions_of(
    given: Sequence[tuple[str, float]], joints: Sequence[str], default: float, what: str
) -> np.ndarray:
    """
    Return tolerances of positions [rad] in the order of joints, ``given`` by their names.

    0 is the default, -1 without limit. InputError, with ``what``, for an unknown joint or a
    tolerance that is negative or not finite.
    """
    allowed = dict.fromkeys(joints, default)
    for name, value in given:
        check_among(f'joint of {what}', name, allowed)
        if value != -1.0 and not 0.0 <= value < math.inf:
            raise InputError(f'{what} of {name} = {value} rad, allowed: -1, or from 0 on')
        if value:
            allowed[name] = math.inf if value == -1.0 else value
    return np.array([allowed[name] for name in joints])
