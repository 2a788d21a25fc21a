"""
Benchmark of the centres of circular markers: the library and alternative programs.

All process the same windows, rendered by the tests' own renderer: radii of 10 to 30 px, tilt up to
60 deg, cards and clutter. All get approximate position and size of the marker, as from a tracker,
and select their result by these; AprilTags are at the same positions, with the marker's diameter
as side length. The error is the distance per axis from the projected centre, as RMS of those
within 0.5 px; the others count as wrong. False accepts are detections in windows with clutter and
without a marker. For a program that is not installed, the table has a row with a note.
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import cv2
import numpy as np
from bench_chain import module
from bench_ros import BenchmarkError
from bench_table import Row, Section, of_tests

from longreach_markers.camera.geometry import Plane, Pose
from longreach_markers.camera.model import Camera
from longreach_markers.io.images import gray_of
from longreach_markers.marker.detection import TRACKED, detect
from longreach_markers.rig import MarkerOnRig, MountedCamera, Rig, TrackingParameters
from longreach_markers.tracking.camera_tracker import CameraTracker
from longreach_vision.simulator.camera_simulator import CameraSimulator
from longreach_vision.simulator.scene import CameraLook, Scene

NAN = float('nan')
# An ellipse counts as the marker within these limits: distance [px], relative deviations of radius
# and area.
DISTANCE, RADIUS, AREA = 12.0, 0.3, 0.15
# Share of the light in blue, green, and red.
TINT = np.array([0.9, 1.0, 0.97])
# Grey levels of a tag are those of the marker; it needs a bright border.
TAG_CELLS = 8

Call = Callable[[], 'np.ndarray | None']


class Window(NamedTuple):
    """A rendered window, the given approximate values, and the true centre [px]."""

    image: np.ndarray
    at: np.ndarray
    radius: float
    camera: Any
    normal: np.ndarray
    center: np.ndarray


class Program(NamedTuple):
    """A program; ``make`` returns a function from windows to calls, which return the centre."""

    name: str
    make: Callable[[], Callable[[Window], Call]]
    tag: bool = False


def longreach() -> Callable[[Window], Call]:
    """Return the library's detector; only detections with status TRACKED count."""

    def prepare(window: Window) -> Call:
        c = window.camera
        camera = Camera(
            'window', c.width, c.height, c.fx, c.fy, c.cx, c.cy, 'plumb_bob', c.distortion
        )

        def call() -> np.ndarray | None:
            found = detect(
                window.image, window.at, window.radius, camera=camera, normal_cam=window.normal
            )
            return found.center if found.status == TRACKED else None

        return call

    return prepare


def contour() -> Callable[[Window], Call]:
    """Return threshold, contours and fitted ellipses."""

    def call(window: Window) -> np.ndarray | None:
        _, binary = cv2.threshold(window.image, 0, 255, cv2.THRESH_BINARY + cv2.THRESH_OTSU)
        contours, _ = cv2.findContours(binary, cv2.RETR_LIST, cv2.CHAIN_APPROX_NONE)
        ellipses = []
        for points in contours:
            if len(points) < 12:
                continue
            center, axes, _ = cv2.fitEllipse(points)
            area = np.pi / 4.0 * axes[0] * axes[1]
            if abs(cv2.contourArea(points) - area) < AREA * area:
                ellipses.append((center[0], center[1], max(axes) / 2.0))
        return most_likely(np.array(ellipses), window)

    return lambda window: lambda: call(window)


def blob() -> Callable[[Window], Call]:
    """Return the blob detector, with the limits of size that are known."""

    def prepare(window: Window) -> Call:
        parameters = cv2.SimpleBlobDetector.Params()
        parameters.filterByColor = False
        parameters.filterByCircularity = False
        parameters.filterByConvexity = False
        parameters.filterByInertia = False
        parameters.minArea = float(np.pi * (0.3 * window.radius) ** 2)
        parameters.maxArea = float(np.pi * (1.4 * window.radius) ** 2)
        detector = cv2.SimpleBlobDetector.create(parameters)

        def call() -> np.ndarray | None:
            # The size of a tilted blob is unreliable: selection by position only.
            found = [(*point.pt, window.radius) for point in detector.detect(window.image)]
            return most_likely(np.array(found), window)

        return call

    return prepare


