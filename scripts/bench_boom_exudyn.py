"""
The concrete-pump boom in Exudyn, an alternative program for flexible beams.

    bench_boom_exudyn.py [--quick]      tables of convergence: meshes and steps, error and time

The data are those of the boom of Longreach, the mechanical model is another one: planar ANCF cable
elements with large deflections and axial forces instead of assumed modes. Each element has the
mean mass and the mean bending stiffness of its section. The boom is in static equilibrium with a
load at its tip; the load is released at t = 0.

- ``locked``: no piston moves. The joints are rigid, and the point x_m of the first beam, where
  its cylinder supports it, stays on the line through the first joint.
- ``oil``: closed valves. Oil and viscous friction of each cylinder are a spring and a damper on
  the joint, by the lever f'(phi). There are no states for the pressures and no stiction.

Cylinder 1 acts normal to the axis of the first beam at x_m, as in the paper's model (Henikl 2015,
eq. 20); the force component along the beam is neglected in both programs. The damping of the
deflections (eq. 8) is relative to the frame of each beam, with the matrix of the initial pose.
Angles and positions are in the boom's plane, x forward, z up.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import io
import itertools
import math
import sys
import time
from types import ModuleType
from typing import Any, Literal, NamedTuple

import numpy as np
from bench_ros import BenchmarkError
from bench_table import Row, format_rows, machine_line

VERSION = '1.13.6'
# No data says how much of a beam's mass is steel; all of it makes the axis nearly rigid, as the
# boom's model has it, and keeps the equations well scaled.
STEEL_DENSITY = 7850.0  # [kg/m3]
# The fastest that stay below 1 mm with BEST_STEP, for coarse and fine meshes: numerical
# dissipation of high modes, and how far Newton's method reduces a residual. A tenfold tolerance
# costs up to 2 mm. Explicit methods need steps of 0.05 ms, full Newton steps fourfold time.
SPECTRAL_RADIUS = 0.9
TOLERANCE = 1e-5
BEST_STEP = 0.008  # [s]

STEPS = (0.002, 0.004, BEST_STEP, 0.016)
STEPS_MESH = 4  # elements for each beam; f1 within 0.3 %
REFERENCE_STEP = 0.0005
MESHES = (2, 4, 8, 16)
REFERENCE_MESH = 32
REPEATS = 3

Pistons = Literal['locked', 'oil']


class BoomData(NamedTuple):
    """
    Data of a boom of N beams; each array is of shape (N,), first beam first.

    The defaults are a plausible boom of the 40 m class.
    """

    length: np.ndarray = np.array([9.6, 8.6, 8.4, 9.0])  # [m]
    mass_root: np.ndarray = np.array([280.0, 190.0, 115.0, 60.0])  # linear to the tip [kg/m]
    mass_tip: np.ndarray = np.array([190.0, 130.0, 75.0, 35.0])
    inertia_root: np.ndarray = np.array([6.9e-4, 2.4e-4, 7.4e-5, 1.9e-5])  # of the section [m4]
    inertia_tip: np.ndarray = np.array([2.3e-4, 7.9e-5, 2.1e-5, 3.3e-6])
    taper: float = 3.0  # I(x) = I_root (1 + ((I_tip / I_root)^(1/taper) - 1) x / L)^taper
    elasticity: float = 2.06e11  # Young's modulus [Pa]
    support: float = 2.4  # x_m, where cylinder 1 holds beam 1 [m]
    deflection_damping: np.ndarray = np.array([600.0, 400.0, 250.0, 120.0])  # d_w [N s/m2]
    joint_damping: np.ndarray = np.array([3e4, 1.5e4, 4e3, 6e2])  # d_phi [N m s]
    bore: np.ndarray = np.array([0.2, 0.16, 0.11, 0.07])  # of the cylinders [m]
    rod: np.ndarray = np.array([0.14, 0.1, 0.07, 0.045])  # [m]
    volume_head: np.ndarray = 0.05 * math.pi / 4.0 * bore**2 + 2e-4  # V01, at f = 0 [m3]
    volume_rod: np.ndarray = (
        math.pi / 4.0 * (bore**2 - rod**2) * np.array([1.55, 1.75, 1.3, 0.92]) + 2e-4
    )  # V02, at f = 0 [m3]
    bulk_modulus: float = 1.4e9  # [Pa]
    viscous_friction: np.ndarray = np.array([4e4, 2.5e4, 1.2e4, 5e3])  # r_V [N s/m]
    # Linkage 1 is a triangle with the sides ``lever`` and ``support``, others are curves.
    lever: np.ndarray = np.array([1.05, 0.62, 0.45, 0.3])  # [m]
    offset: np.ndarray = np.array([-1.9, 1.5, 1.08, 0.73])  # f = offset + ... [m]
    triangle_angle: float = math.pi / 3.0  # between those sides at phi_1 = 0 [rad]
    gravity: float = 9.81  # [m/s2]
    load: float = 90.0  # at the tip until t = 0 [kg]
    pose: np.ndarray = np.radians([70.0, -50.0, -35.0, -30.0])  # phi, held by the pistons [rad]


class Outcome(NamedTuple):
    """What a release gave."""

    times: np.ndarray  # (n,), of every step [s]
    tip: np.ndarray  # (n, 2), x and z [m]
    seconds: float  # wall-clock time of the dynamic solution alone [s]
    degrees_of_freedom: int  # coordinates less constraints
    first_frequency: float  # about the equilibrium without load, undamped [Hz]


class _Joint(NamedTuple):
    """A closed cylinder at a joint: torque = torque - stiffness * turn - damping * rate."""

    torque: float  # [N m]
    stiffness: float  # [N m/rad]
    damping: float  # [N m s/rad]


class _Element(NamedTuple):
    """A cable between two nodes."""

    beam: int
    length: float  # [m]
    mass: float  # [kg]
    nodes: tuple[int, int]


class _Boom(NamedTuple):
    """An assembled system and what is asked of it; the container must outlive the system."""

    exudyn: ModuleType
    container: Any
    system: Any
    elements: list[_Element]
    load: int
    tip: int
    sensor: int


def release(
    parameters: BoomData,
    pistons: Pistons,
    elements_per_beam: int,
    step: float,
    duration: float,
    tolerance: float = TOLERANCE,
) -> Outcome:
    """
    Let the load at the tip go at t = 0, from static equilibrium.

    Parameters
    ----------
    parameters : BoomData
    pistons : {'locked', 'oil'}
        Whether the joints are rigid, or closed cylinders on elastic oil.
    elements_per_beam : int
        At least 1; beam 1 has at least 2, with a node at its support.
    step : float
        Of the generalised-alpha method [s].
    duration : float
        [s].
    tolerance : float
        To which Newton's method reduces the residual of a step, relative and absolute.

    Raises
    ------
    BenchmarkError
        Exudyn is not installed, or its solver gave up.
    """
    boom = _assemble(parameters, pistons, elements_per_beam)
    _solve_static(boom)
    frequencies, freedoms = _linearise(boom)
    settings = _settings(boom.exudyn)
    settings.solution.sensors.writePeriod = step
    integration = settings.timeIntegration
    integration.endTime = duration
    integration.numberOfSteps = round(duration / step)
    integration.generalizedAlpha.spectralRadius = SPECTRAL_RADIUS
    integration.newton.useModifiedNewton = True
    integration.newton.relativeTolerance = tolerance
    integration.newton.absoluteTolerance = tolerance
    started = time.perf_counter()
    _run(boom.exudyn, boom.system.SolveDynamic, settings)
    seconds = time.perf_counter() - started
    table = np.array(boom.system.GetSensorStoredData(boom.sensor))
    return Outcome(table[:, 0], table[:, 1:3], seconds, freedoms, float(frequencies[0]))


def natural_frequencies(
    parameters: BoomData, pistons: Pistons, elements_per_beam: int, count: int
) -> np.ndarray:
    """Return the lowest frequencies about the equilibrium without load, undamped [Hz]."""
    boom = _assemble(parameters, pistons, elements_per_beam)
    _solve_static(boom)
    return _linearise(boom)[0][:count]


def static_tip(parameters: BoomData, pistons: Pistons, elements_per_beam: int) -> np.ndarray:
    """Return the tip in static equilibrium with the load, shape (2,), x and z [m]."""
    boom = _assemble(parameters, pistons, elements_per_beam)
    _solve_static(boom)
    return _coordinates(boom, boom.tip)[:2]


def step_rows(parameters: BoomData, pistons: Pistons, duration: float) -> list[Row]:
    """Release with one mesh; errors of the tip [m] against a much finer step."""
    exact = release(parameters, pistons, STEPS_MESH, REFERENCE_STEP, duration, 1e-8)
    return [_row(parameters, pistons, STEPS_MESH, step, exact) for step in STEPS]


def mesh_rows(parameters: BoomData, pistons: Pistons, duration: float) -> list[Row]:
    """Release at one step; errors of the tip [m] against a much finer mesh."""
    exact = release(parameters, pistons, REFERENCE_MESH, BEST_STEP, duration)
    return [_row(parameters, pistons, mesh, BEST_STEP, exact) for mesh in MESHES]


def main(arguments: list[str] | None = None) -> int:
    """Print how error and time depend on mesh and step, and return the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument('--quick', action='store_true', help='2 s instead of 20 s')
    options = parser.parse_args(arguments)
    duration = 2.0 if options.quick else 20.0
    parameters = BoomData()
    kinds: tuple[Pistons, ...] = ('locked', 'oil')
    print(machine_line())
    try:
        for pistons in kinds:
            x, z = static_tip(parameters, pistons, MESHES[-1])
            f1, f2 = natural_frequencies(parameters, pistons, MESHES[-1], 2)
            print(
                f'\n{pistons}: tip ({x:.4f}, {z:.4f}) m with load, '
                f'f1 = {f1:.4f} Hz and f2 = {f2:.4f} Hz without'
            )
            print(format_rows(step_rows(parameters, pistons, duration)))
            print(format_rows(mesh_rows(parameters, pistons, duration)), flush=True)
    except BenchmarkError as error:
        print(f'bench: {error}', file=sys.stderr)
        return 1
    return 0


