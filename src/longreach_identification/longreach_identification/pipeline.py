"""From recordings to parameters: poses at rest first, whose result is the prior for the motion."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from longreach_dynamics.errors import InputError
from longreach_identification.dynamics import Found, Settings, identify
from longreach_identification.machine import Identifiable, Recording
from longreach_identification.recordings import check_recordings
from longreach_identification.search import INTERRUPTED
from longreach_identification.statics import StaticResult, identify_statics, still_poses

# Groups of parameters that poses at rest tell.
STATIC_GROUPS = ('masses', 'gauges')


class Identified(NamedTuple):
    """Result of :func:`identify_machine`; ``first``: warnings about the recordings."""

    page: Identifiable
    start: Any
    machine: Any
    statics: StaticResult | None
    dynamics: Found | None
    first: tuple[str, ...] = ()

    @property
    def stages(self) -> dict[str, StaticResult | Found]:
        """The results of which there are some, by name."""
        both = {'statics': self.statics, 'motion': self.dynamics}
        return {name: stage for name, stage in both.items() if stage is not None}

    @property
    def parameters(self) -> dict[str, dict[str, float | None]]:
        """Value, standard error and start of each parameter of the machine, and what follows."""
        before = self.page.values(self.start)
        found = {
            name: {**entry, 'start': before[name]}
            for stage in self.stages.values()
            for name, entry in stage.estimate.to_dict()['parameters'].items()
            # What was not estimated is no result.
            if name in before and entry['prior_share'] < 1.0
        }
        if self.dynamics is not None:
            start = self.page.derived(self.start, self.dynamics.experiment)
            for name, entry in self.dynamics.to_dict()['derived'].items():
                found[name] = {**entry, 'start': start.get(name)}
        return found

    @property
    def warnings(self) -> tuple[str, ...]:
        """What a reader of the result must know."""
        every = (text for one in self.stages.values() for text in one.estimate.warnings)
        return tuple(dict.fromkeys((*self.first, *every)))

    @property
    def notes(self) -> tuple[str, ...]:
        """What was left out or kept, as in usual recordings."""
        return tuple(text for one in self.stages.values() for text in one.notes)

    def to_dict(self) -> dict[str, Any]:
        """Return the result for JSON."""
        stages = {name: one.to_dict() for name, one in self.stages.items()}
        beginnings = {'statics': 'static_', 'motion': ''}
        return {
            'parameters': self.parameters,
            'fit': {
                f'{beginnings[name]}{signal}': fit
                for name, stage in stages.items()
                for signal, fit in stage['fit'].items()
            },
            'warnings': list(self.warnings),
            'notes': list(self.notes),
            'stages': stages,
        }


def identify_machine(
    page: Identifiable,
    start: Any,
    static: Sequence[Recording],
    motion: Sequence[Recording],
    parameters: Sequence[str],
    settings: Settings | None = None,
    shortest: float = 5.0,
    **workers: Any,
) -> Identified:
    """Identify parameters, by names or groups, from poses at rest and motion after events."""
    # ``settings`` are those of the motion, by default for 8 s.
    if not static and not motion:
        raise InputError('there is no recording; give --static or --release')
    check_recordings([*static, *motion], page.signals(start))
    first = tuple(
        f'{recording.name} does not tell its payload, which is taken as 0 kg; with a load all'
        f' masses would be wrong: give --payload {recording.name}=MASS'
        for recording in static
        if 'payload' not in recording.conditions
    )
    # Each recording has biases of its own; in motion they are in the constant of a signal.
    chosen = page.chosen(start, parameters).items()
    groups = {n: free.group for n, free in chosen if not n.startswith('gauge_bias')}
    at_rest = found = None
    values: dict[str, float] = {}
    if static:
        of_rest = [name for name, group in groups.items() if group in STATIC_GROUPS]
        if not of_rest:
            raise InputError(
                f'parameters = {", ".join(parameters)}: poses at rest tell'
                f' {" and ".join(STATIC_GROUPS)} only; add one of them, or leave --static out'
            )
        poses, stretches = still_poses(page.statics(), start, static, shortest)
        at_rest = identify_statics(page.statics(), start, poses, of_rest, stretches)
        values = at_rest.values()
    if motion and at_rest and at_rest.estimate.status == INTERRUPTED:
        # What has no errors is no prior.
        motion, first = (), (*first, 'interrupted at the poses at rest: motion is not compared')
    if motion:
        known = at_rest.parameters if at_rest else ()
        rest = [name for name in groups if name not in known]
        if not rest and not known:
            raise InputError(f'parameters = {", ".join(parameters)}: motion tells none of them')
        settings = dataclasses.replace(
            settings or Settings(signals=page.compared, duration=8.0),
            prior=at_rest.prior() if at_rest else None,
            fixed={name: value for name, value in values.items() if name not in known},
        )
        found = identify(page, start, motion, rest, settings, **workers)
        values |= {n: v for n, v in found.estimate.by_name.items() if '@' not in n}
    result = Identified(page, start, page.with_values(start, values), at_rest, found, first)
    before = page.values(start)
    stages = [stage.estimate for stage in result.stages.values()]
    pairs = [(one.value(n), before[n]) for one in stages for n in one.names if n in before]
    interrupted = any(one.status == INTERRUPTED for one in stages)
    if interrupted and all(math.isclose(*pair, rel_tol=1e-9) for pair in pairs):
        raise KeyboardInterrupt('interrupted before the first step: nothing was found')
    return result
