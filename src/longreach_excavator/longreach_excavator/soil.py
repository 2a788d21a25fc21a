"""
Resistance of the soil to the tooth: two laws, and its mobilisation with travel.

A law gives the largest resistance F [N] at a depth h [m] of the tooth below the soil's surface.
In compiled code both laws have the form linear h + quadratic h^2 + power h^exponent, and 0 above
the surface.

Zelenin: F = k C h^n with k = 10 m^0.65 and n = 1.35 (Ozunlu 2009, (4.1), with the unit that k
needs when C is in Pa and h in m). Zelenin's C counts the blows of a penetrometer, and his h is in
cm; the thesis uses the cohesion in its place, so that C is a fitted parameter of the soil and not
the result of a shear test. (5.7) has R = 1448 mm beside a cohesion in Pa: that is 1000^1.35 =
11 220 times too much, 1e9 N for a machine of 20 t.

Earthmoving: the fundamental earthmoving equation (Reece 1964; McKyes 1985) of a wide blade that
pushes a wedge of soil up a plane of failure, F = w (gamma h^2 N_gamma + c h N_c + q h N_q +
c_a h N_ca), see :func:`wedge_factors`. F is the force at the friction angle delta to the blade's
normal; the adhesion along the blade is a separate force and not part of F, as in the references.
The blade has a constant rake angle, no sides and no load: soil in the bucket can be included as
surcharge.

Direction: the force on the tooth is -F(h) s with the mobilisation s, a vector in the plane,
s' = (v - |v| s) / K for a tooth of velocity v. This is the shear law of Janosi and Hanamoto (1961)
in differential form: for motion one way from rest |s| = 1 - exp(-j / K) after the travel j. It is
independent of the rate, so a stalled bucket at rest does not creep; one that vibrates does, as s
follows the length of its path. After a reversal the force reverses within a few K. On the unit
circle s . s' = (v . s - |v|) / K <= 0, so |s| <= 1 always. A fourth-order Runge-Kutta step dt
preserves this for |v| dt / K <= 1 with any v within the step, and up to 2.78 for a constant v.

Bearing (depth: terrain): firm ground yields under a strip at Hansen's pressure (1970), loose soil
in front of a face at Rankine's passive pressure (1857), see :func:`bearing_pressure`.

Mode thesis has neither travel nor direction of motion: its force F(h) has the angle phi_1 to the
line DN of the bucket at all times, and so pushes back a bucket at rest.
"""

from __future__ import annotations

import dataclasses
import math

import numpy as np
from numba import njit

from longreach_dynamics.errors import InputError
from longreach_dynamics.parameters import Parameters, choice, quantity

LAWS = ('zelenin', 'earthmoving')
# A flatter wedge is longer than fifty depths: outside the validity of the law.
_FLATTEST_WEDGE = math.radians(1.0)


@njit
def resistance(depth, linear, quadratic, power, exponent):  # type: ignore[no-untyped-def]
    """Return the largest resistance [N] at a depth [m], 0 above the surface, by `coefficients`."""
    if depth <= 0.0:
        return 0.0
    return (linear + quadratic * depth) * depth + power * depth**exponent


@njit
def mobilisation_rate(vx, vz, sx, sz, shear_displacement):  # type: ignore[no-untyped-def]
    """Return s' = (v - |v| s) / K [1/s] of the mobilisation, for velocities of the tooth [m/s]."""
    speed = math.sqrt(vx * vx + vz * vz)
    return (vx - speed * sx) / shear_displacement, (vz - speed * sz) / shear_displacement


