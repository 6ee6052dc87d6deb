"""Repeated low-impact measurements of latency."""

from disksla.measure.probes.probe_plan import ProbePlan, plan_probe
from disksla.measure.probes.skip import SnapshotPair, observation_s, skip_reasons
