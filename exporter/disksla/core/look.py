"""What is known, put together for whoever asks."""

from collections.abc import Collection

import msgspec

from disksla.core.hostwait import told_by
from disksla.core.interval import Clocks, Interval, load_of
from disksla.core.peaks import highest
from disksla.core.pipeline import State
from disksla.core.probeledger import ProbeLedger
from disksla.core.purse import CreditLevel
from disksla.core.sampling import SOURCES
from disksla.core.settings import PROBE_KINDS, ProbeKind
from disksla.core.tally import recently
from disksla.core.view import DiskView, SamplerView, Traffic, View
from disksla.core.watched import Watched


def look(state: State) -> View:
    """Give everything known at the last sample, disks in the order of their names."""
    sampling = state.sampling
    return View(
        disks=tuple(_look_at(watched, state) for _, watched in sorted(state.watched.items())),
        sampler=SamplerView(
            ticks=sampling.ticks,
            missed_ticks=sampling.missed_ticks,
            lateness_s=sampling.lateness_s,
            gaps=sampling.gaps,
            errors=sampling.errors,
            collectors={source: sampling.works(source) for source in SOURCES},
            troubles=sampling.troubles,
        ),
    )


def look_at(state: State, device: str) -> DiskView | None:
    """Give what is known of one disk; None if it is not watched."""
    watched = state.watched.get(device)
    return None if watched is None else _look_at(watched, state)


def _look_at(watched: Watched, state: State) -> DiskView:
    now_s = state.clocks.monotonic_s if state.clocks is not None else 0.0
    tally = watched.tally
    if watched.is_listed:
        tally = tally.settled(state.assessed, now_s)
    recent = recently(tally.recent, now_s, state.settings.sampling.interval_s)
    peak = highest(tally.peaks, now_s)
    promise = watched.assignment.limits.promise_charges
    asleep = watched.is_listed and watched.disk.name not in state.awake
    judgement = watched.judgement
    asked = state.settings.probes_of(watched.disk.name)
    return DiskView(
        disk=watched.disk,
        assignment=watched.assignment,
        totals=watched.totals,
        inflight=watched.inflight if watched.is_listed else None,
        read_latency_s=tally.read_latency.histogram,
        write_latency_s=tally.write_latency.histogram,
        load=tally.load if promise else None,
        peak=Traffic(
            peak.read_iops,
            peak.write_iops,
            peak.read_bytes_per_second,
            peak.written_bytes_per_second,
        ),
        verdict="idle" if asleep else judgement.verdict if judgement is not None else None,
        ledger=msgspec.structs.replace(
            tally.ledger, host=told_by(state.last_host, tally.ledger.host)
        ),
        ceiling=watched.past.ceiling,
        credits=_credits(watched, recent, state.clocks),
        probes=_probes(watched, asked),
        probe_intervals_s=asked,
        present=Traffic(
            recent.reads / recent.seconds,
            recent.writes / recent.seconds,
            recent.read_bytes / recent.seconds,
            recent.written_bytes / recent.seconds,
        ),
        present_load=load_of(recent, promise),
    )


def _credits(watched: Watched, recent: Interval, clocks: Clocks | None) -> tuple[CreditLevel, ...]:
    purse = watched.purse_at(clocks.boottime_s) if clocks is not None else None
    return purse.levels(watched.assignment.limits, recent) if purse is not None else ()


def _probes(watched: Watched, asked: Collection[ProbeKind]) -> dict[ProbeKind, ProbeLedger]:
    return {
        kind: watched.probes.get(kind, ProbeLedger())
        for kind in PROBE_KINDS
        if kind in asked or (kind in watched.probes and watched.probes[kind].is_used)
    }