def _row(
    parameters: BoomData, pistons: Pistons, elements: int, step: float, exact: Outcome
) -> Row:
    """Measure one release, as long as the exact one."""
    duration = float(exact.times[-1])
    outcomes = [release(parameters, pistons, elements, step, duration) for _ in range(REPEATS)]
    outcome = outcomes[0]
    error = max(
        float(np.abs(np.interp(outcome.times, exact.times, values) - tip).max())
        for values, tip in zip(exact.tip.T, outcome.tip.T, strict=True)
    )
    lift = float(outcome.tip[:, 1].max() - outcome.tip[0, 1])
    note = f'{outcome.degrees_of_freedom} freedoms, f1 = {outcome.first_frequency:.4f} Hz, '
    note += f'lift {lift:.3f} m'
    seconds = tuple(each.seconds for each in outcomes)
    return Row(f'{elements} elements, {1e3 * step:g} ms', seconds, error=error, note=note)


def _exudyn() -> tuple[ModuleType, ModuleType]:
    """Return Exudyn and the module of its items."""
    # Read at the first import: the faster build, without range checks.
    setattr(sys, 'exudynFast', True)  # noqa: B010
    try:
        # It reports on stdout which build it loads.
        with contextlib.redirect_stdout(io.StringIO()):
            exudyn = importlib.import_module('exudyn')
            return exudyn, importlib.import_module('exudyn.itemInterface')
    except ImportError as error:
        raise BenchmarkError(
            f'the boom in Exudyn needs the package exudyn; got: {error}; install it into the '
            f"workspace's Python with: pip install exudyn=={VERSION}"
        ) from error


