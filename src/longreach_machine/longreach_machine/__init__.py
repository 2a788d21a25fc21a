"""
The declaration of a machine, and what is made of it without ROS.

``spec``   what a machine declares
"""

from longreach_machine.spec import MachineSpec, Services

__all__ = ['MachineSpec', 'Services']
