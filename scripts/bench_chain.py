"""
Benchmark of a chain of three rigid links: the library and alternative programs.

Each program is called from Python, with prepared arrays of its own type; it returns a new array.
The links are the boom, arm and bucket of an excavator as slender rods. The free swing starts from
rest; of each program the fastest method with errors of the angles below 1e-6 rad over 20 s is
used, with the largest possible step or tolerance. For a program that is not installed, the table
has a row with a note.
"""

from __future__ import annotations

import contextlib
import importlib
import io
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from bench_ros import BenchmarkError
from bench_table import Row, Section, measure
from numba import njit
from scipy.integrate import solve_ivp

from longreach_dynamics import PlanarChain, accelerations, nonstiff_integrator, place_links

LENGTHS = (5.16, 2.59, 1.33)  # [m]
MASSES = (1566.0, 735.0, 432.0)  # [kg]
CENTERS = tuple(length / 2.0 for length in LENGTHS)
INERTIAS = tuple(m * length**2 / 12.0 for m, length in zip(MASSES, LENGTHS, strict=True))
GRAVITY = 9.81
NAMES = ('boom', 'arm', 'bucket')

# State and torques of the evaluations, and angles at the beginning of the swing [rad]. From a
# higher start the motion is chaotic, and errors are not comparable.
Q, V, A = np.array([[0.4, -1.1, 0.7], [0.3, -0.8, 1.2], [1.5, -2.0, 0.5]])
START = np.array([-0.5, 0.4, -0.3])
SAMPLE = 0.1  # [s]
CALLS = 1000

# Steps [s] and tolerances for 1e-6 rad.
LONGREACH_TOLERANCE = 1.5e-8
SCIPY_TOLERANCE = 5e-9
MUJOCO_STEP = SAMPLE / 36.0
DRAKE_STEP = SAMPLE / 13.0
EXUDYN_STEP = SAMPLE / 9.0


class Program(NamedTuple):
    """Functions of one program; each returns numbers to compare."""

    inverse: Callable[[], np.ndarray] | None = None
    forward: Callable[[], np.ndarray] | None = None
    swing: Callable[[float], np.ndarray] | None = None  # duration -> angles, each SAMPLE
    note: str = ''  # on the evaluations
    swing_note: str = ''


def chain() -> PlanarChain:
    """Return the chain of the library."""
    return PlanarChain(LENGTHS, MASSES, [(center, 0.0) for center in CENTERS], INERTIAS)


TORQUE = chain().inverse_dynamics(Q, V, A)


@njit
def _derivative(_, x, __, table, dx):  # type: ignore[no-untyped-def]
    """Write the derivative of (q, q') without joint torques."""
    n = table.shape[1]
    place_links(x[:n], x[n:], table)
    dx[:n], dx[n:] = x[n:], 0.0
    accelerations(dx[n:], table)


_integrate = nonstiff_integrator(_derivative)


@njit
def _states(x, samples, table, tolerance):  # type: ignore[no-untyped-def]
    """Return states (samples + 1, 2 n) of a chain from a first one."""
    step, states = SAMPLE, np.empty((samples + 1, x.size))
    states[0] = x
    for k in range(samples):
        # Steps of equal length: a short last one would be wasted.
        step = SAMPLE / np.ceil(SAMPLE / step)
        x, _, step, _ = _integrate(k * SAMPLE, SAMPLE, x, 0.0, table, tolerance, tolerance, step)
        states[k + 1] = x
    return states


def swing(duration: float, tolerance: float = LONGREACH_TOLERANCE) -> np.ndarray:
    """Return the angles of the library's free swing."""
    start = np.append(START, np.zeros(3))
    states = _states(start, round(duration / SAMPLE), chain().table(), tolerance)
    return np.asarray(states[:, :3])


def longreach() -> Program:
    """Return the library."""
    links = chain()

    return Program(
        lambda: links.inverse_dynamics(Q, V, A),
        lambda: links.forward_dynamics(Q, V, TORQUE),
        swing,
        swing_note=f'DOP853, {LONGREACH_TOLERANCE:g}',
    )