def _assemble(parameters: BoomData, pistons: Pistons, elements_per_beam: int) -> _Boom:
    """Return the boom, undeformed in its pose, with the load at its tip."""
    if pistons == 'locked':
        return _build(parameters, None, elements_per_beam)
    # Oil under the pressure that holds the loaded boom in its pose.
    rigid = _build(parameters, None, elements_per_beam)
    _solve_static(rigid)
    torques = _holding_torques(parameters, rigid)
    joints = [_joint(parameters, joint, torque) for joint, torque in enumerate(torques)]
    return _build(parameters, joints, elements_per_beam)


def _build(parameters: BoomData, joints: list[_Joint] | None, elements_per_beam: int) -> _Boom:
    """Return the boom with closed cylinders at its joints, or with rigid joints if None."""
    exudyn, items = _exudyn()
    container = exudyn.SystemContainer()
    system = container.AddSystem()
    ground = system.AddObject(items.ObjectGround())
    origin = system.AddMarker(items.MarkerBodyPosition(bodyNumber=ground))
    elements: list[_Element] = []
    root = np.zeros(2)
    before = -1  # the last node of the beam before
    for beam, angle in enumerate(np.cumsum(parameters.pose)):
        axis = np.array([math.cos(angle), math.sin(angle)])
        places = _places(parameters, beam, elements_per_beam)
        nodes = [
            system.AddNode(
                items.NodePoint2DSlope1(referenceCoordinates=[*(root + place * axis), *axis])
            )
            for place in places
        ]
        for element in range(len(nodes) - 1):
            ends = places[element], places[element + 1]
            length = float(ends[1] - ends[0])
            mass, stiffness = _section(parameters, beam, *ends)
            pair = nodes[element], nodes[element + 1]
            cable = system.AddObject(
                items.ObjectANCFCable2D(
                    length=length,
                    massPerLength=mass,
                    bendingStiffness=stiffness,
                    axialStiffness=parameters.elasticity * mass / STEEL_DENSITY,
                    nodeNumbers=list(pair),
                    useReducedOrderIntegration=1,
                )
            )
            weight = system.AddMarker(items.MarkerBodyMass(bodyNumber=cable))
            system.AddLoad(
                items.LoadMassProportional(
                    markerNumber=weight, loadVector=[0.0, -parameters.gravity, 0.0]
                )
            )
            elements.append(_Element(beam, length, mass * length, pair))
        damping = _deflection_damping(parameters, beam, places, axis)
        system.AddObject(
            items.ObjectGenericODE2(
                nodeNumbers=nodes, massMatrix=np.zeros_like(damping), dampingMatrix=damping
            )
        )
        joint = None if joints is None else joints[beam]
        if beam == 0:
            start = system.AddMarker(items.MarkerNodePosition(nodeNumber=nodes[0]))
            system.AddObject(items.ObjectJointRevolute2D(markerNumbers=[origin, start]))
            middle = nodes[int(np.argmin(np.abs(places - parameters.support)))]
            _add_support(items, system, parameters.support, (nodes[0], middle), axis, joint)
        else:
            _add_joint(items, system, parameters.pose[beam], (before, nodes[0]), joint)
        before = nodes[-1]
        root = root + parameters.length[beam] * axis
    end = system.AddMarker(items.MarkerNodePosition(nodeNumber=before))
    force = [0.0, -parameters.gravity * parameters.load, 0.0]
    load = system.AddLoad(items.LoadForceVector(markerNumber=end, loadVector=force))
    sensor = system.AddSensor(
        items.SensorNode(
            nodeNumber=before,
            outputVariableType=exudyn.OutputVariableType.Position,
            storeInternal=True,
        )
    )
    system.Assemble()
    return _Boom(exudyn, container, system, elements, load, before, sensor)


