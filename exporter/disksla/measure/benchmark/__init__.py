"""Benchmarks at full speed: the workload matrix of a disk (`sweep`), and its medium."""

from disksla.measure.benchmark.identify import IdentifiedMedium, identify
from disksla.measure.benchmark.identify_evidence import Evidence
from disksla.measure.benchmark.sweep_matrix import SweepHeader, SweepPlan, SweepRow
