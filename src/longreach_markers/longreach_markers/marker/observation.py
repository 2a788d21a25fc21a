"""What is observed of a marker in one image."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from longreach_dynamics.errors import InputError

TRACKED = 'TRACKED'
UNCERTAIN = 'UNCERTAIN'
LOST = 'LOST'


@dataclass(frozen=True, eq=False)
class Ellipse:
    """
    An ellipse in the image plane.

    Parameters
    ----------
    center : ndarray, shape (2,)
        Centre [px], or in other image coordinates.
    axes : ndarray, shape (2,)
        Semi-axes, the longer first.
    angle : float
        Angle of the longer semi-axis from u towards v, in (-pi/2, pi/2] [rad]; 0 for a circle.

    Raises
    ------
    InputError
        For numbers that are not finite, and semi-axes that are not positive.
    """

    center: NDArray[np.float64]
    axes: NDArray[np.float64]
    angle: float

    def __post_init__(self) -> None:
        """Check the values; put the longer axis first and the angle into its range."""
        center, axes = np.array(self.center, float), np.array(self.axes, float)
        angle = float(self.angle)
        good = center.shape == axes.shape == (2,) and bool((axes > 0.0).all())
        if not (good and np.isfinite([*center, *axes, angle]).all()):
            raise InputError(
                f'ellipse {center.tolist()}, {axes.tolist()}, {angle}, allowed: a centre of two'
                ' finite numbers, two semi-axes in (0, inf), a finite angle'
            )
        if axes[0] < axes[1]:
            axes, angle = axes[::-1].copy(), angle + math.pi / 2.0
        angle = math.remainder(angle, math.pi)
        if angle <= -math.pi / 2.0:
            angle = math.pi / 2.0
        object.__setattr__(self, 'center', center)
        object.__setattr__(self, 'axes', axes)
        object.__setattr__(self, 'angle', 0.0 if axes[0] == axes[1] else angle)

    def points(self, angles: ArrayLike) -> NDArray[np.float64]:
        """Return the points (n, 2) at the parameter angles (n,) of the unit circle [rad]."""
        c, s = math.cos(self.angle), math.sin(self.angle)
        along = np.column_stack([np.cos(angles), np.sin(angles)]) * self.axes
        return np.asarray(self.center + along @ np.array([[c, s], [-s, c]]))


@dataclass(frozen=True)
class Observation:
    """
    Observation of a marker in one image.

    Parameters
    ----------
    status : str
        ``TRACKED``, ``UNCERTAIN`` (seen, but not reliable) or ``LOST``.
    reason : str
        Why the status is not ``TRACKED``; empty otherwise.
    center : ndarray, shape (2,)
        Projected centre of the circle if camera and normal are given, else the centre of the outer
        edge's ellipse [px]; for a lost marker, the position where it was expected.
    covariance : ndarray, shape (2, 2)
        Covariance of the centre [px^2]; NaN if the marker is lost.
    ellipse : Ellipse
        Outer edge in the image [px].
    inner : float
        Radius of the inner edge as a share of the outer one; 0 for a disc.
    bright : bool
        Whether the marker is brighter than its surroundings.
    rim_support : float
        Share of the rim that fits, 0 to 1.
    residual : float
        Root mean square residual of the fit [grey levels].
    shape : ndarray, shape (3,)
        Shape matrix (11, 12, 22) of the outer edge [px], used for prediction by the tracking.
    """

    status: str
    reason: str
    center: NDArray[np.float64]
    covariance: NDArray[np.float64]
    ellipse: Ellipse
    inner: float
    bright: bool
    rim_support: float
    residual: float
    shape: NDArray[np.float64]

    @property
    def radius(self) -> float:
        """Longer semi-axis of the outer edge [px]."""
        return float(self.ellipse.axes[0])


def lost(
    reason: str, place: NDArray[np.float64], radius: float, expected: Observation | None = None
) -> Observation:
    """Return the observation of a lost marker at its expected position."""
    shape = np.array([radius, 0.0, radius]) if expected is None else expected.shape
    ellipse = (
        Ellipse(place, np.array([radius, radius]), 0.0)
        if expected is None
        else Ellipse(place, expected.ellipse.axes, expected.ellipse.angle)
    )
    return Observation(
        status=LOST,
        reason=reason,
        center=place,
        covariance=np.full((2, 2), np.nan),
        ellipse=ellipse,
        inner=0.0 if expected is None else expected.inner,
        bright=False if expected is None else expected.bright,
        rim_support=0.0,
        residual=math.nan,
        shape=shape,
    )
