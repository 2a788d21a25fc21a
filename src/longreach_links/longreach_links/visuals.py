"""What is drawn of flexible links: the bent links, their lumped masses, the way of the end."""

from __future__ import annotations

import numpy as np

from longreach_symbolic.links import Links, chord_ends, functions_at
from longreach_symbolic.scenario import Scenario

# Distance of the sides from the plane of the links over their width: in front of the chords.
_APART = 0.55


def bent_links(links: Links, q: np.ndarray, points: int) -> np.ndarray:
    """Return points of the bent links, x, y, z in ``links_base``, (N, points, 3) [m]."""
    xi = np.linspace(-1.0, 0.0, points)
    return _on_links(links, q, np.tile(xi, (len(links.links), 1)))


def sides(points: np.ndarray, width: float) -> np.ndarray:
    """Return both sides of a bent link (K, 3) of a width [m] as corners of triangles, (.., 3)."""
    along = np.gradient(points[:, [0, 2]], axis=0)
    along /= np.linalg.norm(along, axis=1, keepdims=True)
    up = 0.5 * width * np.stack((-along[:, 1], np.zeros(len(along)), along[:, 0]), axis=1)
    low, high = points - up, points + up
    corners = (low[:-1], low[1:], high[:-1], high[:-1], low[1:], high[1:])
    side = np.stack(corners, axis=1).reshape(-1, 3)
    return np.concatenate([side + np.array((0.0, y * width, 0.0)) for y in (-_APART, _APART)])


def lumped_places(links: Links, q: np.ndarray) -> np.ndarray:
    """Return where the lumped masses are, x, y, z in ``links_base``, (N, 3) [m]."""
    xi = np.array([[link.lumped_place] for link in links.links])
    return _on_links(links, q, xi)[:, 0]


def aims(scenario: Scenario, links: Links, count: int) -> np.ndarray:
    """Return where the end shall be at ``count`` times of a scenario, (count, 3) [m]."""
    circle = scenario.circle
    # A whole turn, however long the run is.
    end = scenario.duration if circle is None else circle.start + circle.period
    times = np.linspace(0.0, end, count)
    theta = np.array([scenario.angles(time, links) for time in times])
    return _in_space(chord_ends(links, theta)[:, -1])


def _on_links(links: Links, q: np.ndarray, xi: np.ndarray) -> np.ndarray:
    """Return the points at places xi (N, K) of the links, (N, K, 3) [m]."""
    count = len(links.links)
    theta = q[np.newaxis, :count]
    ends = chord_ends(links, theta)[0]
    angles = np.cumsum(theta[0])
    along = np.stack((np.cos(angles), np.sin(angles)), axis=1)
    across = np.stack((-along[:, 1], along[:, 0]), axis=1)
    deflections = q[count:].reshape(count, links.modes)
    bent = np.array(
        [
            f @ functions_at(links.basis, links.modes, places)
            for f, places in zip(deflections, xi, strict=True)
        ]
    )
    lengths = np.array([[link.length] for link in links.links])
    found = ends[:, np.newaxis] + (lengths * xi)[:, :, np.newaxis] * along[:, np.newaxis]
    return _in_space(found + bent[:, :, np.newaxis] * across[:, np.newaxis])


def _in_space(places: np.ndarray) -> np.ndarray:
    """Return x and z (.., 2) as x, y, z (.., 3)."""
    return np.stack((places[..., 0], np.zeros_like(places[..., 0]), places[..., 1]), axis=-1)
