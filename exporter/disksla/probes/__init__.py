"""Repeated low-impact measurements of latency."""

from disksla.probes.probe_plan import ProbePlan, plan_probe
from disksla.probes.skip import SnapshotPair, observation_s, skip_reasons