def module(name: str, package: str) -> Any:
    """Import a program that may be missing, or raise BenchmarkError."""
    try:
        return importlib.import_module(name)
    except ImportError:
        raise BenchmarkError(f'not installed: PyPI has it as {package}') from None


def pinocchio() -> Program:
    """Return Pinocchio; it has no integrator, so that SciPy's calls it."""
    pin = module('pinocchio', 'pin')
    model = pin.Model()
    # In the x-y plane, because joints along the axes are the fastest.
    model.gravity.linear = np.array([0.0, -GRAVITY, 0.0])
    parent, length = 0, 0.0
    for i, name in enumerate(NAMES):
        joint = pin.JointModelRZ()
        place = pin.SE3(np.eye(3), np.array([length, 0.0, 0.0]))
        parent = model.addJoint(parent, joint, place, name)
        center = np.array([CENTERS[i], 0.0, 0.0])
        body = pin.Inertia(MASSES[i], center, INERTIAS[i] * np.eye(3))
        model.appendBodyToJoint(parent, body, pin.SE3.Identity())
        length = LENGTHS[i]
    data = model.createData()
    zero = np.zeros(3)

    def derivative(_: float, x: np.ndarray) -> np.ndarray:
        return np.concatenate([x[3:], pin.aba(model, data, x[:3], x[3:], zero)])

    return Program(
        lambda: pin.rnea(model, data, Q, V, A),
        lambda: pin.aba(model, data, Q, V, TORQUE),
        lambda duration: solve_with_scipy(derivative, duration),
        swing_note=f'SciPy DOP853, {SCIPY_TOLERANCE:g}',
    )


def solve_with_scipy(derivative: Callable[..., np.ndarray], duration: float) -> np.ndarray:
    """Return the angles of a swing whose right-hand side is in Python."""
    times = np.linspace(0.0, duration, round(duration / SAMPLE) + 1)
    start = np.append(START, np.zeros(3))
    solution = solve_ivp(
        derivative,
        (0.0, duration),
        start,
        'DOP853',
        times,
        rtol=SCIPY_TOLERANCE,
        atol=SCIPY_TOLERANCE,
    )
    return np.asarray(solution.y[:3].T)


def mujoco() -> Program:
    """Return MuJoCo; its rollout takes all steps in one call."""
    mj, rollout = module('mujoco', 'mujoco'), module('mujoco.rollout', 'mujoco')
    text, length = '', 0.0
    for i, name in enumerate(NAMES):
        inertia = ' '.join([f'{INERTIAS[i]:.17g}'] * 3)
        text += (
            f'<body name="{name}" pos="{length:g} 0 0"><joint axis="0 -1 0"/>'
            f'<inertial pos="{CENTERS[i]:.17g} 0 0" mass="{MASSES[i]:g}" diaginertia="{inertia}"/>'
        )
        length = LENGTHS[i]
    model = mj.MjModel.from_xml_string(
        f'<mujoco><option gravity="0 0 {-GRAVITY}" timestep="{MUJOCO_STEP}" integrator="RK4"/>'
        f'<worldbody>{text}{"</body>" * len(NAMES)}</worldbody></mujoco>'
    )
    data = mj.MjData(model)

    def inverse() -> np.ndarray:
        data.qpos, data.qvel, data.qacc = Q, V, A
        mj.mj_inverse(model, data)
        return np.array(data.qfrc_inverse)

    def forward() -> np.ndarray:
        data.qpos, data.qvel, data.qfrc_applied = Q, V, TORQUE
        mj.mj_forward(model, data)
        return np.array(data.qacc)

    def move(duration: float) -> np.ndarray:
        # Time comes before the angles.
        start = np.concatenate([[0.0], START, np.zeros(3)])
        steps = round(duration / MUJOCO_STEP)
        clean = mj.MjData(model)
        states, _ = rollout.rollout(model, clean, start[None], nstep=steps)
        rows = np.vstack([start, states[0]])[:: round(SAMPLE / MUJOCO_STEP)]
        return rows[:, 1:4]

    return Program(inverse, forward, move, swing_note=f'rollout, RK4, {1e3 * MUJOCO_STEP:.1f} ms')