@njit
def bearing_pressure(cohesion, friction, tilt, slope, surcharge, footing):  # type: ignore[no-untyped-def]
    """
    Return the pressure at which soil yields under a smooth strip [Pa].

    q = c N_c + p_0 N_q + b N_gamma, of Hansen (1970) with his factors of a tilted base, exp(-2
    tilt tan phi) in N_q and exp(-2.7 tilt tan phi) in N_gamma:

    N_q = K e^((pi - 2 tilt) tan phi), N_c = (N_q - 1) cot phi, for phi = 0: pi + 2 - 2 tilt,

    N_gamma = 1.5 (K e^(pi tan phi) - 1) tan phi e^(-2.7 tilt tan phi).

    K is Rankine's passive coefficient of a surface that falls at ``slope`` from the strip (0 for
    soil with cohesion), ``tilt`` the angle of the strip's outward normal to the vertical
    downwards, 0 to pi [rad], ``surcharge`` p_0 the weight of the soil above the strip, ``footing``
    b = gamma B / 2 for a width B [Pa]. N_q and N_c are exact for soil without weight: Prandtl's
    for a level strip, and Rankine's passive pressure, N_q = K, N_c = 2 sqrt(K), for an upright
    one. The strength of the soil above the strip (depth factors of 1) and the strip's ends are
    neglected.
    """
    flat, tangent = math.cos(slope), math.tan(friction)
    root = math.sqrt(max(flat * flat - math.cos(friction) ** 2, 0.0))
    passive, level = (
        flat * (flat + root) / (flat - root),
        math.tan(0.25 * math.pi + 0.5 * friction),
    )
    n_q = passive * math.exp((math.pi - 2.0 * tilt) * tangent)
    n_c = (n_q - 1.0) / tangent if tangent > 1e-6 else math.pi + 2.0 - 2.0 * tilt
    n_gamma = 1.5 * (level * level * math.exp(math.pi * tangent) - 1.0) * tangent
    n_gamma *= math.exp(-2.7 * tilt * tangent) * passive / (level * level)
    return max(cohesion * n_c + surcharge * n_q + footing * n_gamma, 0.0)


@dataclasses.dataclass(frozen=True)
class ZeleninParameters(Parameters):
    """Parameters of Zelenin's law, F = k C h^n."""

    factor: float = quantity('factor, k', 'm^(2 - exponent)', above=0.0, at_most=1e3)
    # Below 1 the resistance would start with an infinite slope.
    exponent: float = quantity('exponent of the depth, n', at_least=1.0, at_most=3.0)


@dataclasses.dataclass(frozen=True)
class EarthmovingParameters(Parameters):
    """Blade and soil of the fundamental earthmoving equation, without the cohesion."""

    # A rougher blade shears the soil itself.
    relations = ('blade_friction_deg <= internal_friction_deg',)

    width: float = quantity('width of the blade, w', 'm', above=0.0, at_most=10.0)
    rake_angle_deg: float = quantity(
        'angle between blade and direction of cut, rho', 'deg', at_least=10.0, at_most=150.0
    )
    internal_friction_deg: float = quantity(
        'angle of internal friction of the soil, phi', 'deg', at_least=0.0, at_most=60.0
    )
    blade_friction_deg: float = quantity(
        'angle of friction between soil and blade, delta', 'deg', at_least=0.0, at_most=60.0
    )
    # Bounds that reject a density in kg/m^3.
    unit_weight: float = quantity(
        'weight of the soil per volume, gamma = rho g', 'N/m^3', at_least=3e3, at_most=6e4
    )
    adhesion: float = quantity(
        'adhesion between soil and blade, c_a', 'Pa', at_least=0.0, at_most=1e6
    )
    surcharge: float = quantity(
        'pressure on the surface of the soil, q', 'Pa', at_least=0.0, at_most=1e6
    )

    def check(self) -> None:
        """Raise InputError when the angles leave no wedge of soil that could fail."""
        total = self.rake_angle_deg + self.internal_friction_deg + self.blade_friction_deg
        names = 'rake_angle_deg + internal_friction_deg + blade_friction_deg'
        # The wedge moves as long as rho + delta + beta + phi < 180 deg.
        if total >= 180.0:
            raise InputError(
                f'{names} = {total:g} deg leaves no failure wedge, allowed: below 180 deg; lower'
                ' the rake angle'
            )
        angle = wedge_angle(self)
        if angle < _FLATTEST_WEDGE:
            raise InputError(
                f'{names} = {total:g} deg leaves a failure wedge of {math.degrees(angle):.2g} deg,'
                f' allowed: at least {math.degrees(_FLATTEST_WEDGE):g} deg; lower the rake angle'
            )


