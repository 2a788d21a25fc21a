"""The nodes of a scene that show drawings: triangles, lines, arrows, bodies and texts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from longreach_machine.markers import Marker
from longreach_view.drawing import (
    ARROW,
    CUBE,
    CYLINDER,
    SPHERE,
    TEXT,
    TRIANGLE_LIST,
    Drawing,
    bytes_of,
    right_triangles,
    rotation_of,
    segments,
)

# Opacity and colour of what a second recording shows.
GHOST, GHOST_COLOUR = 0.25, (70, 110, 200)
# Width of lines that do not say it [m].
_LINE = 0.05
_TRIANGLE = (np.array([[0.0, 0, 0], [1, 0, 0], [0, 1, 0]]), np.array([[0, 1, 2]]))


class DrawingNodes:
    """The nodes of a drawing, one for each marker."""

    def __init__(self, scene: Any, topic: str, ghost: bool) -> None:
        self._scene, self._topic, self._ghost = scene, topic.strip('/').replace('/', '_'), ghost
        self._nodes: dict[str, Any] = {}

    def remove(self) -> None:
        """Remove all."""
        for node in self._nodes.values():
            node.remove()
        self._nodes = {}

    def show(self, drawing: Drawing, paths: Mapping[str, str], root: str) -> None:
        """Show a drawing in the nodes of its frames, ``root`` for unknown ones."""
        shown = {}
        for marker in drawing.markers():
            name = f'{self._topic} {marker.name}_{marker.number} {marker.kind}'.replace('/', '_')
            shown[f'{paths.get(marker.frame, root)}/{name}'] = marker
        for path in [path for path in self._nodes if path not in shown]:
            self._nodes.pop(path).remove()
        for path, marker in shown.items():
            if marker.kind == TRIANGLE_LIST:
                self._show_triangles(path, marker)
            elif self._ghost:
                # What has no surface cannot be transparent.
                continue
            elif marker.kind == TEXT:
                node = self._nodes.get(path)
                if node is None:
                    node = self._scene.add_label(path, marker.text, anchor='center-center')
                    self._nodes[path] = node
                if node.text != marker.text:
                    node.text = marker.text
                node.position = marker.position
            elif marker.kind in (CUBE, SPHERE, CYLINDER):
                self._show_body(path, marker)
            elif marker.kind != ARROW or len(marker.points) == 2:
                self._show_segments(path, marker)

    def _show_triangles(self, path: str, marker: Marker) -> None:
        """Show triangles as copies of one, which can be moved without new meshes."""
        corners, colors = marker.triangles()
        positions, rotations, scales = right_triangles(corners)
        colors = np.repeat(bytes_of(colors), 2, axis=0)
        if self._ghost:
            colors[:] = GHOST_COLOUR
        node = self._nodes.get(path)
        if node is not None and len(node.batched_positions) == len(positions):
            node.batched_positions = positions.astype(np.float32)
            node.batched_wxyzs = rotations.astype(np.float32)
            node.batched_scales = scales.astype(np.float32)
            if not np.array_equal(node.batched_colors, colors):
                node.batched_colors = colors
            return
        if node is not None:
            self._nodes.pop(path).remove()
        if not len(positions):
            return
        self._nodes[path] = self._scene.add_batched_meshes_simple(
            path,
            *_TRIANGLE,
            rotations,
            positions,
            batched_scales=scales,
            batched_colors=colors,
            opacity=GHOST if self._ghost else None,
            lod='off',
            side='double',
            flat_shading=True,
            cast_shadow=False,
            receive_shadow=False,
        )

    def _show_segments(self, path: str, marker: Marker) -> None:
        """Show lines or an arrow."""
        points, colors = segments(marker)
        if marker.kind == ARROW:
            colors = colors[:, 0]

        def add() -> Any:
            if marker.kind == ARROW:
                return self._scene.add_arrows(
                    path, points, colors, shaft_radius=0.03, head_radius=0.09, head_length=0.2
                )
            width = float(marker.scale[0])
            return self._scene.add_line_segments(
                path, points, colors, thickness=width if width > 0.0 else _LINE
            )

        node = show_points(self._nodes, path, points, add)
        if node is not None and not np.array_equal(node.colors, colors):
            node.colors = colors

    def _show_body(self, path: str, marker: Marker) -> None:
        """Show a box, sphere or cylinder of unit size, scaled."""
        node = self._nodes.get(path)
        color = tuple(bytes_of(marker.color).tolist())
        if node is None:
            if marker.kind == CUBE:
                node = self._scene.add_box(path, color, (1.0, 1.0, 1.0))
            elif marker.kind == SPHERE:
                node = self._scene.add_icosphere(path, 0.5, color)
            else:
                node = self._scene.add_cylinder(path, 0.5, 1.0, color)
            self._nodes[path] = node
        node.position, node.wxyz = marker.position, rotation_of(marker)
        node.scale = tuple(marker.scale.tolist())
        if tuple(node.color) != color:
            node.color = color


def show_points(
    nodes: dict[str, Any], key: str, points: np.ndarray, add: Callable[[], Any]
) -> Any:
    """Show points (N, 2, 3) by a node that is moved, or made anew for another number of them."""
    node = nodes.get(key)
    if node is not None and len(node.points) == len(points):
        node.points = points.astype(np.float32)
    else:
        if node is not None:
            nodes.pop(key).remove()
        if not len(points):
            return None
        node = nodes[key] = add()
    return node