def _add_support(
    items: ModuleType,
    system: Any,
    support: float,
    nodes: tuple[int, int],
    axis: np.ndarray,
    joint: _Joint | None,
) -> None:
    """Let cylinder 1 hold beam 1 at x_m, across the beam, against its first node."""
    across = np.array([-axis[1], axis[0], 0.0, 0.0])
    if joint is None:
        markers = [
            system.AddMarker(items.MarkerNodeCoordinates(nodeNumber=node)) for node in nodes
        ]
        system.AddObject(
            items.ObjectConnectorCoordinateVector(
                markerNumbers=markers,
                scalingMarker0=across.reshape(1, -1),
                scalingMarker1=across.reshape(1, -1),
                offset=[0.0],
            )
        )
        return
    # The first node stays in the origin: phi_1 turns by the motion across, divided by x_m.
    square = np.outer(across, across) / support**2
    system.AddObject(
        items.ObjectGenericODE2(
            nodeNumbers=[nodes[1]],
            massMatrix=np.zeros_like(square),
            stiffnessMatrix=joint.stiffness * square,
            dampingMatrix=joint.damping * square,
            forceVector=joint.torque / support * across,
        )
    )


def _add_joint(
    items: ModuleType, system: Any, angle: float, nodes: tuple[int, int], joint: _Joint | None
) -> None:
    """Join the end of a beam with the start of the next, which is turned by ``angle`` [rad]."""
    frame = np.eye(4)
    frame[:2, :2] = [[math.cos(angle), -math.sin(angle)], [math.sin(angle), math.cos(angle)]]
    markers = [
        system.AddMarker(items.MarkerNodeRigid(nodeNumber=nodes[0], localHT=frame)),
        system.AddMarker(items.MarkerNodeRigid(nodeNumber=nodes[1])),
    ]
    if joint is None:
        # Both translations in the plane and the rotation.
        held = [1, 1, 0, 0, 0, 1]
        system.AddObject(items.ObjectJointGeneric(markerNumbers=markers, constrainedAxes=held))
        return
    system.AddObject(items.ObjectJointRevolute2D(markerNumbers=markers))
    system.AddObject(
        items.ObjectConnectorTorsionalSpringDamper(
            markerNumbers=markers,
            stiffness=joint.stiffness,
            damping=joint.damping,
            torque=-joint.torque,
        )
    )