def edge_drawing() -> Callable[[Window], Call]:
    """Return EdgeDrawing's ellipses."""
    if not hasattr(cv2, 'ximgproc'):
        raise BenchmarkError('not installed: PyPI has it in opencv-contrib-python-headless')
    detector = cv2.ximgproc.createEdgeDrawing()

    def call(window: Window) -> np.ndarray | None:
        detector.detectEdges(window.image)
        found: Any = detector.detectEllipses()
        if found is None:
            return None
        # x, y, radius of a circle, semi-axes of an ellipse, angle.
        rows = np.asarray(found, dtype=float).reshape(-1, 6)
        sizes = np.maximum(rows[:, 2], np.maximum(rows[:, 3], rows[:, 4]))
        return most_likely(np.column_stack([rows[:, :2], sizes]), window)

    return lambda window: lambda: call(window)


def april_tag() -> Callable[[Window], Call]:
    """Return the detector of tags, at full resolution."""
    detector = module('pupil_apriltags', 'pupil-apriltags').Detector(
        families='tag36h11', nthreads=1, quad_decimate=1.0
    )

    def call(window: Window) -> np.ndarray | None:
        found = detector.detect(window.image)
        # There, the corner of the first pixel is (0, 0), and not its centre.
        return np.array(found[0].center) - 0.5 if found else None

    return lambda window: lambda: call(window)


PROGRAMS = (
    Program('longreach', longreach),
    Program('OpenCV contour + fitEllipse', contour),
    Program('OpenCV SimpleBlobDetector', blob),
    Program('OpenCV EdgeDrawing', edge_drawing),
    Program('AprilTag', april_tag, tag=True),
)


def most_likely(ellipses: np.ndarray, window: Window) -> np.ndarray | None:
    """Return the centre of the ellipse that is closest to the approximate values, or None."""
    if ellipses.size == 0:
        return None
    away = np.hypot(*(ellipses[:, :2] - window.at).T) / DISTANCE
    size = np.abs(ellipses[:, 2] / window.radius - 1.0) / RADIUS
    best = int(np.argmin(away + size + 10.0 * (np.maximum(away, size) > 1.0)))
    return np.array(ellipses[best, :2]) if max(away[best], size[best]) <= 1.0 else None


def with_tag(scene: Any, evaluation: Any) -> Any:
    """Return a scene with a tag instead of the marker, on a card with a bright border."""
    dark, bright = sorted((scene.background, scene.marker))
    card = scene.card and evaluation.Card(max(scene.card.size, 1.6), 'square')
    # The first tag of the family, without its bright border.
    dictionary = cv2.aruco.getPredefinedDictionary(cv2.aruco.DICT_APRILTAG_36h11)
    cells = cv2.aruco.generateImageMarker(dictionary, 0, TAG_CELLS)
    texture = np.where(cells > 0, bright, dark)
    return scene.changed(texture=texture, background=bright, marker=dark, inner=0.0, card=card)


def windows(evaluation: Any, kind: str, count: int, tag: bool) -> list[Window]:
    """Render windows of one kind, with tags instead of circles if asked for."""
    result = []
    for case in evaluation.scenes(kind, count, seed=30):
        scene = with_tag(case.scene, evaluation) if tag and kind != 'empty' else case.scene
        rendered = evaluation.render(scene, evaluation.OVERSAMPLING)
        result.append(
            Window(
                rendered.image,
                case.at(rendered),
                case.radius(rendered),
                rendered.camera,
                np.array(scene.normal),
                rendered.center,
            )
        )
    return result


