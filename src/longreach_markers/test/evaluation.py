"""
How well a detector finds the centres of markers in independently rendered windows.

:func:`scenes` makes the cases, :func:`evaluate` runs a detector on them, :func:`bound` says how
well any unbiased detector could do (Cramer-Rao). A detector is a function

    detector(image, at, radius, camera, normal) -> (status, center, covariance)

of a window (uint8), guesses of the centre (2,) and of the radius [px], the window's PinholeCamera
and the unit normal of the marker's plane (3,) in the optical frame. It returns 'TRACKED',
'UNCERTAIN' or 'LOST', the centre (2,) and its covariance (2, 2) [px, px^2] or None.
"""

import functools
import math
from typing import NamedTuple

import numpy as np
from independent_renderer import (
    Bar,
    Card,
    Glare,
    PinholeCamera,
    Scene,
    Shading,
    Shadow,
    back_project,
    plane_axes,
    project,
    render,
    render_exact,
    rim_points,
    truth,
)
from scipy.optimize import brentq

# What may disturb a marker; 'all' goes through them in turn, 'empty' has clutter and no marker,
# 'dappled' shade made of spots of light.
KINDS = (
    'base', 'shading', 'noise', 'motion_3', 'motion_6', 'bar', 'hidden', 'glare_third',
    'glare_more', 'neighbours', 'highlight', 'light_spot', 'shadow', 'shadow_rim', 'smoothed',
    'median', 'normal_2', 'normal_4', 'bowed', 'jpeg_85',
)  # fmt: skip
# The order of the random numbers' seeds.
_SEEDS = (*KINDS[:12], 'empty', *KINDS[12:14], 'dappled', *KINDS[14:])
# What differs from other scenes in all of a kind.
PLAIN = {
    'noise': {'noise': 8.0}, 'empty': {'present': False, 'clutter': 20},
    'smoothed': {'smoothing': 0.7}, 'median': {'median': True}, 'jpeg_85': {'jpeg': 85},
}  # fmt: skip
# Above it an error is wrong [px].
WRONG = 0.5
# Cells along a pixel: within 0.1 grey levels RMS of any more, far below the noise; derivatives for
# the bound move by less than 1 % with more.
OVERSAMPLING = 4


class Case(NamedTuple):
    """A scene and how wrong the guess is: shift of the centre [px], factor of the radius."""

    scene: Scene
    shift: np.ndarray
    factor: float
    kind: str = 'base'
    # The plane's normal that the detector is given, if it is a wrong one.
    normal: tuple[float, float, float] | None = None

    def at(self, rendered):
        return rendered.center + self.shift

    def radius(self, rendered):
        return float(rendered.ellipse.axes[0] * self.factor)


class Bound(NamedTuple):
    """Least covariance (2, 2) of any unbiased estimate [px^2]."""

    known: np.ndarray  # of the projected centre, with the plane's normal known
    ellipse_center: np.ndarray  # without


class Report(NamedTuple):
    """What a detector reached, by errors of TRACKED observations."""

    rms: float  # per axis [px]
    flagged: float  # share of the other observations
    wrong: list[int]  # the cases with an error above WRONG
    ratio: float  # of the RMS to that of the Cramer-Rao bound, where it was asked for
    normalised: float  # mean of e' C^-1 e / 2, 1 if covariances are honest


