"""Simulated cameras and tracker in one node: images bypass the middleware."""

from __future__ import annotations

import dataclasses

from longreach_vision.ros.camera_node import CameraNode
from longreach_vision.ros.node_parameters import (
    CameraNodeParameters,
    TrackerParameters,
    tracking_of_rig,
)
from longreach_vision.ros.tracker_node import MarkerTracker


@dataclasses.dataclass(frozen=True, kw_only=True)
class SimulatedParameters(CameraNodeParameters, TrackerParameters):
    """Parameters of simulated cameras and tracker."""


class SimulatedNode(CameraNode):
    """Simulated cameras, and a tracker of the markers in their images."""

    def __init__(self) -> None:
        super().__init__('simulated', SimulatedParameters, tracking_of_rig)
        settings = self.settings
        assert isinstance(settings, SimulatedParameters)
        self._tracker = MarkerTracker(self, settings, 'tracker')
        self.viewer = self._tracker.add

    def change(self, settings: CameraNodeParameters) -> None:
        """Continue with parameters that were changed at run time."""
        super().change(settings)
        assert isinstance(settings, SimulatedParameters)
        self._tracker.change(settings)

    def is_watched(self) -> bool:
        """Return whether the required subscribers of images and results are present."""
        return self._tracker.has_recorders() and super().is_watched()
