"""No kernel is compiled in a running tracker."""

import os
import subprocess
import sys
from pathlib import Path

PROGRAM = """
import dataclasses, sys
from numba.core.dispatcher import Dispatcher
from longreach_markers import Follower, ImageSet, Sightings, warm_up
from longreach_markers.tracking.clock_offset import estimate_offset
from longreach_markers.tracking.pose_agreement import agreement_of
from longreach_vision.simulator.camera_simulator import drawn_pictures, frame_times, simulators_of
from longreach_vision.simulator.scene import CameraLook
from small_commands import small_path
from small_rig import small_rig

def compiled():
    return {
        (name, key, signature)
        for name, module in list(sys.modules.items())
        if name.startswith(('longreach_markers', 'longreach_vision'))
        for key, value in vars(module).items()
        if isinstance(value, Dispatcher)
        for signature in value.signatures
    }

rig, path = small_rig(), small_path(2.0)
look = CameraLook(clutter=20, noise_everywhere=False, seed=3)
times = frame_times(path, 15.0)
pictures = list(drawn_pictures(simulators_of(rig, look), path, times))
warm_up()
before = compiled()
markers = tuple(marker.replace(position=None) for marker in rig.markers)
for one in (rig, dataclasses.replace(rig, markers=markers)):
    follower, sightings = Follower(one), Sightings(one)
    for k, time in enumerate(times):
        images = {p.camera: p.image.copy() for p in pictures[2 * k : 2 * k + 2]}
        # A bar crosses the markers, hides one half, then all of one image.
        images['left'][:, 6 * k : 6 * k + 25] = 60
        images['right'][:, 150 : 150 + 4 * k] = 90
        if 12 < k < 16:
            images['right'][:] = 90
        stamp = round(time * 1e9)
        late = stamp + (5_000_000 if k > 16 else 0)
        sightings.add(follower.update(ImageSet({'left': stamp, 'right': late}, images, False)))
    estimate_offset(sightings)
    agreement_of(sightings, ('left', 'right'))
late = compiled() - before
assert not late, late
"""


def test_no_kernel_is_compiled_after_the_warm_up():
    done = subprocess.run(
        [sys.executable, '-c', PROGRAM],
        cwd=Path(__file__).parent,
        env=os.environ | {'PYTHONPATH': os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