def centres(quick: bool) -> list[Row]:
    """Time one marker; the notes have error, share found, false accepts and wrong centres."""
    count, without, bounds, rounds = (20, 10, 5, 3) if quick else (300, 150, 100, 7)
    evaluation = of_tests('markers', 'evaluation')
    seen = {tag: windows(evaluation, 'base', count, tag) for tag in (False, True)}
    empty = windows(evaluation, 'empty', without, False)
    calls: dict[str, list[Call]] = {}
    results: dict[str, str] = {}
    threads = cv2.getNumThreads()
    cv2.setNumThreads(1)
    try:
        for program in PROGRAMS:
            try:
                prepare = program.make()
            except BenchmarkError as error:
                results[program.name] = str(error)
                continue
            calls[program.name] = [prepare(window) for window in seen[program.tag]]
            centers = [call() for call in calls[program.name]]
            false = sum(prepare(window)() is not None for window in empty)
            results[program.name] = summary(seen[program.tag], centers, false, without)
        times: dict[str, list[float]] = {name: [] for name in calls}
        # Interleaved, so that a change of the machine's speed affects all of them.
        for _ in range(rounds):
            for name, markers in calls.items():
                times[name].append(median_time(markers))
    finally:
        cv2.setNumThreads(threads)
    rows = [
        Row(program.name, tuple(times.get(program.name, [NAN])), note=results[program.name])
        for program in PROGRAMS
    ]
    cases = evaluation.scenes('base', bounds, seed=30)
    least = evaluation.rms(np.array([evaluation.bound(case.scene).known for case in cases]))
    return [*rows, Row('Cramer-Rao bound', (NAN,), note=f'{least:.4f} px')]


def disturbances(quick: bool) -> list[Row]:
    """Time the library's detector under each disturbance; the notes have the results."""
    count = 40 if quick else 60
    evaluation = of_tests('markers', 'evaluation')
    prepare = longreach()
    rows = []
    for kind in evaluation.KINDS:
        seen = windows(evaluation, kind, count, tag=False)
        calls = [prepare(window) for window in seen]
        centers = [call() for call in calls]
        errors = errors_of(seen, centers)
        wrong = int(np.sum(np.hypot(*errors.T) > 0.5))
        flagged = 100.0 * (1.0 - len(errors) / count)
        note = f'{flagged:.0f} % flagged, {wrong} wrong'
        if errors.size:
            note = (
                f'{np.sqrt(np.mean(errors**2)):.4f} px,'
                f' largest {np.abs(errors).max():.3f} px, {note}'
            )
        rows.append(Row(kind, (median_time(calls),), note=note))
    return rows


def pictures(quick: bool) -> list[Row]:
    """Time a marker in the images of one camera, as rendered and as decoded from MJPEG."""
    count = 8 if quick else 20
    rows = []
    for width, height in ((1920, 1080), (3840, 2160)):
        # Five markers.
        places = [[3.0 * k, 0.0, (-1) ** k] for k in range(-2, 3)]
        rig, drawn, centers = moving_markers(width, height, count, places)
        rng = np.random.default_rng(0)
        times: list[float] = []
        decoded: list[np.ndarray] = []
        for image in drawn:
            # A tint, and noise of each colour.
            colour = image[..., None] * TINT + rng.normal(0.0, 1.5, (*image.shape, 3))
            data = cv2.imencode(
                '.jpg',
                np.clip(colour, 0.0, 255.0).astype(np.uint8),
                [cv2.IMWRITE_JPEG_QUALITY, 90],
            )[1]
            started = time.process_time()
            decoded.append(gray_of(np.asarray(cv2.imdecode(data, cv2.IMREAD_COLOR))))
            times.append(time.process_time() - started)
        decoding = f', decoding {1e3 * statistics.median(times):.1f} ms an image'
        for name, images in (('as rendered', drawn), ('MJPEG 90, colour', decoded)):
            own, errors = track_markers(rig, images, centers)
            note = f'{np.sqrt(np.mean(np.square(errors))):.4f} px, found'
            note += f' {100.0 * len(errors) / (len(centers[0]) * (count - 1)):.0f} %'
            note += decoding if images is decoded else ''
            rows.append(Row(f'{height} rows, {name}', own, note=note))
    rig, drawn, centers = ten_neighbours(count)
    own, errors = track_markers(rig, drawn, centers)
    wrong = sum(math.hypot(*error) > 0.5 for error in errors)
    note = f'{len(errors)} of {10 * (count - 1)} TRACKED, {wrong} wrong'
    rows.append(Row('1080 rows, one of ten neighbours half hidden', own, note=note))
    return rows


