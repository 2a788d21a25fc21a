"""The excavator over ROS."""

from __future__ import annotations

PLANTS = {
    'excavator, 50 Hz': (
        'longreach', 'launch', 'excavator', 'operator:=false', 'scenario:=dig_20kpa',
    ),
}  # fmt: skip
