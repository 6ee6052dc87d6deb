"""Benchmarks at full speed: the workload matrix of a disk (`sweep`), its medium (`identify`)."""

from disksla.benchmark.identify import IdentifiedMedium, identify
from disksla.benchmark.identify_evidence import Evidence
from disksla.benchmark.sweep_journal import SweepHeader
from disksla.benchmark.sweep_matrix import SweepPlan, SweepRow
