"""The 3D scene of a page: machines side by side, their shapes, drawings and measured markers."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Mapping
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import viser
from viser.transforms import SO3

from longreach_machine.description import Robot, Shape, placed
from longreach_view.drawing import reach
from longreach_view.nodes import GHOST, GHOST_COLOUR, DrawingNodes, show_points
from longreach_view.world import Machine, Mounting

# Width of the panel beside the scene [pixels].
PANEL_WIDTH = 400
# Exaggeration of the ellipsoids of one standard deviation of measured positions.
ELLIPSE = 10.0

# Between machines, and of the ground's lines [m].
_GAP, _CELL, _SECTION = 3.0, 1.0, 5.0
# On white and on black.
_LINES = (132, 138, 146)
# Greatest length of a row of machines over that of the longest one.
_ROW = 1.3
_FIELD_OF_VIEW = math.radians(45.0)
# From where the camera looks: from the side of the machines' planes, ahead and above.
_FROM = np.array([0.30, -1.0, 0.32])
# Narrower pages have the panel below [pixels], over this share of their height.
_NARROW, _BELOW = 768, 0.6
# Room for texts at the sides [pixels].
_TEXT = 15
_TRACK = 0.03
# Largest height of a machine's name above it [m], and as a share of its size.
_ABOVE = (0.4, 0.1)
# Length of the pyramid that shows a camera, and its colour [m].
_CAMERA, _CAMERA_COLOUR = 1.5, (240, 120, 20)
# Of the shadow below what stands on the ground: greatest height of that, steps, widths and heights
# of steps [m], opacity of each.
_NEAR, _STEPS, _STEP_WIDTH, _STEP_HEIGHT, _STEP_OPACITY = 1.3, 4, 0.2, 0.005, 0.07
_STILL = 1e-9
# A camera that is further from where it was put was moved by hand [m, and share].
_MOVED = 1e-3
# What is seen without a machine, lowest and highest coordinates [m].
_EMPTY = np.array([[-5.0, -5.0, 0.0], [5.0, 5.0, 4.0]])
# Further room where a machine moves out of its own, so that pages do not follow each time [share].
_ROOM = 0.05


def _pose(transform: np.ndarray) -> dict[str, np.ndarray]:
    """Return position and rotation of a node, for a transform (4, 4)."""
    turn = SO3.from_matrix(transform[:3, :3])
    return {'position': transform[:3, 3], 'wxyz': turn.wxyz}


# Lowest and highest coordinates [m].
Box = tuple[np.ndarray, np.ndarray]


class _MachineScene:
    """A machine's nodes."""

    def __init__(self, scene: Any, path: str, title: str, ghost: bool) -> None:
        self._scene, self._path, self.title, self._ghost = scene, path, title, ghost
        self.frame = scene.add_frame(path, show_axes=False)
        self.robot: Robot | None = None
        self.positions: Mapping[str, float] = {}
        self.bounds = (np.zeros(3), np.zeros(3))
        # Of the cameras in its frames, which other machines may be beside.
        self.cameras: dict[str, Box] = {}
        # Of the first drawing of each topic: paths, soil, names.
        self._reach: dict[str, Box] = {}
        self.label: Any = None
        self._shapes: list[Any] = []
        # Shapes by link, and the links that are not shown.
        self._of_link: dict[str, list[Any]] = {}
        self._hidden: frozenset[str] = frozenset()
        self._origins: list[Any] = []
        self._joints: dict[str, Any] = {}
        self._shown: dict[str, float] = {}
        self.paths: dict[str, str] = {}
        # By topic, and their versions.
        self._drawings: dict[str, DrawingNodes] = {}
        self._drawn: dict[str, int] = {}
        self._markers: dict[str, Any] = {}
        self._cameras: dict[str, tuple[Any, Any]] = {}
        self.height = 0.0
        self.placed = False
        self.version = 0

    def clear(self) -> None:
        """Remove drawings, cameras and measured markers; they are drawn anew."""
        for nodes in self._drawings.values():
            nodes.remove()
        for node in (*self._markers.values(), *(node for _, node in self._cameras.values())):
            node.remove()
        self._drawings, self._drawn, self._markers, self._cameras = {}, {}, {}, {}

    def build(self, robot: Robot | None) -> None:
        """Create the nodes of a robot description."""
        # Children first: a node takes them with it.
        for node in (*self._shapes, *reversed(self._origins)):
            node.remove()
        self._shapes, self._origins, self._joints, self._of_link = [], [], {}, {}
        self._shown, self.paths = {}, {}
        self.robot = robot
        if robot is None:
            return
        self.paths = {robot.root: self._path}
        for joint in robot.joints.values():
            name = joint.child.rpartition('/')[2]
            # A frame at position 0, and in it one that moves.
            path = f'{self.paths[joint.parent]}/{name}_origin'
            self._origins.append(
                self._scene.add_frame(path, show_axes=False, **_pose(joint.origin))
            )
            self.paths[joint.child] = f'{path}/{name}'
            self._joints[joint.name] = self._scene.add_frame(f'{path}/{name}', show_axes=False)
        for k, shape in enumerate(robot.shapes):
            node = self._add(f'{self.paths[shape.link]}/shape{k}', shape)
            self._shapes.append(node)
            self._of_link.setdefault(shape.link.rpartition('/')[2], []).append(node)
        self._hidden = frozenset()
        # What hangs or stands lowest with all joints at 0 is on the ground.
        self.height = -float(robot.bounds({})[0][2])
        if not self._ghost:
            self._shade(robot)
        self.placed = False

    def _shade(self, robot: Robot) -> None:
        """Darken the ground below what does not move, in steps that make a soft edge."""
        still, moved = robot.place({}), robot.place(dict.fromkeys(robot.joints, 0.1))
        corners = [
            placed(shape.points, still[shape.link])
            for shape in robot.shapes
            if np.array_equal(still[shape.link], moved[shape.link])
        ]
        near = [one for one in corners if one[:, 2].min() < _NEAR - self.height]
        if not near:
            return
        places = np.concatenate(near)
        middle, half = 0.5 * (places.max(0) + places.min(0)), 0.5 * np.ptp(places, axis=0)
        square = np.array([[-1.0, -1.0], [1.0, -1.0], [1.0, 1.0], [-1.0, 1.0]])
        for k in range(_STEPS):
            size = half[:2] + _STEP_WIDTH * (_STEPS - 1 - k)
            level = np.full((4, 1), _STEP_HEIGHT * (k + 1) - self.height)
            node = self._scene.add_mesh_simple(
                f'{self._path}/shadow{k}',
                np.hstack([middle[:2] + size * square, level]).astype(np.float32),
                np.array([[0, 1, 2], [0, 2, 3]], dtype=np.uint32),
                color=(0, 0, 0),
                opacity=_STEP_OPACITY,
                cast_shadow=False,
                receive_shadow=False,
            )
            self._origins.append(node)

    def place(self, robot: Robot, positions: Mapping[str, float]) -> bool:
        """Note the room of a robot as it stands when first seen; return whether that was now."""
        if self.placed:
            return False
        self.placed = bool(positions)
        self.bounds = _around(robot.bounds(positions), *self._reach.values())
        self._name()
        return self.placed

    def _name(self) -> None:
        """Put the machine's name above its room."""
        if self.label is None and not self._ghost:
            self.label = self._scene.add_label(
                f'{self._path}/name', self.title, anchor='bottom-center'
            )
        if self.label is not None:
            low, high = self.bounds
            self.label.position = (0.5 * (low[0] + high[0]), 0.0, high[2] + _above(self.bounds))

    def follow(self) -> None:
        """Extend the room to where the robot has moved."""
        if self.robot is None or not self.placed:
            return
        low, high = self.robot.bounds(self.positions)
        room = _ROOM * np.ptp(self.bounds, axis=0)
        is_out = (low < self.bounds[0], high > self.bounds[1])
        if np.any(is_out):
            self.bounds = (
                np.where(is_out[0], low - room, self.bounds[0]),
                np.where(is_out[1], high + room, self.bounds[1]),
            )
            self._name()

    def _add(self, path: str, shape: Shape) -> Any:
        """Create the node of a shape."""
        color = tuple(round(255.0 * c) for c in shape.color[:3])
        opacity = GHOST if self._ghost else None if shape.color[3] >= 1.0 else shape.color[3]
        options: dict[str, Any] = {'opacity': opacity, **_pose(shape.pose)}
        if self._ghost:
            color, options['cast_shadow'] = GHOST_COLOUR, False
        if shape.kind == 'box':
            return self._scene.add_box(path, color, shape.size, **options)
        if shape.kind == 'cylinder':
            return self._scene.add_cylinder(
                path, *shape.size, color, radial_segments=20, **options
            )
        return self._scene.add_icosphere(path, *shape.size, color, **options)

    def move(self, robot: Robot, positions: Mapping[str, float]) -> None:
        """Move the joints whose positions have changed."""
        for joint in robot.joints.values():
            if joint.kind == 'fixed' or not {joint.name, joint.leader} & positions.keys():
                continue
            position = joint.position(positions)
            if abs(position - self._shown.get(joint.name, math.inf)) <= _STILL:
                continue
            self._shown[joint.name] = position
            node = self._joints[joint.name]
            if joint.kind == 'prismatic':
                node.position = position * joint.axis
            else:
                half = 0.5 * position
                node.wxyz = np.array([math.cos(half), *(math.sin(half) * joint.axis)])

    def hide(self, links: frozenset[str]) -> None:
        """Hide the straight shapes of links, without prefix, and show all others."""
        for link in links ^ self._hidden:
            for node in self._of_link.get(link, ()):
                node.visible = link not in links
        self._hidden = links

    def draw(self, machine: Machine, paths: Mapping[str, str]) -> bool:
        """Show the drawings that have changed; return whether they need more room."""
        before = self.bounds
        for topic, drawing in machine.drawings.items():
            if self._drawn.get(topic) == drawing.version:
                continue
            self._drawn[topic] = drawing.version
            if topic not in self._drawings:
                self._drawings[topic] = DrawingNodes(self._scene, topic, self._ghost)
            self._drawings[topic].show(drawing, paths, self._path)
            if topic not in self._reach:
                near = [
                    m for m in drawing.markers() if paths.get(m.frame, self._path) == self._path
                ]
                points = np.concatenate([np.zeros((0, 3)), *map(reach, near)])
                if len(points):
                    self._reach[topic] = (points.min(axis=0), points.max(axis=0))
                    self.bounds = _around(self.bounds, self._reach[topic])
        return self.bounds is not before

    def frames(self, machine: Machine) -> set[str]:
        """Return the frames in which drawings, cameras and measured markers are shown."""
        found = set().union(*(drawing.frames() for drawing in machine.drawings.values()))
        found |= {shown[0] for shown, _ in self._cameras.values()}
        return found | ({machine.estimate_frame} if machine.estimates else set())

    def draw_cameras(self, machine: Machine, paths: Mapping[str, str]) -> list[str]:
        """Show cameras with pose and lens by pyramids; return the names of new and moved ones."""
        moved = []
        for name, mounting in machine.mountings.items():
            lens = machine.lenses.get(name)
            base = paths.get(mounting.frame, self._path)
            shown = (mounting.frame, base, lens, mounting.position.tobytes())
            if lens is None or self._cameras.get(name, (None, None))[0] == shown:
                continue
            if name in self._cameras:
                self._cameras[name][1].remove()
            node = self._scene.add_camera_frustum(
                f'{base}/camera_{name.replace("/", "_")}',
                lens.angle,
                lens.aspect,
                scale=_CAMERA,
                thickness=_TRACK,
                color=_CAMERA_COLOUR,
                position=mounting.position,
                wxyz=mounting.rotation,
                cast_shadow=False,
            )
            self._cameras[name] = (shown, node)
            moved.append(name)
        return moved

    def surround(self, name: str, camera: Mounting) -> None:
        """Note the room of a camera in one of the robot's frames, however it is turned."""
        if self.robot is not None and camera.frame in self.paths:
            place = self.robot.place(self.positions)[camera.frame]
            middle = place[:3, :3] @ camera.position + place[:3, 3]
            self.cameras[name] = (middle - _CAMERA, middle + _CAMERA)

    def draw_estimates(self, machine: Machine, paths: Mapping[str, str]) -> None:
        """Show measured markers: tracks, and ellipsoids of one standard deviation, exaggerated."""
        base = paths.get(machine.estimate_frame, self._path)
        shown = set()
        for name, estimate in machine.estimates.items():
            safe = name.replace('/', '_')
            values, axes = np.linalg.eigh(estimate.covariance)
            if np.linalg.det(axes) < 0.0:
                axes[:, 0] = -axes[:, 0]
            # Not 0, also of what is known exactly.
            size = np.maximum(ELLIPSE * np.sqrt(np.maximum(values, 0.0)), 1e-4)
            key = f'ellipse {base}/{safe}'
            shown |= {key, f'track {base}/{safe}'}
            node = self._markers.get(key)
            if node is None:
                node = self._scene.add_icosphere(
                    f'{base}/markers/{safe}', 1.0, (240, 120, 20), opacity=0.6, cast_shadow=False
                )
                self._markers[key] = node
            node.position = estimate.position
            node.wxyz = SO3.from_matrix(axes).wxyz
            node.scale = tuple(size.tolist())
            color = (240, 120, 20) if estimate.tracked else (200, 30, 30)
            if tuple(node.color) != color:
                node.color = color
            track = np.array(machine.tracks[name])
            points = np.stack([track[:-1], track[1:]], axis=1)
            path = f'{base}/markers/{safe}_track'
            show_points(
                self._markers,
                f'track {base}/{safe}',
                points,
                partial(
                    self._scene.add_line_segments, path, points, _CAMERA_COLOUR, thickness=_TRACK
                ),
            )
        # Markers that are lost are not where they were.
        for key, node in self._markers.items():
            node.visible = key in shown


