"""
Hydraulic cylinders with proportional valves.

``parameters``   oil, pump, valves, hoses, cylinders, as files have them
``valves``       elements of circuits: orifices, openings, chambers
``actuators``    the cylinders of a machine: one table, flows, time derivatives
``friction``     sliding, sticking, ends of the stroke
``observed``     flows through relief and make-up valves and the pump's rail, as columns of runs
``lines``        actuators behind lines with inertance, capacitance and resistance; motors
``inverse``      holding pressures, spool positions for velocities, check of the step length

Compiled functions take single elements or all actuators of a machine. For other circuits call the
functions of ``valves`` or ``lines`` for each element, with pressures and flows in the state.
"""

from longreach_dynamics.hydraulics.actuators import (
    Actuators,
    actuator_rates,
    actuators_of,
    port_flows,
    rail_pressure,
    spool_flows,
)
from longreach_dynamics.hydraulics.friction import stop_force
from longreach_dynamics.hydraulics.inverse import (
    STABILITY,
    counterbalance_rates,
    fastest_pistons,
    holding_pressures,
    oil_stiffness,
    port_rates,
    smallest_volumes,
    spool_positions,
    spool_rates,
)
from longreach_dynamics.hydraulics.observed import port_columns, port_series
from longreach_dynamics.hydraulics.parameters import (
    CounterbalanceParameters,
    Cylinder,
    HoseParameters,
    MakeUpParameters,
    OilParameters,
    PumpParameters,
    ReliefParameters,
    StopParameters,
    ValveParameters,
)
from longreach_dynamics.hydraulics.valves import (
    chamber_pressure,
    oil_share,
    pilot_opening,
    pressure_rates,
    signed_root,
    valve_flows,
    valve_opening,
)

__all__ = [
    'STABILITY',
    'Actuators',
    'CounterbalanceParameters',
    'Cylinder',
    'HoseParameters',
    'MakeUpParameters',
    'OilParameters',
    'PumpParameters',
    'ReliefParameters',
    'StopParameters',
    'ValveParameters',
    'actuator_rates',
    'actuators_of',
    'chamber_pressure',
    'counterbalance_rates',
    'fastest_pistons',
    'holding_pressures',
    'oil_share',
    'oil_stiffness',
    'pilot_opening',
    'port_columns',
    'port_flows',
    'port_rates',
    'port_series',
    'pressure_rates',
    'rail_pressure',
    'signed_root',
    'smallest_volumes',
    'spool_flows',
    'spool_positions',
    'spool_rates',
    'stop_force',
    'valve_flows',
    'valve_opening',
]
