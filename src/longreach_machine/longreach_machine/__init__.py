"""
The declaration of a machine, and what is made of it without ROS.

``spec``     what a machine declares
``panels``   which of its columns belong in one figure
``linear``   linear models about a state
"""

from longreach_machine.linear import LinearModel, Pole, Signal, SmoothModel, linearize
from longreach_machine.panels import Curve, Lane, Panel, check_curves, curves_of
from longreach_machine.spec import MachineSpec

MACHINE_GROUP = 'longreach.machines'
"""Group of the entry points of machines."""

__all__ = [
    'MACHINE_GROUP',
    'Curve',
    'Lane',
    'LinearModel',
    'MachineSpec',
    'Panel',
    'Pole',
    'Signal',
    'SmoothModel',
    'check_curves',
    'curves_of',
    'linearize',
]
