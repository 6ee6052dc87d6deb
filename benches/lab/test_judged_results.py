"""Random loads of fio on disks that the lab throttles, judged by what the limiter allows.

One run of fio prints both its normal output and JSON, and both are read. The disk keeps the
promise of its own limits, and breaks that of a disk with a quarter more.
"""

import json
import random
import subprocess
from pathlib import Path

import pytest

from disksla.measure.verification.import_fio import parse_fio_jobs
from disksla.measure.verification.import_fio_text import parse_fio_text
from disksla.measure.verification.import_results import judge_imported
from disksla.measure.verification.measurement import Measurement
from disksla.measure.verification.suites import make_suite
from disksla.promise.catalogue import Limits
from disksla.promise.configuration.custom_terms import (
    SeparateTerms,
    SumTerms,
    TimeSharedTerms,
    custom_limits,
)
from lab.__main__ import missing
from lab.disk import all_made
from lab.scenario import read_scenario

pytestmark = pytest.mark.alone
REASON = missing()
needs_lab = pytest.mark.skipif(REASON is not None, reason=f"NOT TESTED: the lab {REASON}")
TOLERANCE = 0.03
RUNTIME_S = 11
DEEP = 32

Terms = SumTerms | SeparateTerms
Meters = list[dict[str, object]]


def limited(draw: random.Random) -> tuple[Meters, Terms, Terms]:
    """Return the meters of a disk, terms that it keeps, and terms that promise a quarter more."""
    iops, bandwidth = draw.randint(300, 1500), draw.randint(8, 40) * 2**20
    kind = draw.choice(["sum", "separate", "time_shared"])
    if kind == "sum":
        meters: Meters = [
            {"limit": "iops", "iops": iops},
            {"limit": "bandwidth", "bandwidth": f"{bandwidth}B"},
        ]
        return (
            meters,
            SumTerms(iops=float(iops), bytes_per_second=float(bandwidth)),
            SumTerms(iops=1.25 * iops, bytes_per_second=1.25 * bandwidth),
        )
    rates = {"read_iops": iops, "write_iops": iops // 2}
    terms = SeparateTerms if kind == "separate" else TimeSharedTerms
    kept, broken = (
        terms(read_iops=factor * rates["read_iops"], write_iops=factor * rates["write_iops"])
        for factor in (1.0, 1.25)
    )
    if kind == "separate":
        return [{"limit": "iops", name: rate} for name, rate in rates.items()], kept, broken
    return [{"limit": "iops", **rates}], kept, broken


def options(draw: random.Random) -> list[str]:
    """Return the options of a random load; half of the loads have a deep queue."""
    depth = draw.choice([draw.randint(1, 8), draw.randint(DEEP, 2 * DEEP)])
    return [
        f"--rw={draw.choice(['randrw', 'randrw', 'rw', 'randread', 'randwrite'])}",
        f"--rwmixread={draw.randint(10, 90)}",
        f"--bs={draw.choice(['4k', '8k', '16k', '64k', '128k'])}",
        f"--iodepth={depth}",
    ]


def measured(device: str, load: list[str]) -> tuple[str, str]:
    """Return the normal output and the JSON of one run."""
    command = ["fio", "--name=random", f"--filename=/dev/{device}", "--direct=1", *load]
    command += ["--ioengine=libaio", "--time_based", f"--runtime={RUNTIME_S}", "--randrepeat=1"]
    output = subprocess.run(
        [*command, "--output-format=normal,json"], capture_output=True, text=True, check=True
    ).stdout
    begin, end = output.index("\n{\n"), output.rindex("\n}\n") + 3
    normal = f"{' '.join(command)}\n{output[:begin]}{output[end:]}"
    return normal, output


def verdict(limits: Limits, measurement: Measurement) -> str:
    suite = make_suite("terms", limits, TOLERANCE)
    results, unjudged = judge_imported(suite, limits, (measurement,), TOLERANCE)
    assert not unjudged
    [result] = [result for result in results if result.measured is not None]
    return result.verdict


@needs_lab
@pytest.mark.parametrize("seed", range(4))
def test_random_load_on_a_throttled_disk(seed: int, tmp_path: Path) -> None:
    draw = random.Random(seed)
    meters, kept, broken = limited(draw)
    load = options(draw)
    scenario = tmp_path / "scenario.yml"
    disk = {"disk": {"meters": meters}, "load": [{"for": "1s"}]}
    scenario.write_text(json.dumps({"caption": "a random limit", "disks": [disk]}))
    with all_made(scenario, read_scenario(scenario), tmp_path) as [made]:
        made.begin()
        normal, output = measured(made.device, load)
        made.end()
    [measurement] = parse_fio_jobs(output)
    [of_text] = parse_fio_text(normal)
    for name in ("pattern", "request_bytes", "inflight", "is_direct", "write_share"):
        assert getattr(of_text, name) == getattr(measurement, name), name
    assert of_text.measured.requests == measurement.measured.requests
    assert of_text.measured.iops == pytest.approx(measurement.measured.iops)
    assert of_text.mean_inflight == pytest.approx(measurement.mean_inflight, rel=1e-3)
    is_deep = measurement.inflight >= DEEP
    assert verdict(custom_limits(kept), of_text) == "pass", (meters, load)
    found = verdict(custom_limits(broken), of_text)
    assert found == ("fail" if is_deep else "untested"), (meters, load)
