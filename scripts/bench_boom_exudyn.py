"""
The concrete-pump boom in Exudyn, an alternative program for flexible beams.

    bench_boom_exudyn.py [--quick]      tables of convergence: meshes and steps, error and time

The data are those of the installed boom of Longreach, the mechanical model is another one: planar
ANCF cable elements with large deflections and axial forces instead of assumed modes. Each element
has the mean mass and the mean bending stiffness of its section. The boom is in static equilibrium
in its site pose with 90 kg at its tip; the load is released at t = 0.

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

from longreach_boom.parameters import BeamParameters, BoomParameters, load_boom

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

POSE, LOAD = 'site', 90.0  # load at the tip [kg]

Pistons = Literal['locked', 'oil']


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
    parameters: BoomParameters,
    pistons: Pistons,
    elements_per_beam: int,
    step: float,
    duration: float,
    tolerance: float = TOLERANCE,
    friction: bool = True,
) -> Outcome:
    """
    Let the load at the tip go at t = 0, from static equilibrium.

    Beam 1 has at least two elements, with a node at its support. ``step`` and ``duration`` are in
    s, ``tolerance`` is that of Newton's method, relative and absolute. BenchmarkError when Exudyn
    is not installed, or its solver gives up.
    """
    boom = _assemble(parameters, pistons, elements_per_beam, friction)
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


def main(arguments: list[str] | None = None) -> int:
    """Print how error and time depend on mesh and step, and return the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument('--quick', action='store_true', help='2 s instead of 20 s')
    options = parser.parse_args(arguments)
    duration = 2.0 if options.quick else 20.0
    parameters = load_boom()
    kinds: tuple[Pistons, ...] = ('locked', 'oil')
    print(machine_line())
    try:
        for pistons in kinds:
            boom = _assemble(parameters, pistons, MESHES[-1])
            _solve_static(boom)
            x, z = _coordinates(boom, boom.tip)[:2]
            f1, f2 = _linearise(boom)[0][:2]
            print(
                f'\n{pistons}: tip ({x:.4f}, {z:.4f}) m with load, '
                f'f1 = {f1:.4f} Hz and f2 = {f2:.4f} Hz without'
            )
            # Errors of the tip [m] against a much finer step, and against a much finer mesh.
            exact = release(parameters, pistons, STEPS_MESH, REFERENCE_STEP, duration, 1e-8)
            rows = [_row(parameters, pistons, STEPS_MESH, step, exact) for step in STEPS]
            print(format_rows(rows))
            exact = release(parameters, pistons, REFERENCE_MESH, BEST_STEP, duration)
            rows = [_row(parameters, pistons, mesh, BEST_STEP, exact) for mesh in MESHES]
            print(format_rows(rows), flush=True)
    except BenchmarkError as error:
        print(f'bench: {error}', file=sys.stderr)
        return 1
    return 0


