"""The command ``longreach harvester drive``: a person at the keyboard."""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
from longreach_msgs.msg import HydraulicState
from sensor_msgs.msg import JointState

from longreach_dynamics.errors import InputError, LongreachError
from longreach_harvester.kinematics import tip_at
from longreach_harvester.parameters import HEAD_JOINTS, JOINTS, HarvesterParameters
from longreach_harvester.spec import HARVESTER
from longreach_harvester.teleoperation import Teleoperation, load_teleoperation
from longreach_harvester.training import TRAINING_UNITS, training_figures
from longreach_node.conversions import finite_values
from longreach_node.keyboard import Keys
from longreach_node.remote_drive import Driver, Row
from longreach_node.stamps import nanoseconds_of
from longreach_tools.machine_command import machine_of
from longreach_tools.output import print_result, summary_table


class HarvesterDriver(Driver):
    """Keys become spools; rows are time, joint angles, spools, and angles of a head that hangs."""

    spec = HARVESTER
    machine: HarvesterParameters

    def row_of(self, joints: JointState, hydraulics: HydraulicState) -> Row:
        """Return the row of a sample."""
        head = [name for name in HEAD_JOINTS if name in joints.name]
        angles = finite_values('joint_states', joints.name, joints.position, (*JOINTS, *head))
        spools = finite_values('hydraulics', hydraulics.name, hydraulics.spool, JOINTS)
        time = nanoseconds_of(joints.header.stamp) * 1e-9
        return (time, *angles[:3].tolist(), *spools.tolist(), *angles[3:].tolist())

    def show(self, row: Row) -> str:
        """Return time and place of the tip."""
        x, y, z = tip_at(self.machine, np.array(row[1:4])).tolist()
        return f'{row[0]:.1f} s, tip at {x:.2f}, {y:.2f}, {z:.2f} m'


def drive_harvester(arguments: argparse.Namespace) -> int:
    """Let a person drive, and print the training figures."""
    if arguments.speed > 1.0:
        raise InputError(f'--speed = {arguments.speed:g}, allowed: (0, 1]')
    harvester = machine_of(HARVESTER, arguments)
    joints, tip = (Teleoperation.of(harvester, control) for control in ('joints', 'tip'))
    keys = Keys(arguments.speed, load_teleoperation().control == 'tip')
    driver = HarvesterDriver(harvester, (joints, tip), keys)
    rows = driver.drive(arguments.namespace, arguments.timeout)
    if len(rows) < 2:
        raise LongreachError('no two samples came while driving: there are no training figures')
    table = np.array(rows)
    head = table[:, 7:] if table.shape[1] > 7 else None
    figures: dict[str, Any] = {
        'training': training_figures(harvester, table[:, 0], table[:, 1:4], table[:, 4:7], head)
    }
    print_result(figures, summary_table(figures, TRAINING_UNITS), arguments.format)
    return 0
