"""Many runs over processes."""

from __future__ import annotations

import gc
from multiprocessing.synchronize import SemLock

import numpy as np
import pytest

from longreach_boom.motion import advance_motion
from longreach_boom.scenario import Attachment, HangingLoad, Scenario
from longreach_boom.simulation import simulate
from longreach_boom.sweep import simulate_many
from longreach_dynamics import parallel
from longreach_dynamics.errors import InputError
from longreach_dynamics.parallel import InterruptedSweep

RELEASE = Scenario(duration=0.5, pose='site', loads=(HangingLoad(mass=90.0),), release=(0.0,))


@pytest.fixture(scope='module')
def booms(boom):
    return [boom.with_value('oil.bulk_modulus', value) for value in (0.8e9, 1.0e9, 1.2e9)]


def test_processes_give_what_single_runs_give_in_their_order(booms):
    results = simulate_many(booms, RELEASE, processes=2)
    for one, result in zip(booms, results, strict=True):
        assert result.parameters == one
        np.testing.assert_array_equal(result.table, simulate(one, RELEASE).table)


def test_each_boom_can_have_its_own_scenario(boom):
    scenarios = [RELEASE, RELEASE.replace(friction=False)]
    on, off = simulate_many([boom, boom], scenarios, processes=1)
    assert not np.array_equal(on.table, off.table)


def test_nothing_is_compiled_for_other_parameters(booms, boom):
    simulate(boom, RELEASE)
    before = len(advance_motion.signatures)
    simulate_many(booms, RELEASE, processes=1)
    # One for a fixed truck, one on springs.
    assert len(advance_motion.signatures) == before <= 2


def test_progress_is_shown_when_asked_for(booms, capsys):
    simulate_many(booms[:1], RELEASE, processes=1, progress=True)
    assert '1/1' in capsys.readouterr().err
    simulate_many(booms[:1], RELEASE, processes=1, progress=False)
    assert capsys.readouterr().err == ''


def test_a_run_that_fails_leaves_the_others(boom, booms):
    soft = boom.replace(youngs_modulus=1e9)
    crushed = RELEASE.replace(duration=2.0, attach=(Attachment(time=0.1, mass=1e6),))
    scenarios = [RELEASE, RELEASE, RELEASE.replace(pose='nowhere'), crushed]
    for processes in (1, 2):
        done, none, lost, partly = simulate_many(
            [booms[0], soft, boom, boom], scenarios, processes
        )
        assert [run.status for run in (done, none, lost, partly)] == ['complete'] + ['failed'] * 3
        np.testing.assert_array_equal(done.table, simulate(booms[0], RELEASE).table)
        assert len(none.table) == len(lost.table) == 0
        assert none.summary()['tip_highest'] is None
        assert none.warnings() == ()
        assert none.message
        assert "pose = 'nowhere'" in lost.message
        assert 'runs away' in partly.message
        assert len(partly.table) > 20


def locks_of_worker(_):
    return [type(lock).__name__ for lock in gc.get_objects() if isinstance(lock, SemLock)]


def test_workers_hold_no_semaphore_that_a_terminated_process_would_leave(booms):
    locks = simulate_many(booms[:2], RELEASE, processes=2, measure=locks_of_worker)
    # Those of the pool's queues are there, which this process removes; not that of tqdm.
    assert [set(names) for names in locks] == [{'Lock', 'BoundedSemaphore'}] * 2


@pytest.mark.parametrize('processes', [1, 2])
@pytest.mark.parametrize('wrapped', [False, True])
def test_interrupted_sweep_has_the_runs_that_are_done(booms, monkeypatch, processes, wrapped):
    finished = 0

    class Bar(parallel.tqdm):
        def update(self, n=1):
            nonlocal finished
            finished += n
            if finished == 2:
                if wrapped:
                    raise SystemError from KeyboardInterrupt()
                raise KeyboardInterrupt

    monkeypatch.setattr(parallel, 'tqdm', Bar)
    with pytest.raises(InterruptedSweep) as caught:
        simulate_many([*booms, *booms], RELEASE, processes=processes)
    outcomes = caught.value.outcomes
    assert len(outcomes) == 6
    done = [k for k, run in enumerate(outcomes) if run is not None]
    assert len(done) == 2
    for k in done:
        np.testing.assert_array_equal(outcomes[k].table, simulate(booms[k % 3], RELEASE).table)


def test_bad_numbers_are_refused(boom):
    with pytest.raises(InputError, match='scenario has 2 entries, allowed: one, or 1'):
        simulate_many([boom], [RELEASE, RELEASE])
    with pytest.raises(InputError, match='processes = 0, allowed: at least 1'):
        simulate_many([boom], RELEASE, processes=0)
    assert simulate_many([], RELEASE) == []