def ten_neighbours(count: int) -> tuple[Rig, list[np.ndarray], list[np.ndarray]]:
    """Return moving markers in two rows; from the second image on, bars hide their halves."""
    places = [[0.468 * k, 0.0, z] for z in (-0.234, 0.234) for k in range(-2, 3)]
    rig, images, centers = moving_markers(1920, 1080, count, places)
    rng = np.random.default_rng(1)
    for image, seen in zip(images[1:], centers[1:], strict=True):
        left, right = int(seen[:, 0].min()) - 60, int(seen[:, 0].max()) + 60
        for half in (seen[:5], seen[5:]):
            top = round(float(half[:, 1].mean()))
            image[top : top + 18, left:right] = rng.integers(86, 95, (18, right - left))
    return rig, images, centers


def moving_markers(
    width: int, height: int, count: int, at: list[list[float]]
) -> tuple[Rig, list[np.ndarray], list[np.ndarray]]:
    """Return a rig of one camera, images of markers that move at 30 Hz, and their centres."""
    f = 1700.0 * width / 1920
    camera = Camera(
        'left', width, height, f, f, (width - 1) / 2, (height - 1) / 2, 'plumb_bob',
        (-0.1, 0.02, 0.0, 0.0),
    )  # fmt: skip
    pose = Pose.from_look_at((-2.0, -20.0, 0.5), (0.0, 0.0, 0.0))
    places = np.array(at)
    markers = tuple(
        MarkerOnRig(name, 0.18, position=tuple(place))
        for name, place in zip('abcdefghij', places.tolist(), strict=False)
    )
    plane = Plane(np.array([0.0, 1.0, 0.0]), 0.0)
    rig = Rig({'left': MountedCamera(camera, pose)}, plane, markers, TrackingParameters())
    look = CameraLook(clutter=40, card=1.5, seed=3, read_noise=2.5)
    simulator = CameraSimulator(camera, pose, Scene(markers, look))
    rng = np.random.default_rng(0)
    images, centers = [], []
    for k in range(count):
        moved = places + np.array([0.8, 0.0, 0.3]) * np.sin(2.0 * k / 30.0)
        images.append(simulator.image(moved, np.zeros_like(moved), 0.0, rng).copy())
        centers.append(simulator.centers(moved))
    return rig, images, centers


def track_markers(
    rig: Rig, images: list[np.ndarray], centers: list[np.ndarray]
) -> tuple[tuple[float, ...], list[np.ndarray]]:
    """Return the processor time per marker of each image, and errors of TRACKED markers [px]."""
    tracker = CameraTracker(rig, 'left')
    tracker.start_given(images[0], 0.0, {})
    times, errors = [], []
    for k in range(1, len(images)):
        started = time.process_time()
        seen = tracker.update(images[k], k / 30.0)
        times.append((time.process_time() - started) / len(seen))
        errors += [
            one.center - center
            for one, center in zip(seen.values(), centers[k], strict=True)
            if one.status == TRACKED
        ]
    return tuple(times), errors


def median_time(calls: list[Call]) -> float:
    """Return the median time of calls [s]."""
    times = []
    for call in calls:
        started = time.perf_counter()
        call()
        times.append(time.perf_counter() - started)
    return statistics.median(times)


def errors_of(seen: list[Window], centers: list[np.ndarray | None]) -> np.ndarray:
    """Return the errors (n, 2) of the centres that were found [px]."""
    pairs = zip(seen, centers, strict=True)
    found = [center - window.center for window, center in pairs if center is not None]
    return np.array(found).reshape(-1, 2)


def summary(seen: list[Window], centers: list[np.ndarray | None], false: int, empty: int) -> str:
    """Return the accuracy and the reliability of centres as text."""
    errors = errors_of(seen, centers)
    right = np.hypot(*errors.T) <= 0.5
    wrong = len(errors) - int(right.sum())
    error = f'{np.sqrt(np.mean(errors[right] ** 2)):.4f} px' if right.any() else '-'
    found = f'found {100.0 * len(errors) / len(seen):.0f} %'
    return f'{error}, {found}, wrong {wrong} of {len(seen)}, false {false} of {empty}'


SECTIONS = {
    'j': Section('Centre of one marker, per axis and RMS, in windows of 60 to 180 px', centres),
    'k': Section('The same by what disturbs it; the share that is not trusted', disturbances),
    'x': Section('One of some markers in an image of one camera, time of the processor', pictures),
}
