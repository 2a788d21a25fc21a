"""Scene of simulated cameras: markers on square cards of opposite brightness, look, occluders."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path
from typing import Any, NamedTuple

import cv2
import numpy as np

from longreach_dynamics.errors import InputError
from longreach_dynamics.parameters import Parameters, load, quantity
from longreach_dynamics.resources import data_directory
from longreach_markers import MarkerOnRig

# Largest cells of the coarsest and of the finest texture [px].
_COARSE, _FINE = 512, 4
# Half size of clutter [px].
_CLUTTER = (4.0, 90.0)


@dataclasses.dataclass(frozen=True)
class Occluder(Parameters):
    """Bar of one grey level in the image, with straight edges, in front of all markers."""

    start: tuple[float, ...] = quantity('start of its middle line, u v', 'px', length=2)
    end: tuple[float, ...] = quantity('end of its middle line, u v', 'px', length=2)
    width: float = quantity('width', 'px', above=0.0)
    velocity: tuple[float, ...] = quantity(
        'velocity; start and end are positions at the time appears',
        'px/s',
        length=2,
        default=(0.0, 0.0),
    )
    camera: str = quantity('camera in which it is visible; empty for all', '', default='')
    grey: float = quantity('grey level', 'grey levels', at_least=0.0, at_most=255.0, default=60.0)
    appears: float = quantity('time at which it appears', 's', default=0.0)
    vanishes: float | None = quantity(
        'time at which it vanishes; none for never', 's', default=None
    )

    def check(self) -> None:
        """Raise InputError for a bar without length."""
        if self.start == self.end:
            raise InputError(f'start and end are both {list(self.start)}, allowed: two points')

    def at(self, time: float) -> np.ndarray | None:
        """Return both ends (2, 2) at a time [s], in px; None while it is not visible."""
        if time < self.appears or (self.vanishes is not None and time >= self.vanishes):
            return None
        way = np.array(self.velocity) * (time - self.appears)
        return np.array([self.start, self.end]) + way

    def scaled(self, factor: float) -> Occluder:
        """Return the occluder for images resized by a factor."""
        # Pixel centres have integer coordinates.
        start, end = (
            tuple((value + 0.5) * factor - 0.5 for value in one) for one in (self.start, self.end)
        )
        velocity = tuple(value * factor for value in self.velocity)
        return self.replace(start=start, end=end, width=self.width * factor, velocity=velocity)


def _real(meaning: str, default: float, most: float, unit: str = '1') -> Any:
    return quantity(meaning, unit, at_least=0.0, at_most=most, default=default)


def _grey(meaning: str, default: float, most: float = 255.0) -> Any:
    return _real(meaning, default, most, 'grey levels')


@dataclasses.dataclass(frozen=True)
class CameraLook(Parameters):
    """Look of simulated pictures, common to all cameras of a rig."""

    exposure: float = _real(
        'exposure time; the stamp of an image is the middle of it', 0.002, 1.0, 's'
    )
    blur: float = _real(
        'standard deviation of the blur of lens and focus, in pixels of the rendered image',
        0.8,
        10.0,
        'px',
    )
    white: float = _grey('grey level of bright parts of markers and cards', 215.0, 1e3)
    black: float = _grey('grey level of dark parts', 35.0, 1e3)
    card: float = _real(
        'half the side of the card over the outer radius of the marker; 0: no card', 1.6, 10.0
    )
    gain: float = quantity(
        'factor on all grey levels before noise', above=0.0, at_most=1e3, default=1.0
    )
    read_noise: float = _grey('standard deviation of the noise without light', 1.5)
    shot_noise: float = _grey('noise variance per grey level', 0.02)
    noise_everywhere: bool = quantity(
        'new noise in the whole image each time; else only around markers, constant elsewhere',
        default=True,
    )
    vignetting: float = _real('loss of light in the corners', 0.15, 1.0)
    shading: tuple[float, ...] = quantity(
        'relative change of the light from left to right, and from top to bottom',
        at_least=-1.9,
        at_most=1.9,
        length=2,
        default=(0.1, 0.05),
    )
    sky: float = _grey('background at the top', 190.0)
    ground: float = _grey('background at the bottom', 120.0)
    texture: float = _grey("standard deviation of the background's texture", 8.0, 100.0)
    clutter: int = quantity(
        'polygons, lines and discs in the background', at_least=0, at_most=10_000, default=60
    )
    seed: int = quantity('seed of background and noise', at_least=0, default=1)
    occluders: tuple[Occluder, ...] = quantity('objects in front of the markers', '', default=())

    def scaled(self, factor: float) -> CameraLook:
        """Return the look for images resized by a factor; scales occluders."""
        if factor == 1.0:
            return self
        return self.replace(occluders=tuple(one.scaled(factor) for one in self.occluders))


def load_look(path: str | Path | None = None) -> CameraLook:
    """Read a look from a YAML file; by default the installed ``simulated_cameras.yaml``."""
    installed = data_directory('longreach_vision') / 'config' / 'simulated_cameras.yaml'
    return load(CameraLook, path or installed)


class Scene(NamedTuple):
    """Everything that simulated cameras see."""

    markers: tuple[MarkerOnRig, ...]  # in the order of their positions
    look: CameraLook = CameraLook()
    normal: tuple[float, ...] = (0.0, 1.0, 0.0)  # of their planes, of either sign and any length


def backdrop(look: CameraLook, width: int, height: int) -> np.ndarray:
    """Return the background (height, width), determined by seed and size, without shading."""
    rng = np.random.default_rng((look.seed, width, height))
    fall = np.linspace(look.sky, look.ground, height, dtype=np.float32)
    image = np.repeat(fall[:, None], width, axis=1)
    if look.texture:
        image += look.texture * _texture(rng, width, height)
    for _ in range(look.clutter):
        _draw_clutter(image, rng)
    if look.blur:
        image = cv2.GaussianBlur(image, (0, 0), look.blur).astype(np.float32, copy=False)
    return np.clip(image, 0.0, 255.0)


def _texture(rng: np.random.Generator, width: int, height: int) -> np.ndarray:
    image = np.zeros((height, width), dtype=np.float32)
    size = _COARSE
    while size >= _FINE:
        grid = rng.standard_normal((height // size + 2, width // size + 2)).astype(np.float32)
        layer = cv2.resize(grid, None, fx=size, fy=size, interpolation=cv2.INTER_LINEAR)
        # Coarse structures are stronger than fine ones, as in natural images.
        image += math.sqrt(size) * layer[:height, :width]
        size //= 2
    deviation = float(image.std())
    return (image - image.mean()) / deviation if deviation else image


def _draw_clutter(image: np.ndarray, rng: np.random.Generator) -> None:
    height, width = image.shape
    middle = rng.uniform((0.0, 0.0), (width, height))
    size = float(np.exp(rng.uniform(*np.log(_CLUTTER))))
    grey = float(rng.uniform(20.0, 235.0))
    kind = int(rng.integers(3))
    if kind == 0:
        angles = np.sort(rng.uniform(0.0, 2.0 * np.pi, int(rng.integers(3, 7))))
        corners = middle + size * np.column_stack([np.cos(angles), np.sin(angles)])
        cv2.fillPoly(image, [np.rint(corners).astype(np.int32)], (grey,), cv2.LINE_8)
    elif kind == 1:
        ends = np.rint([middle, middle + 4.0 * size * rng.standard_normal(2)]).astype(int)
        thickness = int(rng.integers(1, 8))
        cv2.line(image, ends[0].tolist(), ends[1].tolist(), (grey,), thickness)
    else:
        cv2.circle(image, np.rint(middle).astype(int).tolist(), round(size / 2.0), (grey,), -1)