@dataclasses.dataclass(frozen=True)
class TerrainParameters(Parameters):
    """Ground that is cut, carried and dumped, see :mod:`longreach_excavator.terrain`."""

    cell: float = quantity(
        'length of the cells of the ground along x', 'm', at_least=0.01, at_most=0.1, default=0.05
    )
    repose_deg: float = quantity(
        'angle of repose of loose soil', 'deg', at_least=5.0, at_most=44.0, default=35.0
    )
    edge: float = quantity(
        "thickness of the bucket's cutting edge", 'm', at_least=0.0, at_most=0.2, default=0.03
    )
    loose_share: float = quantity(
        'share of the height of loose soil that counts as depth',
        at_least=0.0,
        at_most=1.0,
        default=0.3,
    )


@dataclasses.dataclass(frozen=True)
class SoilParameters(Parameters):
    """The soil, and the law of its resistance."""

    law: str = choice('law of the resistance', LAWS)
    # Above 1e6 Pa it is rock.
    cohesion: float = quantity('cohesion, C or c', 'Pa', at_least=0.0, at_most=1e6)
    sweep_radius: float = quantity(
        'distance from the joint of the bucket to the point whose depth counts, R',
        'm',
        above=0.0,
        at_most=10.0,
    )
    shear_displacement: float = quantity(
        'travel over which the resistance builds up, K', 'm', at_least=1e-3, at_most=1.0
    )
    zelenin: ZeleninParameters = quantity('parameters of law: zelenin')
    earthmoving: EarthmovingParameters = quantity('parameters of law: earthmoving')
    # The thesis prints no number: its force is "parallel to the bucket tip", across DN.
    phi_1_deg: float = quantity(
        "angle from DN to the soil's force on the bucket, phi_1; mode: thesis, depth: terrain",
        'deg',
        at_least=-180.0,
        at_most=180.0,
        default=90.0,
    )
    # Also an input of the thesis' program (B.15). Zelenin's law gives a force alone.
    m_45: float = quantity(
        'moment of the soil on the bucket while it is in the soil, M_45, positive lifts; mode:'
        ' thesis',
        'N m',
        at_least=-1e6,
        at_most=1e6,
        default=0.0,
    )
    terrain: TerrainParameters = quantity('for depth: terrain', default=TerrainParameters())

    def check(self) -> None:
        """Raise InputError when the adhesion does not fit the soil, with law: earthmoving."""
        if self.law != 'earthmoving':
            return
        tool = self.earthmoving
        if tool.adhesion > self.cohesion:
            raise InputError(
                f'earthmoving.adhesion = {tool.adhesion:g} Pa, allowed: at most cohesion ='
                f' {self.cohesion:g} Pa; a stickier blade shears the soil itself'
            )
        _, n_c, n_q, n_ca = wedge_factors(tool)
        others = self.cohesion * n_c + tool.surcharge * n_q
        # Blades of small rake drag the wedge along by their adhesion: N_ca is negative there.
        if others + tool.adhesion * n_ca < 0.0:
            raise InputError(
                f'earthmoving.adhesion = {tool.adhesion:g} Pa, allowed: at most'
                f' {-others / n_ca:g} Pa with earthmoving.rake_angle_deg ='
                f' {tool.rake_angle_deg:g} deg, else the resistance would be negative'
            )


def wedge_angle(tool: EarthmovingParameters) -> float:
    """
    Return the angle of the failure plane to the surface, beta [rad], that minimises N_gamma.

    With t = cot(beta + phi), N_gamma of :func:`wedge_factors` is a positive linear function of t
    over a positive concave one that vanishes at both ends of 0 < beta < pi - rho - delta - phi.
    Such a ratio has one minimum; setting its derivative to zero is a quadratic equation,
    a t^2 + 2 b t + c = 0.

    For a soil without friction N_gamma is the same for all wedges. The limit phi -> 0 then gives
    beta = (pi - rho) / 2, which minimises N_c.
    """
    rake, internal, blade = _angles(tool)
    slope = 1.0 / math.tan(rake)
    friction = math.tan(internal)
    along, across = math.cos(rake + blade), math.sin(rake + blade)
    a = across * (1.0 - slope * friction)
    b = across * (slope + friction)
    c = friction * along - across
    if blade > 0.0:
        c -= math.sin(blade) / (friction * math.sin(rake))
    # This form of the root holds for a = 0, where rho = phi; and b <= 0 comes with a c < 0 only.
    t = -c / (b + math.sqrt(max(b * b - a * c, 0.0)))
    return math.atan2(1.0, t) - internal


