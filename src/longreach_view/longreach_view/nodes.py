"""The nodes of a scene that show drawings: triangles, lines, arrows, bodies and texts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from longreach_view.drawing import Body, Figures, right_triangles

# Opacity and colour of what a second recording shows.
GHOST, GHOST_COLOUR = 0.25, (70, 110, 200)
# Width of lines that do not say it [m].
_LINE = 0.05
_TRIANGLE = (np.array([[0.0, 0, 0], [1, 0, 0], [0, 1, 0]]), np.array([[0, 1, 2]]))


class FigureNodes:
    """The nodes of one frame of a drawing."""

    def __init__(self, scene: Any, path: str, ghost: bool) -> None:
        self._scene, self._path, self._ghost = scene, path, ghost
        self._nodes: dict[str, Any] = {}

    def _remove(self, name: str) -> None:
        node = self._nodes.pop(name, None)
        if node is not None:
            node.remove()

    def remove(self) -> None:
        """Remove all."""
        for name in list(self._nodes):
            self._remove(name)

    def fade(self, opacity: float | None) -> None:
        """Set the opacity of surfaces; lines and arrows have none."""
        if 'triangles' in self._nodes:
            self._nodes['triangles'].opacity = opacity

    def show(self, figures: Figures) -> None:
        """Show what a message draws."""
        self._show_triangles(figures)
        if self._ghost:
            # What has no surface cannot be transparent.
            return
        width = figures.line_width or _LINE
        self._show_segments('lines', figures.lines, figures.line_colors, width)
        self._show_segments('arrows', figures.arrows, figures.arrow_colors)
        shown = {f'-{name}' for name in figures.bodies} | {f'+{name}' for name in figures.texts}
        for name in [n for n in self._nodes if n[0] in '-+' and n not in shown]:
            self._remove(name)
        for name, (text, place) in figures.texts.items():
            node = self._nodes.get(f'+{name}')
            if node is None:
                path = f'{self._path}/{name.replace("/", "_")}'
                node = self._scene.add_label(path, text, anchor='center-center')
                self._nodes[f'+{name}'] = node
            if node.text != text:
                node.text = text
            node.position = place
        for name, body in figures.bodies.items():
            self._show_body(f'-{name}', body)

    def _show_triangles(self, figures: Figures) -> None:
        """Show triangles as copies of one, which can be moved without new meshes."""
        node = self._nodes.get('triangles')
        if not len(figures.triangles):
            self._remove('triangles')
            return
        positions, rotations, scales = right_triangles(figures.triangles)
        colors = np.repeat(figures.triangle_colors, 2, axis=0).astype(np.uint8)
        if self._ghost:
            colors[:] = GHOST_COLOUR
        if node is not None and len(node.batched_positions) == len(positions):
            node.batched_positions = positions.astype(np.float32)
            node.batched_wxyzs = rotations.astype(np.float32)
            node.batched_scales = scales.astype(np.float32)
            if not np.array_equal(node.batched_colors, colors):
                node.batched_colors = colors
            return
        self._remove('triangles')
        self._nodes['triangles'] = self._scene.add_batched_meshes_simple(
            f'{self._path}/triangles',
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

    def _show_segments(
        self, kind: str, points: np.ndarray, colors: np.ndarray, width: float = 0.0
    ) -> None:
        """Show lines of a width [m] or arrows."""
        colors, name = colors.astype(np.uint8), f'{self._path}/{kind}'

        def add() -> Any:
            if kind == 'lines':
                return self._scene.add_line_segments(name, points, colors, thickness=width)
            return self._scene.add_arrows(
                name, points, colors, shaft_radius=0.03, head_radius=0.09, head_length=0.2
            )

        node = show_points(self._nodes, kind, points, add)
        if node is not None and not np.array_equal(node.colors, colors):
            node.colors = colors

    def _show_body(self, name: str, body: Body) -> None:
        """Show a box, sphere or cylinder of unit size, scaled."""
        node = self._nodes.get(name)
        if node is None:
            path = f'{self._path}/{name[1:].replace("/", "_")}'
            if body.kind == 'box':
                node = self._scene.add_box(path, body.color, (1.0, 1.0, 1.0))
            elif body.kind == 'sphere':
                node = self._scene.add_icosphere(path, 0.5, body.color)
            else:
                node = self._scene.add_cylinder(path, 0.5, 1.0, body.color)
            self._nodes[name] = node
        node.position, node.wxyz, node.scale = body.position, body.rotation, body.size
        if tuple(node.color) != body.color:
            node.color = body.color


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
