"""Markers that swing before two cameras or more, with faults; images that are followed."""

import dataclasses
import math

import numpy as np
from known_rig import LENS, POSES, moved_pose
from small_rig import seen_at

from longreach_markers import (
    MarkerOnRig,
    MountedCamera,
    Picture,
    Plane,
    Pose,
    Rig,
    RigFrame,
    Sightings,
    follow,
)
from longreach_markers.tracking.clock_offset import estimate_offset

PLACES = np.array([(5.0, 0.0, 1.0), (14.0, 0.0, 8.0), (24.0, 0.0, 3.0)])
NAMES = ('one', 'two', 'three')
PIXEL = 0.02  # standard deviation [px]
UP = (0.0, 0.0, 1.0)
TOP = Pose.from_look_at((14.0, -20.0, 9.0), (13.5, 0.0, 4.0))


def estimated(offset, *, search=True, **given):
    return estimate_offset(seen(offset, **given), search=search)


def seen(offset, **given):
    """Return what two cameras see, the right one with stamps that are late by ``offset`` [s]."""
    return sightings_of(*frames_seen({'left': 0.0, 'right': offset}, **given))


def sightings_of(rig, frames):
    sightings = Sightings(rig)
    for frame in frames:
        sightings.add(frame)
    return sightings


def frames_seen(
    delays,
    *,
    shown=None,
    amplitude=1.0,
    along=UP,
    duration=8.0,
    rate=30.0,
    pitch=0.0,
    since=0.0,
    dropped=0.0,
    wrong=0.0,
    seed=0,
    line_time=0.0,
    apart=0.0,
    stated=0.0,
    pixel=PIXEL,
    lost=('', 0.0, 0),
    late=(0.0, 0.0, 0.0),
    lens=0.0,
    start=0.0,
    drift=0.0,
    jitter=0.0,
    creep=0.0,
):
    """
    Return a rig, and pixels of three markers that swing, with a noise of ``pixel`` [px].

    Stamps of cameras are late by ``delays`` [s]. A camera may be ``shown`` some markers only. The
    right camera is pitched ``since`` a time, or creeps [rad/s]. ``dropped`` images and ``wrong``
    pixels (by 3 px) are shares. Images have a line time [s], of which the rig states a part; that
    of the right camera is longer by ``apart``. A camera has ``lost`` images before a time, and
    stamps the others by their number. Stamps of the left camera are ``late`` by a time between two
    times. The lens is wrong by a wave [px]. Stamps begin at ``start`` [s]; those of the right
    camera ``drift``, all ``jitter`` [s].
    """
    rng = np.random.default_rng(seed)
    poses = POSES | {'top': TOP}
    rig = Rig(
        {side: MountedCamera(LENS, poses[side], line_time=stated) for side in delays},
        Plane(np.array([0.0, 1.0, 0.0]), 0.0),
        tuple(MarkerOnRig(name, 0.18) for name in NAMES),
    )
    frames = []
    camera, first, count = lost

    def motion(time):
        phases = np.array([0.0, 1.0, 2.0])
        swing = np.sin(1.6 * time + phases) + 0.3 * np.sin(4.1 * time + 2.0 * phases)
        return PLACES + amplitude * np.outer(swing, along)

    for k in range(round(duration * rate)):
        time = k / rate
        observations = {}
        for side, delay in delays.items():
            at = time - delay - drift * time * (side == 'right')
            if rng.random() < dropped:
                continue
            if side == camera and time > first - 0.5 / rate:
                at += count / rate
            pose = poses[side]
            if side == 'right':
                pose = moved_pose(pose, np.append(pitch * (at >= since) + creep * at, np.zeros(5)))
            pixels = LENS.project(pose.to_camera(motion(at)))
            for _ in range(5 if line_time else 0):
                own = line_time + apart * (side == 'right')
                rows = at + own * (pixels[:, 1] - 0.5 * (LENS.height - 1.0))
                places = np.array([motion(row)[k] for k, row in enumerate(rows)])
                pixels = LENS.project(pose.to_camera(places))
            pixels += lens * np.sin(pixels / 100.0 + 2.0 * (side == 'right'))
            pixels += pixel * rng.standard_normal(pixels.shape)
            pixels += 3.0 * (rng.random((3, 1)) < wrong)
            observations[side] = {
                name: dataclasses.replace(seen_at(*uv), covariance=pixel**2 * np.eye(2))
                for name, uv in zip(NAMES, pixels, strict=True)
                if shown is None or name in shown[side]
            }
        if observations:
            times = dict.fromkeys(observations, start + time)
            for side in times if jitter else ():
                times[side] += jitter * rng.standard_normal()
            if 'left' in times:
                times['left'] += late[0] * (late[1] < time < late[2])
            gap = 0.0 if len(observations) > 1 else math.nan
            frames.append(RigFrame(start + time, gap, observations, {}, times=times))
    return rig, frames


def followed(follower, image, count, rate=30.0):
    """Return the results of images, by camera and number, that are taken at a rate [Hz]."""
    pictures = (
        Picture(side, round(1e9 * k / rate), image(side, k), '')
        for k in range(count)
        for side in follower.tracker.rig.cameras
    )
    return [one.frame for one in follow(follower, pictures)]