def drake() -> Program:
    """Return Drake; its own integrators take the steps."""
    module('pydrake', 'drake')
    tree = module('pydrake.multibody.tree', 'drake')
    multibody = module('pydrake.multibody.plant', 'drake')
    analysis = module('pydrake.systems.analysis', 'drake')
    plant = multibody.MultibodyPlant(0.0)
    parent, length = plant.world_frame(), 0.0
    for i, name in enumerate(NAMES):
        # Inertia about the joint, over the mass.
        about = INERTIAS[i] / MASSES[i]
        unit = about + CENTERS[i] ** 2
        rotational = tree.UnitInertia(about, unit, unit)
        inertia = tree.SpatialInertia(MASSES[i], [CENTERS[i], 0.0, 0.0], rotational)
        body = plant.AddRigidBody(name, inertia)
        place = plant.AddFrame(
            tree.FixedOffsetFrame(
                f'{name}_joint',
                parent,
                module('pydrake.math', 'drake').RigidTransform([length, 0.0, 0.0]),
            )
        )
        plant.AddJoint(
            tree.RevoluteJoint(f'{name}_angle', place, body.body_frame(), [0.0, -1.0, 0.0])
        )
        parent, length = body.body_frame(), LENGTHS[i]
    plant.mutable_gravity_field().set_gravity_vector([0.0, 0.0, -GRAVITY])
    plant.Finalize()
    context = plant.CreateDefaultContext()
    plant.get_applied_generalized_force_input_port().FixValue(context, TORQUE)
    forces = tree.MultibodyForces(plant)
    state = np.concatenate([Q, V])

    def inverse() -> np.ndarray:
        plant.SetPositionsAndVelocities(context, state)
        plant.CalcForceElementsContribution(context, forces)
        return np.asarray(plant.CalcInverseDynamics(context, A, forces))

    def forward() -> np.ndarray:
        plant.SetPositionsAndVelocities(context, state)
        return np.asarray(plant.EvalTimeDerivatives(context).CopyToVector()[3:])

    def move(duration: float) -> np.ndarray:
        simulator = analysis.Simulator(plant)
        analysis.ResetIntegratorFromFlags(simulator, 'runge_kutta5', DRAKE_STEP)
        integrator = simulator.get_mutable_integrator()
        integrator.set_maximum_step_size(DRAKE_STEP)
        integrator.set_fixed_step_mode(True)
        own = simulator.get_mutable_context()
        plant.SetPositionsAndVelocities(own, np.append(START, np.zeros(3)))
        simulator.Initialize()
        rows = [START]
        for k in range(round(duration / SAMPLE)):
            simulator.AdvanceTo((k + 1) * SAMPLE)
            rows.append(np.array(plant.GetPositions(own)))
        return np.array(rows)

    return Program(inverse, forward, move, swing_note=f'Runge-Kutta 5, {1e3 * DRAKE_STEP:.1f} ms')