def _row(
    parameters: BoomParameters, pistons: Pistons, elements: int, step: float, exact: Outcome
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


def _assemble(
    parameters: BoomParameters, pistons: Pistons, elements_per_beam: int, friction: bool = True
) -> _Boom:
    """Return the boom, undeformed in its pose, with the load at its tip."""
    if pistons == 'locked':
        return _build(parameters, None, elements_per_beam)
    # Oil under the pressure that holds the loaded boom in its pose.
    rigid = _build(parameters, None, elements_per_beam)
    _solve_static(rigid)
    torques = _holding_torques(parameters, rigid)
    joints = [_joint(parameters, joint, torque, friction) for joint, torque in enumerate(torques)]
    return _build(parameters, joints, elements_per_beam)


def _build(
    parameters: BoomParameters, joints: list[_Joint] | None, elements_per_beam: int
) -> _Boom:
    """Return the boom with closed cylinders at its joints, or with rigid joints if None."""
    exudyn, items = _exudyn()
    container = exudyn.SystemContainer()
    system = container.AddSystem()
    ground = system.AddObject(items.ObjectGround())
    origin = system.AddMarker(items.MarkerBodyPosition(bodyNumber=ground))
    elements: list[_Element] = []
    root = np.zeros(2)
    before = -1  # the last node of the beam before
    angles = parameters.pose(POSE)
    for beam, (data, angle) in enumerate(zip(parameters.beams, np.cumsum(angles), strict=True)):
        axis = np.array([math.cos(angle), math.sin(angle)])
        places = _places(data, elements_per_beam)
        nodes = [
            system.AddNode(
                items.NodePoint2DSlope1(referenceCoordinates=[*(root + place * axis), *axis])
            )
            for place in places
        ]
        for element in range(len(nodes) - 1):
            ends = places[element], places[element + 1]
            length = float(ends[1] - ends[0])
            mass, second_moment = _section(data, *ends)
            pair = nodes[element], nodes[element + 1]
            cable = system.AddObject(
                items.ObjectANCFCable2D(
                    length=length,
                    massPerLength=mass,
                    bendingStiffness=parameters.youngs_modulus * second_moment,
                    axialStiffness=parameters.youngs_modulus * mass / STEEL_DENSITY,
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
        damping = _deflection_damping(data, places, axis)
        system.AddObject(
            items.ObjectGenericODE2(
                nodeNumbers=nodes, massMatrix=np.zeros_like(damping), dampingMatrix=damping
            )
        )
        joint = None if joints is None else joints[beam]
        if beam == 0:
            start = system.AddMarker(items.MarkerNodePosition(nodeNumber=nodes[0]))
            system.AddObject(items.ObjectJointRevolute2D(markerNumbers=[origin, start]))
            middle = nodes[int(np.argmin(np.abs(places - data.support)))]
            _add_support(items, system, data.support, (nodes[0], middle), axis, joint)
        else:
            _add_joint(items, system, angles[beam], (before, nodes[0]), joint)
        before = nodes[-1]
        root = root + data.length * axis
    end = system.AddMarker(items.MarkerNodePosition(nodeNumber=before))
    force = [0.0, -parameters.gravity * LOAD, 0.0]
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


def _places(beam: BeamParameters, elements: int) -> np.ndarray:
    """Return where a beam has nodes [m]; one of beam 1 is at its support."""
    if not beam.support:
        return np.linspace(0.0, beam.length, elements + 1)
    inner = max(1, round(elements * beam.support / beam.length))
    outer = max(1, elements - inner)
    return np.concatenate(
        (
            np.linspace(0.0, beam.support, inner + 1),
            np.linspace(beam.support, beam.length, outer + 1)[1:],
        )
    )


def _section(beam: BeamParameters, start: float, end: float) -> tuple[float, float]:
    """Return mean mass [kg/m] and mean second moment of area [m^4] of a stretch of a beam."""
    points, weights = np.polynomial.legendre.leggauss(5)
    x = start + 0.5 * (end - start) * (points + 1.0)
    mass, second_moment = (
        0.5 * float(weights @ along.at(x, beam.length))
        for along in (beam.mass_per_length, beam.second_moment)
    )
    return mass, second_moment


def _deflection_damping(beam: BeamParameters, places: np.ndarray, axis: np.ndarray) -> np.ndarray:
    """
    Return the damping matrix of d_w in the nodal coordinates of a beam (Henikl 2015, eq. 8).

    The deflection w is relative to the beam's frame: its first node and the direction there, and
    for beam 1 the line from its first node to its support.
    """
    across = np.array([-axis[1], axis[0]])
    size = 4 * len(places)
    frame = np.zeros((2, size))  # the frame's motion across at its origin, and its turn
    frame[0, :2] = across
    if beam.support:
        middle = 4 * int(np.argmin(np.abs(places - beam.support)))
        frame[1, :2] = -across / beam.support
        frame[1, middle : middle + 2] = across / beam.support
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
    return beam.beam_damping * damping


def _holding_torques(parameters: BoomParameters, boom: _Boom) -> list[float]:
    """Return the torques [N m] with which the joints hold the solved system."""
    torques = []
    tip = _coordinates(boom, boom.tip)[0]
    for joint in range(parameters.size):
        held = [element for element in boom.elements if element.beam >= joint]
        place = _coordinates(boom, held[0].nodes[0])[0]
        moment = LOAD * (tip - place)
        for element in held:
            start, end = (_coordinates(boom, node) for node in element.nodes)
            # The mean of the cubic between the nodes.
            mean = 0.5 * (start[0] + end[0]) + element.length / 12.0 * (start[2] - end[2])
            moment += element.mass * (mean - place)
        torques.append(float(parameters.gravity * moment))
    return torques


def _joint(parameters: BoomParameters, joint: int, torque: float, friction: bool) -> _Joint:
    """Return a joint's closed cylinder, linear about the pose, where it gives ``torque``."""
    cylinder, angle = parameters.cylinders[joint], float(parameters.pose(POSE)[joint])
    position, lever = cylinder.linkage.position(angle), cylinder.linkage.arm(angle)
    arms = [cylinder.linkage.arm(angle + turn) for turn in (-1e-5, 1e-5)]
    slope = (arms[1] - arms[0]) / 2e-5
    head, rod = cylinder.head_area, cylinder.rod_area
    oil = parameters.oil.bulk_modulus * (
        head**2 / (cylinder.head_volume + head * position)
        + rod**2 / (cylinder.rod_volume - rod * position)
    )
    viscous = cylinder.friction.viscous if friction else 0.0
    return _Joint(
        torque,
        oil * lever**2 - torque / lever * slope,
        viscous * lever**2 + parameters.beams[joint].joint_damping,
    )


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
    """Take the load off, and return natural frequencies there [Hz] and the number of freedoms."""
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