def scenes(kind, count, seed=0):
    """
    Return random cases of one of KINDS, 'all', 'empty' or 'dappled'.

    Radii 10 to 30 px, tilt to 60 deg, discs and rings, dark on bright and the reverse, anywhere in
    a frame of 2452 x 2054; half of the cameras have distortion. The guess is off by up to 8 px and
    15 %, for neighbours by at most 0.35 of their distance.
    """
    if kind == 'all':
        parts = [scenes(one, -(-count // len(KINDS)), seed) for one in KINDS]
        return [case for cases in zip(*parts, strict=True) for case in cases][:count]
    number = _SEEDS.index(kind)
    return [_case(kind, np.random.default_rng([seed, number, k])) for k in range(count)]


def _case(kind, rng):
    scene = _base_scene(rng, bright=(130.0, 180.0) if kind == 'shading' else (150.0, 210.0))
    center, ellipse, rim = truth(scene)
    length = 2.0 * ellipse.axes[0]
    direction = rng.uniform(0.0, 2.0 * math.pi)
    along = np.array([math.cos(direction), math.sin(direction)])
    reaches = (rim - center) @ along
    extent = float(reaches.max())
    strength = 0.4 if kind == 'shading' else rng.uniform(0.0, 0.1)
    turn, bend = rng.uniform(0.0, 2.0 * math.pi), rng.uniform(-0.1, 0.1) * strength
    scene = scene.changed(shading=Shading(strength, turn, bend, tuple(center), length))
    grey = rng.uniform(20.0, 210.0)
    reach, more = 8.0, dict(PLAIN.get(kind, {}))
    if kind.startswith('motion'):
        more = {'motion': float(kind[-1]), 'motion_direction': direction}
    elif kind == 'bar':
        width = max(2.0, rng.uniform(0.1, 0.3) * length / 2.0)
        at = center + rng.uniform(0.2, 0.9) * extent * along
        more['bars'] = (Bar(tuple(at), direction, width, grey),)
    elif kind == 'hidden':
        # A half-plane.
        at = center + (np.quantile(reaches, 1.0 - 0.35) + 500.0) * along
        more['bars'] = (Bar(tuple(at), direction, 1000.0, grey),)
    elif kind in ('glare_third', 'glare_more'):
        share = rng.uniform(0.25, 1.0 / 3.0) if kind == 'glare_third' else rng.uniform(0.5, 0.8)
        more['glare'] = (_glare(scene, direction, share, rng),)
    elif kind in ('highlight', 'light_spot'):
        # Round and soft, on the rim: the one is beyond the sensor's range, the other is not.
        at = center + extent * along
        width = rng.uniform(0.55, 0.75) * ellipse.axes[0]
        amplitude = rng.uniform(150.0, 400.0) if kind == 'highlight' else rng.uniform(20.0, 60.0)
        more['glare'] = (Glare(tuple(at), width, amplitude, 2.0),)
    elif kind in ('shadow', 'shadow_rim'):
        # Through the marker, or within 3 px of the rim; as of a boom some metres away.
        away = rng.uniform(-0.8, 0.8) * extent
        if kind == 'shadow_rim':
            away = extent + rng.uniform(-3.0, 3.0)
        light, penumbra = rng.uniform(0.25, 0.7), rng.uniform(0.0, 3.0)
        more['shadows'] = (Shadow(tuple(center + away * along), direction, light, penumbra),)
    elif kind == 'dappled':
        # All in the shade of leaves, but for some spots.
        spots = []
        for _ in range(rng.integers(2, 6)):
            place = center + rng.normal(0.0, 0.8, 2) * ellipse.axes[0]
            spots.append((*place.tolist(), rng.uniform(3.0, 12.0)))
        light, far = rng.uniform(0.25, 0.7), tuple(center - 1e4 * along)
        more['shadows'] = (Shadow(far, direction, light, rng.uniform(1.0, 4.0), tuple(spots)),)
    elif kind == 'neighbours':
        place = 2.6 * along
        there = np.array(scene.center) + scene.radius * (place @ plane_axes(scene)[:2])
        distance = float(np.linalg.norm(project(scene.camera, there) - center))
        reach = min(reach, 0.35 * distance)
        more = {'neighbours': (tuple(place),), 'inner': scene.inner or rng.uniform(0.4, 0.7)}
        more['card'] = Card(4.5, 'square') if rng.random() < 0.5 else None
    elif kind in ('smoothed', 'median'):
        # As much noise before as leaves 1 to 3 grey levels.
        more['noise'] = rng.uniform(2.5, 7.5)
    elif kind == 'bowed':
        sag = rng.uniform(0.02, 0.08) * rng.choice([-1.0, 1.0])
        more = {'bow': sag, 'bow_direction': direction}
    scene = scene.changed(**more)
    normal = None
    if kind.startswith('normal'):
        # Wrong by so many degrees.
        aside = math.tan(math.radians(float(kind[-1]))) * along @ plane_axes(scene)[:2]
        normal = tuple(np.array(scene.normal) / np.linalg.norm(scene.normal) + aside)
    turn, off = rng.uniform(0.0, 2.0 * math.pi), reach * math.sqrt(rng.random())
    shift = off * np.array([math.cos(turn), math.sin(turn)])
    return Case(scene, shift, rng.uniform(0.85, 1.15), kind, normal)


def _base_scene(rng, bright):
    focal = rng.uniform(3000.0, 5000.0)
    distortion = (0.0,) * 5
    if rng.random() < 0.5:
        k1, k2 = rng.uniform(-0.2, 0.1), rng.uniform(-0.05, 0.05)
        distortion = (k1, k2, *rng.uniform(-1e-3, 1e-3, 2), 0.0)
    fy = focal * rng.uniform(0.999, 1.001)
    cx, cy = 1225.5 + rng.uniform(-20.0, 20.0), 1026.5 + rng.uniform(-20.0, 20.0)
    camera = PinholeCamera(fx=focal, fy=fy, cx=cx, cy=cy, distortion=distortion)
    size, tilt = rng.uniform(10.0, 30.0), math.radians(rng.uniform(0.0, 60.0))
    pixel = rng.uniform([130.0, 130.0], [camera.width - 130.0, camera.height - 130.0])
    ray = back_project(camera, pixel)
    radius = 0.15
    center = ray * (focal * radius / size)
    # The normal, turned away from the line of sight by the tilt.
    sight = ray / np.linalg.norm(ray)
    across = np.cross(sight, [0.0, 1.0, 0.0])
    across /= np.linalg.norm(across)
    up = np.cross(sight, across)
    azimuth = rng.uniform(0.0, 2.0 * math.pi)
    aside = math.cos(azimuth) * across + math.sin(azimuth) * up
    normal = -math.cos(tilt) * sight + math.sin(tilt) * aside
    dark, light = rng.uniform(20.0, 60.0), rng.uniform(*bright)
    background, marker = (light, dark) if rng.random() < 0.5 else (dark, light)
    inside = 0.5 * (dark + light)
    if rng.random() < 0.8:
        inside = background * (rng.uniform(0.9, 1.0) if marker == dark else rng.uniform(0.8, 1.2))
    card = None
    if rng.random() < 0.7:
        # At least 4 px from the rim, so that blurred edges stay apart.
        least = max(1.6, 1.0 + 4.0 / (size * math.cos(tilt)))
        shape = 'square' if rng.random() < 0.5 else 'round'
        card = Card(least + rng.uniform(0.0, 1.2), shape)
    return Scene(
        camera,
        tuple(center),
        tuple(normal),
        radius,
        inner=0.0 if rng.random() < 0.4 else rng.uniform(0.4, 0.7),
        roll=rng.uniform(0.0, 2.0 * math.pi),
        background=background,
        marker=marker,
        inside=inside,
        surroundings=rng.uniform(60.0, 150.0),
        card=card,
        clutter=int(rng.integers(5, 15)),
        blur=rng.uniform(0.7, 1.0),
        noise=rng.uniform(2.0, 4.0),
        seed=int(rng.integers(2**31)),
    )


def _glare(scene, direction, share, rng):
    """Return glare that leaves less than half of the contrast on a share of the marker's area."""
    center, ellipse, _ = truth(scene)
    ratios = np.sqrt((np.arange(20) + 0.5) / 20.0)
    points = np.vstack([rim_points(scene, float(ratio), 60) for ratio in ratios])
    pixels = project(scene.camera, points)
    width, power = rng.uniform(0.9, 1.4) * ellipse.axes[0], rng.uniform(3.0, 8.0)
    # Longer than wide: a round one would be a marker.
    length, turn = width * rng.uniform(1.3, 2.5), rng.uniform(0.0, math.pi)
    # Bright parts saturate there, and dark ones are raised to half of the contrast below.
    covering = 255.0 - 0.5 * (scene.background + scene.marker)
    glare = Glare((0.0, 0.0), width, 350.0, power, length, turn)
    covered = math.log(glare.amplitude / covering) ** (1.0 / power)

    def moved(away):
        at = center + away * np.array([math.cos(direction), math.sin(direction)])
        return glare._replace(at=tuple(at))

    def excess(away):
        return np.mean(moved(away).distance(*pixels.T) < covered) - share

    return moved(brentq(excess, 0.0, 2.0 * float(ellipse.axes[0]) + covered * length))


@functools.lru_cache(maxsize=100)
def bound(scene):
    """Return the Cramer-Rao bound of the marker's centre."""
    # Unknown are centre, size, ratio of the rings, blur, the grey levels and the linear shading,
    # and the tilt where the normal is not known. Occluders, glare and motion are known, neighbours
    # and the card's edge not there: the bound is below what a detector of these scenes can reach.
    information, moves = fisher_information(scene)
    known = np.linalg.inv(information[:-2, :-2])[:2, :2]
    # Seen straight on, tilt is not observable to first order: it is within a radian.
    information[[-2, -1], [-2, -1]] += 1.0
    return Bound(known, moves @ np.linalg.inv(information) @ moves.T)


def fisher_information(scene):
    """Return what an image tells of a marker, and derivatives of the ellipse's centre (2, k)."""
    # The first of the k unknowns are u and v of the projected centre [px], the last the two angles
    # of tilt about it [rad]. What is saturated tells nothing.
    center, ellipse, _ = truth(scene)
    half = math.ceil(ellipse.axes[0] + 4.0 * scene.blur + scene.motion / 2.0 + 1.0)
    u0, v0 = (np.rint(center).astype(int) - half).tolist()
    shading = scene.shading
    if shading.strength == 0.0:
        shading = Shading(0.0, 0.0, 0.0, tuple(center), 2.0 * ellipse.axes[0])
    scene = scene.changed(
        card=None, clutter=0, neighbours=(), shading=shading,
        window=(u0, v0, 2 * half + 1, 2 * half + 1),
    )  # fmt: skip
    px = 1.0 / ellipse.axes[0]
    # Small enough for the slopes, large enough for the steps between cells.
    steps = {'u': 0.1, 'v': 0.1, 'size': 0.1 * px, 'blur': 0.03, 'background': 5.0, 'marker': 5.0}
    steps |= {'shade_u': 0.05, 'shade_v': 0.05}
    if scene.inner > 0.0:
        steps |= {'inner': 0.1 * px, 'inside': 5.0}
    steps |= {'tilt_1': 0.02, 'tilt_2': 0.02}
    exact = render_exact(scene, OVERSAMPLING)
    visible = (exact > 0.0) & (exact < 255.0)
    slopes, moves = [], []
    for name, step in steps.items():
        ends = [_moved(scene, **{name: sign * step}) for sign in (1.0, -1.0)]
        above, below = (render_exact(end, OVERSAMPLING) for end in ends)
        slopes.append((above - below)[visible] / (2.0 * step))
        moves.append((truth(ends[0])[1].center - truth(ends[1])[1].center) / (2.0 * step))
    J = np.array(slopes)
    return J @ J.T / (scene.noise**2 + 1.0 / 12.0), np.array(moves).T


def _moved(
    scene, u=0.0, v=0.0, size=0.0, tilt_1=0.0, tilt_2=0.0, shade_u=0.0, shade_v=0.0, **more
):
    pixel = np.add(project(scene.camera, np.array(scene.center)), (u, v))
    first, second, normal = plane_axes(scene)
    turned = normal + tilt_1 * np.cross(first, normal) + tilt_2 * np.cross(second, normal)
    s = scene.shading
    across = s.strength * math.cos(s.direction) + shade_u
    down = s.strength * math.sin(s.direction) + shade_v
    return scene.changed(
        center=tuple(back_project(scene.camera, pixel) * scene.center[2]),
        normal=tuple(turned),
        radius=scene.radius * (1.0 + size),
        # The bend is along the direction and stays as it is for small steps.
        shading=Shading(
            math.hypot(across, down), math.atan2(down, across), s.bend, s.at, s.length
        ),
        **{name: getattr(scene, name) + step for name, step in more.items()},
    )


def rms(covariance):
    return float(np.sqrt(np.mean(np.trace(covariance, axis1=-2, axis2=-1)) / 2.0))


def evaluate(detector, cases, bounds=0, ellipse_center=False):
    """Return what a detector reaches: at the ellipse's centre, or at that of the circle."""
    # bounds: for how many of the first cases the Cramer-Rao bound is calculated (a second each).
    errors, squares, limits, wrong = [], [], [], []
    for k, case in enumerate(cases):
        window = render(case.scene, OVERSAMPLING)
        normal = np.array(case.normal or case.scene.normal)
        status, center, covariance = detector(
            window.image, case.at(window), case.radius(window), window.camera, normal
        )
        if status != 'TRACKED':
            continue
        errors.append(center - (window.ellipse.center if ellipse_center else window.center))
        squares.append(errors[-1] @ np.linalg.solve(covariance, errors[-1]) / 2.0)
        # NaN is wrong too.
        if not math.hypot(*errors[-1]) <= WRONG:
            wrong.append(k)
        if k < bounds:
            limits.append(bound(case.scene)[int(ellipse_center)])
    count, bounded = max(len(errors), 1), np.linalg.norm(errors[: len(limits)])
    return Report(
        rms=float(np.linalg.norm(errors)) / math.sqrt(2.0 * count),
        flagged=1.0 - len(errors) / len(cases),
        wrong=wrong,
        ratio=bounded / math.sqrt(2.0 * len(limits)) / rms(np.array(limits))
        if limits
        else math.nan,
        normalised=sum(squares) / count,
    )
