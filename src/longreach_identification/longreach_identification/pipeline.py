"""From recordings to parameters: poses at rest first, whose result is the prior for the motion."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from longreach_dynamics.errors import InputError
from longreach_identification.dynamics import Found, Settings, identify
from longreach_identification.fit_report import INTERRUPTED
from longreach_identification.machine import Identifiable, Recording
from longreach_identification.recordings import check_recordings
from longreach_identification.statics import StaticResult, identify_statics, still_poses

# Groups of parameters that poses at rest tell.
STATIC_GROUPS = ('masses', 'gauges')


@dataclasses.dataclass(frozen=True)
class Identified:
    """Result of :func:`identify_machine`; ``first``: warnings about the recordings."""

    page: Identifiable
    start: Any
    machine: Any
    statics: StaticResult | None
    dynamics: Found | None
    first: tuple[str, ...] = ()

    @property
    def parameters(self) -> dict[str, dict[str, float | None]]:
        """Value, standard error and start of each parameter of the machine, and what follows."""
        found: dict[str, dict[str, float | None]] = {}
        before = self.page.values(self.start)
        stages = [s.estimate for s in (self.statics, self.dynamics) if s is not None]
        for estimate in stages:
            for name, entry in estimate.to_dict()['parameters'].items():
                # What was not estimated is no result.
                if name in before and entry['prior_share'] < 1.0:
                    found[name] = {**entry, 'start': before[name]}
        if self.dynamics is not None:
            experiment = self.dynamics.problem.predict.experiments[0]  # type: ignore[attr-defined]
            start = self.page.derived(self.start, experiment)
            for name, entry in self.dynamics.to_dict()['derived'].items():
                found[name] = {**entry, 'start': start.get(name)}
        return found

    @property
    def warnings(self) -> tuple[str, ...]:
        """What a reader of the result must know."""
        found = [*self.first, *(self.statics.warnings if self.statics else ())]
        found += list(self.dynamics.estimate.warnings) if self.dynamics else []
        return tuple(dict.fromkeys(found))

    @property
    def notes(self) -> tuple[str, ...]:
        """What was left out or kept, as in usual recordings."""
        return tuple(
            text for stage in (self.statics, self.dynamics) if stage for text in stage.notes
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the result for JSON."""
        fit: dict[str, Any] = {}
        stages: dict[str, Any] = {}
        if self.statics is not None:
            stages['statics'] = self.statics.to_dict()
            fit |= {f'static_{name}': one for name, one in stages['statics']['fit'].items()}
        if self.dynamics is not None:
            stages['motion'] = self.dynamics.to_dict()
            fit |= stages['motion']['fit']
        return {
            'parameters': self.parameters,
            'fit': fit,
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
    *,
    signals: Sequence[str] | None = None,
    shortest: float = 5.0,
    duration: float = 8.0,
    validation: Sequence[str] = (),
    robust: bool = False,
    **workers: Any,
) -> Identified:
    """
    Identify parameters, by names or groups, from poses at rest and motion after events.

    ``shortest`` is the shortest stretch at rest [s]; others are those of ``dynamics.Settings``,
    and of ``identify``.
    """
    if not static and not motion:
        raise InputError('there is no recording; give --static or --release')
    check_recordings([*static, *motion], page.signals(start))
    first = tuple(
        f'{recording.name} does not tell its payload, which is taken as 0 kg; with a load all'
        f' masses would be wrong: give --payload {recording.name}=MASS'
        for recording in static
        if 'payload' not in recording.conditions
    )
    names = page.chosen(start, parameters)
    at_rest = None
    if static:
        statics = page.statics()
        of_rest = [
            name
            for name, entry in names.items()
            if entry.group in STATIC_GROUPS and not name.startswith('gauge_bias')
        ]
        if not of_rest:
            raise InputError(
                f'parameters = {", ".join(parameters)}: poses at rest tell'
                f' {" and ".join(STATIC_GROUPS)} only; add one of them, or leave --static out'
            )
        poses, stretches = still_poses(statics, start, static, shortest)
        at_rest = identify_statics(statics, start, poses, of_rest, stretches)
    if motion and at_rest and at_rest.estimate.status == INTERRUPTED:
        # What has no errors is no prior.
        motion, first = (), (*first, 'interrupted at the poses at rest: motion is not compared')
    found = None
    if motion:
        known = set(at_rest.parameters) if at_rest else set()
        biases = {n: v for n, v in at_rest.values().items() if n not in known} if at_rest else {}
        rest = [n for n in names if n not in known and n not in biases]
        # A constant of each signal is unknown in each recording, in which a bias is included.
        rest = [n for n in rest if not n.startswith('gauge_bias')]
        if not rest and not known:
            raise InputError(f'parameters = {", ".join(parameters)}: motion tells none of them')
        found = identify(
            page,
            start,
            motion,
            rest,
            Settings(
                signals=page.compared if signals is None else signals,
                prior=at_rest.prior() if at_rest else None,
                fixed=biases,
                duration=duration,
                validation=validation,
                robust=robust,
            ),
            **workers,
        )
    values = at_rest.values() if at_rest else {}
    if found is not None:
        values |= {
            name: float(value)
            for name, value in zip(found.estimate.names, found.estimate.values, strict=True)
            if '@' not in name
        }
    return Identified(page, start, page.with_values(start, values), at_rest, found, first)
