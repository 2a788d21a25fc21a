"""Subcommand ``longreach identify demo``: a boom whose parameters are known."""

from __future__ import annotations

import argparse

from longreach_dynamics.resources import data_directory
from longreach_tools.demo import call_in_sight, prepare, remove_old_bag

_POSES = {'static_poses': '0', 'static_poses_loaded': '90'}  # scenarios and their loads [kg]
_NEXT = """
{report} is a page for a browser; it has planted values beside those that were found.
{found} is a boom file: longreach boom release --file {found}"""


DEMO = 'a boom with planted parameters: simulate, record, identify, compare'


def run_demo(arguments: argparse.Namespace) -> int:
    """Run ``demo``."""
    out = prepare(arguments.out)
    planted = data_directory('longreach_boom') / 'config' / 'boom_planted.yaml'
    bag = out / 'identify_release'
    found, report = out / 'identify_found.yaml', out / 'identify_report.html'
    remove_old_bag(bag)
    tables = [out / f'identify_{scenario}.csv' for scenario in _POSES]
    calls: list[list[object]] = [
        ['boom', 'measure', scenario, '--file', planted, '--seed', seed, '--csv', table]
        for seed, (scenario, table) in enumerate(zip(_POSES, tables, strict=True))
    ]
    calls.append(
        [
            *('launch', 'vision', 'boom:=true', f'boom_file:={planted}', 'sensors:=typical'),
            *('scenario:=release_light', 'duration:=15.0', 'real_time_factor:=0.0', 'scale:=0.5'),
            *(f'record:={bag}', 'rviz:=false'),
        ]
    )
    payloads = [
        word
        for table, mass in zip(tables, _POSES.values(), strict=True)
        for word in ('--payload', f'{table.name}={mass}')
    ]
    calls.append(
        [
            *('identify', 'boom', '--static', *tables, *payloads, '--release', bag),
            # A recording without one of them, such as that of a run without cameras, is refused.
            *('--signals', 'pressures,pistons,strain,inclination,markers'),
            *('--out', found, '--report', report, '--planted', planted),
        ]
    )
    for words in calls:
        print()
        code = call_in_sight(['longreach', *map(str, words)])
        if code:
            return code
    print(_NEXT.format(found=found, report=report))
    return 0