def _places(parameters: BoomData, beam: int, elements: int) -> np.ndarray:
    """Return where a beam has nodes [m]; one of beam 1 is at its support."""
    length = parameters.length[beam]
    if beam > 0:
        return np.linspace(0.0, length, elements + 1)
    inner = max(1, round(elements * parameters.support / length))
    outer = max(1, elements - inner)
    return np.concatenate(
        (
            np.linspace(0.0, parameters.support, inner + 1),
            np.linspace(parameters.support, length, outer + 1)[1:],
        )
    )


def _section(parameters: BoomData, beam: int, start: float, end: float) -> tuple[float, float]:
    """Return mean mass [kg/m] and mean bending stiffness [N m2] of a stretch of a beam."""
    points, weights = np.polynomial.legendre.leggauss(5)
    u = (start + 0.5 * (end - start) * (points + 1.0)) / parameters.length[beam]
    root, tip = parameters.mass_root[beam], parameters.mass_tip[beam]
    mass = root + (tip - root) * u
    root, tip = parameters.inertia_root[beam], parameters.inertia_tip[beam]
    shape = 1.0 + ((tip / root) ** (1.0 / parameters.taper) - 1.0) * u
    inertia = root * shape**parameters.taper
    return float(weights @ mass) / 2.0, parameters.elasticity * float(weights @ inertia) / 2.0


def _deflection_damping(
    parameters: BoomData, beam: int, places: np.ndarray, axis: np.ndarray
) -> np.ndarray:
    """
    Return the damping matrix of d_w in the nodal coordinates of a beam (Henikl 2015, eq. 8).

    The deflection w is relative to the beam's frame: its first node and the direction there, and
    for beam 1 the line from its first node to its support.
    """
    across = np.array([-axis[1], axis[0]])
    size = 4 * len(places)
    frame = np.zeros((2, size))  # the frame's motion across at its origin, and its turn
    frame[0, :2] = across
    if beam == 0:
        middle = 4 * int(np.argmin(np.abs(places - parameters.support)))
        frame[1, :2] = -across / parameters.support
        frame[1, middle : middle + 2] = across / parameters.support
    else:
        frame[1, 2:4] = across
    damping = np.zeros((size, size))
    points, weights = np.polynomial.legendre.leggauss(5)
    for element, (start, end) in enumerate(itertools.pairwise(places)):
        h = end - start
        for point, weight in zip(points, weights, strict=True):
            u = 0.5 * (point + 1.0)
            shapes = (
                (1.0 - u) ** 2 * (1.0 + 2.0 * u),
                h * u * (1.0 - u) ** 2,
                u * u * (3.0 - 2.0 * u),
                h * u * u * (u - 1.0),
            )
            deflection = -frame[0] - (start + h * u) * frame[1]
            deflection[4 * element : 4 * element + 8] += np.kron(shapes, across)
            damping += 0.5 * h * weight * np.outer(deflection, deflection)
    return float(parameters.deflection_damping[beam]) * damping


def _holding_torques(parameters: BoomData, boom: _Boom) -> list[float]:
    """Return the torques [N m] with which the joints hold the solved system."""
    torques = []
    tip = _coordinates(boom, boom.tip)[0]
    for joint in range(len(parameters.length)):
        held = [element for element in boom.elements if element.beam >= joint]
        place = _coordinates(boom, held[0].nodes[0])[0]
        moment = parameters.load * (tip - place)
        for element in held:
            start, end = (_coordinates(boom, node) for node in element.nodes)
            # The mean of the cubic between the nodes.
            mean = 0.5 * (start[0] + end[0]) + element.length / 12.0 * (start[2] - end[2])
            moment += element.mass * (mean - place)
        torques.append(float(parameters.gravity * moment))
    return torques