def wedge_factors(
    tool: EarthmovingParameters, beta: float | None = None
) -> tuple[float, float, float, float]:
    """
    Return N_gamma, N_c, N_q, N_ca of the fundamental earthmoving equation.

    A tip at depth d, a blade that rises backwards at the rake angle rho and a failure plane that
    rises forwards at beta bound a wedge, which is d (cot rho + cot beta) long at the surface. Per
    width there act on it its weight, gamma d^2 (cot rho + cot beta) / 2, and the surcharge, q d
    (cot rho + cot beta); the blade's P, at delta to its normal, thus P (sin(rho + delta), cos(rho
    + delta)), and the adhesion c_a d (cot rho, -1); of the soil below R (-sin(beta + phi),
    cos(beta + phi)) and the cohesion -c d (cot beta, 1).

    The balance of forces across R leaves P alone, with D = cos(rho + delta) + sin(rho + delta)
    cot(beta + phi): 2 N_gamma D = N_q D = cot rho + cot beta, N_c D = 1 + cot beta cot(beta +
    phi), N_ca D = 1 - cot rho cot(beta + phi).

    ``beta`` [rad] is that of :func:`wedge_angle` by default. Behind a smooth blade that wedge has
    the least N_c, too; behind a rough one at a small rake angle it overstates the least N_c, at 45
    deg by up to a fifth, at 20 deg by up to four fifths.
    """
    rake, internal, blade = _angles(tool)
    if beta is None:
        beta = wedge_angle(tool)
    cot_rake, cot_beta = 1.0 / math.tan(rake), 1.0 / math.tan(beta)
    cot_plane = 1.0 / math.tan(beta + internal)
    divisor = math.cos(rake + blade) + math.sin(rake + blade) * cot_plane
    n_q = (cot_rake + cot_beta) / divisor
    n_c = (1.0 + cot_beta * cot_plane) / divisor
    n_ca = (1.0 - cot_rake * cot_plane) / divisor
    return 0.5 * n_q, n_c, n_q, n_ca


def coefficients(soil: SoilParameters) -> tuple[float, float, float, float]:
    """Return linear [N/m], quadratic [N/m^2], power [N/m^exponent], exponent of a soil's law."""
    if soil.law == 'zelenin':
        return 0.0, 0.0, soil.zelenin.factor * soil.cohesion, soil.zelenin.exponent
    tool = soil.earthmoving
    n_gamma, n_c, n_q, n_ca = wedge_factors(tool)
    pressure = soil.cohesion * n_c + tool.surcharge * n_q + tool.adhesion * n_ca
    return tool.width * pressure, tool.width * tool.unit_weight * n_gamma, 0.0, 1.0


def resistance_at(soil: SoilParameters, depths: np.ndarray) -> np.ndarray:
    """Return the largest resistances [N] at depths of any shape [m]; 0 above the surface."""
    if not np.isfinite(depths).all():
        raise InputError('depths has values that are not finite, allowed: finite numbers')
    linear, quadratic, power, exponent = coefficients(soil)
    inside = np.maximum(depths, 0.0)
    return np.asarray((linear + quadratic * inside) * inside + power * inside**exponent)


def _angles(tool: EarthmovingParameters) -> tuple[float, float, float]:
    """Return rake angle, internal friction and blade friction [rad]."""
    return (
        math.radians(tool.rake_angle_deg),
        math.radians(tool.internal_friction_deg),
        math.radians(tool.blade_friction_deg),
    )
