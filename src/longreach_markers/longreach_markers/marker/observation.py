"""What is observed of a marker in one image."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from longreach_markers.camera.circles import Ellipse

TRACKED = 'TRACKED'
UNCERTAIN = 'UNCERTAIN'
LOST = 'LOST'


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
    reason: str,
    place: NDArray[np.float64],
    radius: float,
    expected: Observation | None = None,
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
