"""Simulated pictures of markers: windows around them are drawn on a stored background."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

import numpy as np

from longreach_dynamics.errors import InputError, check_among
from longreach_markers import Camera, MarkerOnRig, Picture, Pose, Rig
from longreach_vision.simulator.drawing_kernels import (
    NOISE_LENGTH,
    View,
    cell_weights,
    draw_background,
    draw_bars,
    draw_markers,
    lit_background,
    noise_field,
)
from longreach_vision.simulator.marker_path import FrameTimes, MarkerPath
from longreach_vision.simulator.scene import CameraLook, Occluder, Scene, backdrop


class CameraSimulator:
    """A camera at T_world_cam, with a time between rows [s]; pictures are in the same array."""

    def __init__(self, camera: Camera, pose: Pose, scene: Scene, line_time: float = 0.0) -> None:
        self.camera, self.pose, self.scene = camera, pose, scene
        self._line_time = line_time
        look = scene.look
        self._image = np.empty((camera.height, camera.width), dtype=np.uint8)
        self._view = View(*(getattr(look, name) for name in View._fields))
        self._pose_rows = np.vstack([pose.rotation, pose.translation])
        self._weights = cell_weights(look.blur)
        self._markers = np.zeros((len(scene.markers), 13))
        self._markers[:, 6:9] = np.array(scene.normal) / math.hypot(*scene.normal)
        for row, marker in zip(self._markers, scene.markers, strict=True):
            row[9:] = marker.radius, marker.inner, marker.bright, look.card
        offsets = np.array([marker.offset for marker in scene.markers])
        self._offsets = self._markers[:, 6:9] * offsets[:, None]
        # Equal noise in all cameras of a rig would cancel in differences of their pictures.
        own = np.random.default_rng([look.seed, *camera.name.encode()])
        self._noise = noise_field(own, camera.width)
        self._clean = lit_background(backdrop(look, camera.width, camera.height), self._view)
        self._starts = own.integers(0, NOISE_LENGTH, camera.height)
        # Background with occluders, and with noise as well if that is constant.
        self._covered, self._behind = self._clean.copy(), np.empty_like(self._image)
        self._bars = np.full((1, 8), np.nan)
        # Of each marker in the latest picture, (n, 4) [u0, v0, u1, v1], ends excluded.
        self.windows = np.zeros((len(scene.markers), 4), dtype=np.int64)

    def centers(self, marker_positions: np.ndarray) -> np.ndarray:
        """Return the exact centres (n, 2) [px] of markers at (n, 3) [m]; NaN if not seen."""
        points = np.asarray(marker_positions, dtype=np.float64) + self._offsets
        return np.asarray(self.camera.project(self.pose.to_camera(points), strict=False))

    def image(
        self,
        marker_positions: np.ndarray,
        marker_velocities: np.ndarray,
        time: float,
        rng: np.random.Generator,
    ) -> np.ndarray:
        """Draw the picture at a time."""
        markers = self._placed(marker_positions, marker_velocities)
        bars = self._bars_at(time)
        everywhere, noise = self.scene.look.noise_everywhere, (self._noise, self._view)
        if not np.array_equal(bars, self._bars):
            # Seldom, unless they move.
            self._bars = bars
            if self.scene.look.occluders:
                draw_bars(self._covered, self._clean, self._view, bars)
            if not everywhere:
                draw_background(self._behind, self._covered, *noise, self._starts)
                self._image[:] = self._behind
        if everywhere:
            starts = rng.integers(0, NOISE_LENGTH, self.camera.height)
            draw_background(self._image, self._covered, *noise, starts)
        else:
            for u0, v0, u1, v1 in self.windows:
                self._image[v0:v1, u0:u1] = self._behind[v0:v1, u0:u1]
        # In parallel planes the nearest is last, and covers the others.
        away = np.einsum('ij,ij->i', markers[:, :3] - self.pose.translation, markers[:, 6:9])
        order = np.argsort(-np.abs(away).round(6), kind='stable')
        draw_markers(
            self._image,
            self._clean,
            self._noise,
            self._weights,
            self.camera.packed,
            self._pose_rows,
            markers,
            order,
            self._view,
            bars,
            rng.integers(NOISE_LENGTH),
            self.windows,
        )
        return self._image

    def _placed(self, positions: np.ndarray, velocities: np.ndarray) -> np.ndarray:
        there = np.isfinite(positions).all(axis=1)
        markers = self._markers.copy()
        markers[:, :3] = positions + self._offsets
        markers[:, 3:6] = velocities
        if self._line_time:
            # Where it is at the time of its centre's row; its shape is not sheared.
            middle = 0.5 * (self.camera.height - 1.0)
            still = markers[there, :3]
            # The row follows the motion, which is slow against the read-out.
            for _ in range(3):
                points = self.pose.to_camera(markers[there, :3])
                rows = self.camera.project(points, strict=False)[:, 1]
                delays = np.nan_to_num(self._line_time * (rows - middle))
                markers[there, :3] = still + delays[:, None] * velocities[there]
        # Behind the camera, where nothing is drawn.
        markers[~there, :3] = self.pose.translation - self.pose.rotation[:, 2]
        markers[~there, 3:6] = 0.0
        return markers

    def _bars_at(self, time: float) -> np.ndarray:
        rows = []
        for occluder in self.scene.look.occluders:
            ends = occluder.at(time)
            if occluder.camera not in ('', self.camera.name) or ends is None:
                continue
            way = ends[1] - ends[0]
            length = float(np.hypot(*way))
            normal = np.array([-way[1], way[0]]) / length
            limits = (-occluder.width / 2.0, occluder.width / 2.0, length / 2.0)
            grey = occluder.grey * self._view.gain
            rows.append([*ends.mean(axis=0), *normal, *limits, grey])
        return np.array(rows).reshape(-1, 8)


def warm_up() -> None:
    """Compile the kernels, or load them from the cache."""
    camera = Camera('warm_up', 64, 48, 60.0, 60.0, 31.5, 23.5)
    looks_along_y = np.array([[1.0, 0.0, 0.0], [0.0, 0.0, 1.0], [0.0, -1.0, 0.0]])
    bar = Occluder(start=(0.0, 0.0), end=(64.0, 48.0), width=3.0, vanishes=1.0)
    look = CameraLook(clutter=0, occluders=(bar,))
    scene = Scene((MarkerOnRig('one', 0.1),), look)
    simulator = CameraSimulator(camera, Pose(looks_along_y, np.zeros(3)), scene)
    rng = np.random.default_rng(0)
    for time in (0.0, 1.0):
        simulator.image(np.array([[0.0, 1.0, 0.0]]), np.zeros((1, 3)), time, rng)


def frame_rng(seed: int, camera: str, number: int) -> np.random.Generator:
    """Return the generator of the noise of one image, determined by these arguments."""
    return np.random.default_rng([seed, number, *camera.encode()])


_SECOND = 1_000_000_000  # [ns]


def simulators_of(rig: Rig, look: CameraLook) -> dict[str, CameraSimulator]:
    """Return simulators of the cameras of a rig, with markers parallel to its plane."""
    for number, occluder in enumerate(look.occluders):
        if occluder.camera:
            what = f'occluders[{number}].camera'
            check_among(what, occluder.camera, rig.cameras, ', or empty for all')
    scene = Scene(rig.markers, look, tuple(rig.plane.normal.tolist()))
    return {
        name: CameraSimulator(
            mounted.camera.replace(name=name), mounted.pose, scene, line_time=mounted.line_time
        )
        for name, mounted in rig.cameras.items()
    }


def frame_times(path: MarkerPath, rate: float, duration: float | None = None) -> np.ndarray:
    """Return the times k / rate within a path, shape (K,) [s]."""
    begin, end = path.times[[0, -1]].tolist()
    if begin < 0.0:
        raise InputError(
            f'path of [{begin:g}, {end:g}] s, allowed: times from 0 on; add the same to all of'
            ' them'
        )
    times = FrameTimes(rate)
    number = times.number_after(round(begin * _SECOND) - 1)
    first, last = times.stamp(number), round(end * _SECOND)
    if first > last:
        raise InputError(
            f'no image at {rate:g} Hz falls on the path of [{begin:g}, {end:g}] s; raise --rate'
        )
    stamps = []
    # Half a nanosecond more: 4.1 * 1e9 is less than 4,100,000,000.
    limit = math.inf if duration is None else duration * _SECOND + 0.5
    while (stamp := times.stamp(number)) <= last and stamp - first <= limit:
        stamps.append(stamp)
        number += 1
    return np.array(stamps) / _SECOND


def drawn_pictures(
    simulators: Mapping[str, CameraSimulator],
    path: MarkerPath,
    times: np.ndarray,
    delays: Mapping[str, int] | None = None,
) -> Iterator[Picture]:
    """Yield simulated images of a path."""
    paths = {
        name: path.of([marker.name for marker in one.scene.markers])
        for name, one in simulators.items()
    }
    for number, time in enumerate(times.tolist()):
        for name, simulator in simulators.items():
            rng = frame_rng(simulator.scene.look.seed, name, number)
            drawn = simulator.image(*paths[name].at(time), time, rng)
            # The simulator reuses its buffer for the next picture.
            stamp = round(time * _SECOND) + (delays or {}).get(name, 0)
            yield Picture(name, stamp, drawn.copy(), f'image {number} of {name}')