def _joint(parameters: BoomData, joint: int, torque: float) -> _Joint:
    """Return a joint's closed cylinder, linear about the pose, where it gives ``torque``."""
    phi = parameters.pose[joint]
    position, lever, slope = _linkage(parameters, joint, phi)
    head = math.pi / 4.0 * parameters.bore[joint] ** 2
    rod = head - math.pi / 4.0 * parameters.rod[joint] ** 2
    oil = parameters.bulk_modulus * (
        head**2 / (parameters.volume_head[joint] + head * position)
        + rod**2 / (parameters.volume_rod[joint] - rod * position)
    )
    return _Joint(
        torque,
        oil * lever**2 - torque / lever * slope,
        parameters.viscous_friction[joint] * lever**2 + parameters.joint_damping[joint],
    )


def _linkage(parameters: BoomData, joint: int, phi: float) -> tuple[float, float, float]:
    """Return piston position f [m] and its first two derivatives by the joint's angle."""
    r, offset = parameters.lever[joint], parameters.offset[joint]
    if joint > 0:
        sine, cosine = math.sin(phi), math.cos(phi)
        return (
            r * (0.75 * phi + 0.25 * sine) + offset,
            r * (0.75 + 0.25 * cosine),
            -0.25 * r * sine,
        )
    angle, product = phi + parameters.triangle_angle, r * parameters.support
    length = math.sqrt(r**2 + parameters.support**2 - 2.0 * product * math.cos(angle))
    lever = product * math.sin(angle) / length
    return length + offset, lever, (product * math.cos(angle) - lever**2) / length


def _solve_static(boom: _Boom) -> None:
    """Bring the system into equilibrium, and start from there what follows."""
    settings = _settings(boom.exudyn)
    newton = settings.staticSolver.newton
    newton.relativeTolerance = 1e-9
    newton.absoluteTolerance = 1e-10
    newton.maxIterations = 100
    settings.staticSolver.numberOfLoadSteps = 1
    _run(boom.exudyn, boom.system.SolveStatic, settings, updateInitialValues=True)


def _linearise(boom: _Boom) -> tuple[np.ndarray, int]:
    """
    Take the load off, and return natural frequencies [Hz] and the number of freedoms.

    The frequencies are those about the equilibrium without load; the state stays as it is.
    """
    configuration = boom.exudyn.ConfigurationType.Initial
    start = boom.system.systemData.GetODE2Coordinates(configuration)
    boom.system.SetLoadParameter(boom.load, 'loadVector', [0.0, 0.0, 0.0])
    _solve_static(boom)
    frequencies, _ = boom.system.ComputeODE2Eigenvalues(convert2Frequencies=True)
    boom.system.systemData.SetODE2Coordinates(start, configuration)
    return np.array(frequencies), len(frequencies)


def _settings(exudyn: ModuleType) -> Any:
    """Return settings that write no files and use one thread."""
    settings = exudyn.SimulationSettings()
    settings.solution.file.write = False
    settings.parallel.numberOfThreads = 1
    settings.linearSolver.solverType = exudyn.LinearSolverType.EigenSparse
    settings.timeIntegration.verboseMode = 0
    settings.staticSolver.verboseMode = 0
    return settings


def _run(exudyn: ModuleType, solve: Any, settings: Any, **options: bool) -> None:
    """Call a solver."""
    try:
        solve(settings, **options)
    except exudyn.SolverError as error:
        raise BenchmarkError(
            f'{solve.__name__} of Exudyn failed: {error}; use more elements or a smaller step'
        ) from error


def _coordinates(boom: _Boom, node: int) -> np.ndarray:
    """Return place and slope of a node, shape (4,): x, z, x', z'."""
    kind, configuration = boom.exudyn.OutputVariableType, boom.exudyn.ConfigurationType
    displaced = boom.system.GetNodeOutput(node, kind.Coordinates, configuration.Current)
    reference = boom.system.GetNodeOutput(node, kind.Coordinates, configuration.Reference)
    coordinates: np.ndarray = np.array(reference) + np.array(displaced)
    return coordinates


if __name__ == '__main__':
    sys.exit(main())