def _above(box: Box) -> float:
    """Return the height of a machine's name above it [m]."""
    return min(_ABOVE[0], _ABOVE[1] * float(np.max(box[1] - box[0])))


def _around(*boxes: Box) -> Box:
    """Return the box around boxes."""
    lows, highs = zip(*boxes, strict=True)
    return np.min(lows, axis=0), np.max(highs, axis=0)


class _Look(NamedTuple):
    """What a page looks at: machine or all, its corners, size of the picture, camera's places."""

    name: str
    corners: np.ndarray
    size: tuple[int, int]
    narrow: bool  # the panel is below
    places: tuple[np.ndarray, np.ndarray]


def _size(camera: Any) -> tuple[int, int]:
    """Return width and height of a page's picture; a page may have sent anything."""
    size = (camera.image_width, camera.image_height)
    return size if all(isinstance(n, int) and n > 0 for n in size) else (1, 1)


def _is_near(place: Any, other: np.ndarray) -> bool:
    """Return whether a page's camera is where it was put; a page may have sent anything."""
    try:
        return bool(np.allclose(place, other, rtol=_MOVED, atol=_MOVED))
    except (TypeError, ValueError):
        return False


class Scene:
    """All machines, side by side."""

    def __init__(self, server: viser.ViserServer) -> None:
        self._server = server
        self._machines: dict[tuple[str, bool], _MachineScene] = {}
        server.scene.configure_environment_map(None)
        server.scene.configure_default_lights(False)
        server.scene.add_light_hemisphere(
            '/sky', sky_color=(255, 255, 255), ground_color=(190, 190, 200), intensity=3.2
        )
        server.scene.add_light_directional(
            '/sun', intensity=1.6, wxyz=(0.924, 0.383, 0.0, 0.0), cast_shadow=False
        )
        server.scene.add_grid(
            '/ground',
            cell_size=_CELL,
            section_size=_SECTION,
            cell_color=_LINES,
            section_color=_LINES,
            cell_thickness=0.25,
            section_thickness=0.5,
            infinite_grid=True,
            fade_distance=90.0,
            shadow_opacity=0.0,
        )
        server.initial_camera.fov = _FIELD_OF_VIEW
        self._aimed = np.zeros((0, 3))
        self._aim()
        # Frames that no robot description has, by machine, at whose root they are shown.
        self.unplaced: dict[str, list[str]] = {}
        self._looks: dict[int, _Look] = {}

    def update(self, machine: Machine, note: str = '', ghost: bool = False) -> bool:
        """Show a machine, ``note``: why it is stale; return whether the arrangement changed."""
        key, changed = (machine.name, ghost), False
        if key not in self._machines:
            # No namespace has colons or dots.
            path = f'/{"ghost" if ghost else "machine"}:{machine.name.replace("/", ".")}'
            title = machine.name or 'machine'
            self._machines[key] = _MachineScene(self._server.scene, path, title, ghost)
            changed = True
        shown = self._machines[key]
        shown.positions = machine.positions
        if shown.version != machine.version:
            shown.version = machine.version
            # What is drawn in frames of the machine ends with them.
            for other in self._machines.values():
                other.clear()
            shown.build(machine.robot)
            changed = True
        if machine.robot is not None:
            changed |= shown.place(machine.robot, machine.positions)
            shown.move(machine.robot, machine.positions)
        if changed:
            self._arrange()
        text = f'{shown.title} · {note}' if note else shown.title
        if shown.label is not None and shown.label.text != text:
            shown.label.text = text
        # Before its first sample, as after a jump in a recording, it is not where it was.
        begun = bool(machine.positions) or not shown.placed
        if shown.frame.visible != begun:
            shown.frame.visible = begun
        paths = {
            k: v for (_, g), m in self._machines.items() if g == ghost for k, v in m.paths.items()
        } | shown.paths  # machines may have frames of one name
        if shown.draw(machine, paths):
            self._arrange()
            changed = True
        bent = [drawing.bent() for drawing in machine.drawings.values()]
        shown.hide(frozenset().union(*bent))
        for name in shown.draw_cameras(machine, paths):
            for owner in self._machines.values():
                owner.surround(f'{machine.name}/{name}', machine.mountings[name])
        shown.draw_estimates(machine, paths)
        if not ghost:
            self.unplaced[machine.name] = sorted(shown.frames(machine) - paths.keys())
        return changed

    def _arrange(self) -> None:
        """Put the machines into rows, low ones in front, none hidden; the largest one is alone."""
        solid = [m for (_, ghost), m in sorted(self._machines.items()) if m.paths and not ghost]
        solid.sort(key=lambda m: float(m.bounds[1][2]))
        room = max((float(np.ptp(m.bounds, axis=0)[0]) for m in solid), default=0.0)
        rows: list[list[_MachineScene]] = []
        length = math.inf
        for machine in solid:
            own = float(np.ptp(machine.bounds, axis=0)[0])
            if length + own > _ROW * room:
                rows.append([])
                length = 0.0
            rows[-1].append(machine)
            length += own + _GAP
        y = 0.0
        middle = float(np.mean(solid[-1].bounds, axis=0)[0]) if solid else 0.0
        for row in rows:
            extents = [np.ptp(m.bounds, axis=0) for m in row]
            x = middle - 0.5 * (sum(float(e[0]) for e in extents) + _GAP * (len(row) - 1))
            for machine, extent in zip(row, extents, strict=True):
                low = machine.bounds[0]
                place = x - low[0] if len(row) > 1 else 0.0
                machine.frame.position = (place, y - low[1], machine.height)
                x += float(extent[0]) + _GAP
            y += max(float(extent[1]) for extent in extents) + _GAP
        for (name, ghost), machine in self._machines.items():
            if ghost and (name, False) in self._machines:
                machine.frame.position = self._machines[(name, False)].frame.position
        self._aim()
        for client in self._server.get_clients().values():
            self.look(client)

    def fit_pages(self) -> None:
        """Let pages look anew whose size or machines' room changed, unless moved by hand."""
        for machine in self._machines.values():
            machine.follow()
        self._aim()
        clients = self._server.get_clients()
        self._looks = {k: look for k, look in self._looks.items() if k in clients}
        for number, look in self._looks.items():
            camera = clients[number].camera
            before, wanted = (_is_near(camera.position, place) for place in look.places)
            changed = _size(camera) != look.size or not np.array_equal(
                self.corners(look.name), look.corners
            )
            # A page that has just begun may overwrite what it was asked for.
            if (before and not wanted) or (wanted and changed):
                self.look(clients[number], look.name)

    def corners(self, name: str = '') -> np.ndarray:
        """Return the corners (N, 3) of the boxes around a machine or all, and cameras [m]."""
        boxes = []
        for (own, _), m in self._machines.items():
            if m.paths and name in ('', own):
                low, high = m.bounds
                # With its name.
                named = (low, high + np.array([0.0, 0.0, 2.0 * _above(m.bounds)]))
                boxes += [np.array(box) + m.frame.position for box in (named, *m.cameras.values())]
        boxes = boxes or [_EMPTY]
        return np.concatenate(
            [np.stack(np.meshgrid(*box.T), axis=-1).reshape(-1, 3) for box in boxes]
        )

    def _aim(self) -> None:
        """Let new pages look at all machines."""
        corners = self.corners()
        if not np.array_equal(corners, self._aimed):
            self._aimed = corners
            camera = self._server.initial_camera
            camera.position, camera.look_at = _view(corners)

    def look(self, client: viser.ClientHandle, name: str = '') -> None:
        """Let a page look at a machine, by default at all."""
        camera, corners = client.camera, self.corners(name)
        width, height = size = _size(camera)
        # The first picture of a page, without a panel yet, is as wide as its window.
        before = self._looks.get(client.client_id)
        narrow = width <= _NARROW and (before is None or before.narrow)
        aspect = max(width - 2 * _TEXT, 1) / height
        position, target = _view(corners, aspect, _BELOW if narrow else 0.0)
        # A message of the page may be on its way that does not know of this yet.
        self._looks[client.client_id] = _Look(
            name, corners, size, narrow, (camera.position, position)
        )
        # viser refuses to move a camera of which a page has sent nonsense.
        with contextlib.suppress(ValueError), client.atomic():
            camera.position, camera.look_at = position, target


def _view(
    corners: np.ndarray, aspect: float = 0.9, below: float = 0.0
) -> tuple[np.ndarray, np.ndarray]:
    """Return position and target of a camera that sees points, above a covered share."""
    direction = _FROM / np.linalg.norm(_FROM)
    right = np.cross([0.0, 0.0, 1.0], direction)
    right /= np.linalg.norm(right)
    axes = np.stack([right, np.cross(direction, right), direction])
    # From there: to the right, up, and towards the camera.
    seen = corners @ axes.T
    middle = 0.5 * (seen.min(axis=0) + seen.max(axis=0))
    across, up, near = (seen - middle).T
    tangent = math.tan(0.5 * _FIELD_OF_VIEW)
    needed = np.maximum(np.abs(up) / (1.0 - below), np.abs(across) / aspect) / tangent
    distance = 1.12 * max(float(np.max(near + needed)), 1.0)
    target = middle @ axes - below * tangent * distance * axes[1]
    return target + distance * direction, target