def exudyn() -> Program:
    """Return Exudyn with minimal coordinates and its explicit solver, without error control."""
    exu, item = module('exudyn', 'exudyn'), module('exudyn.itemInterface', 'exudyn')

    def move(duration: float) -> np.ndarray:
        container = exu.SystemContainer()
        system = container.AddSystem()
        node = system.AddNode(
            item.NodeGenericODE2(
                referenceCoordinates=[0.0] * 3,
                initialCoordinates=START.tolist(),
                initialCoordinates_t=[0.0] * 3,
                numberOfODE2Coordinates=3,
            )
        )
        offsets = [[0.0] * 3, [LENGTHS[0], 0.0, 0.0], [LENGTHS[1], 0.0, 0.0]]
        system.AddObject(
            item.ObjectKinematicTree(
                nodeNumber=node,
                jointTypes=[exu.JointType.RevoluteZ] * 3,
                linkParents=[-1, 0, 1],
                jointTransformations=exu.Matrix3DList([np.eye(3)] * 3),
                jointOffsets=exu.Vector3DList(offsets),
                linkInertiasCOM=exu.Matrix3DList([inertia * np.eye(3) for inertia in INERTIAS]),
                linkCOMs=exu.Vector3DList([[center, 0.0, 0.0] for center in CENTERS]),
                linkMasses=list(MASSES),
                baseOffset=[0.0] * 3,
                gravity=[0.0, -GRAVITY, 0.0],
            )
        )
        sensor = system.AddSensor(
            item.SensorNode(
                nodeNumber=node,
                storeInternal=True,
                outputVariableType=exu.OutputVariableType.Coordinates,
            )
        )
        system.Assemble()
        settings = exu.SimulationSettings()
        settings.timeIntegration.numberOfSteps = round(duration / EXUDYN_STEP)
        settings.timeIntegration.endTime = duration
        settings.timeIntegration.verboseMode = 0
        settings.solution.file.write = False
        settings.solution.sensors.writePeriod = SAMPLE
        with contextlib.redirect_stdout(io.StringIO()):
            system.SolveDynamic(settings, solverType=exu.DynamicSolverType.RK67)
        return np.asarray(system.GetSensorStoredData(sensor))[:, 1:4]

    return Program(
        swing=move,
        note='has no call for one evaluation',
        swing_note=f'RK67, {1e3 * EXUDYN_STEP:.1f} ms',
    )


PROGRAMS = {
    'longreach': longreach,
    'Pinocchio': pinocchio,
    'MuJoCo': mujoco,
    'Drake': drake,
    'Exudyn': exudyn,
}


def programs() -> Iterator[tuple[str, Program]]:
    """Yield the programs; one that is not installed has a note."""
    for name, make in PROGRAMS.items():
        try:
            yield name, make()
        except BenchmarkError as error:
            yield name, Program(note=str(error), swing_note=str(error))


def repeated(action: Callable[[], object]) -> Callable[[], None]:
    """Return a function that runs an action CALLS times."""

    def run() -> None:
        for _ in range(CALLS):
            action()

    return run


def evaluations(quick: bool) -> list[Row]:
    """Time calls of inverse dynamics, and as the rows' part those of forward dynamics."""
    repeats, rows = 5 if quick else 25, []
    exact = TORQUE, A
    for name, program in programs():
        calls = program.inverse, program.forward
        times: list[tuple[float, ...]] = []
        error = 0.0
        for call, expected in zip(calls, exact, strict=True):
            if call is None:
                times.append((float('nan'),))
                continue
            result = call()
            error = max(error, float(np.abs(result - expected).max() / np.abs(expected).max()))
            times.append(measure(repeated(call), repeats)[0])
        if any(calls):
            rows.append(Row(name, times[0], error, times[1]))
        elif program.note:
            rows.append(Row(name, times[0], part=times[1], note=program.note))
    return rows


def free_swing(quick: bool) -> list[Row]:
    """Time a swing of 20 s without torques; errors are those of the angles [rad]."""
    duration, repeats, rows = 20.0, 3 if quick else 9, []
    exact = swing(duration, 1e-14)
    for name, program in programs():
        if program.swing is None:
            rows.append(Row(name, (float('nan'),), note=program.swing_note))
            continue
        program.swing(1.0)
        times, angles = measure(lambda move=program.swing: move(duration), repeats)  # type: ignore[misc]
        error = float(np.abs(angles - exact).max())
        note = f'{duration / np.median(times):.0f} times real time; {program.swing_note}'
        rows.append(Row(name, times, error, note=note))
    return rows


SECTIONS = {
    'h': Section(
        f'Three rigid links, {CALLS} calls: inverse dynamics, and forward dynamics',
        evaluations,
        'forward',
    ),
    'i': Section('Free swing of three links over 20 s, each within 1e-6 rad', free_swing),
}
