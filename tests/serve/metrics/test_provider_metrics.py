"""What is published of statistics pages."""

import msgspec
from prometheus_client.parser import text_string_to_metric_families

from disksla.clouds.ebs_statistics.reading import Failure, Reading
from disksla.clouds.ebs_statistics.statistics_page import parse
from disksla.promise.configuration.settings import MetricsSettings, Profile, Settings
from disksla.serve.metrics.collector import SnapshotCollector, make_registry
from disksla.serve.metrics.render import render_metrics
from disksla.state.pipeline.snapshot import Snapshot
from disksla.state.pipeline.state import to_read_often
from disksla.state.pipeline.tick import Tick
from disksla.verdict.throttling.verdict import WindowVerdict
from support.ebs_pages import Page, bins_of
from support.simulated_host import Machine, a_disk

FIRST = Page(total_read_ops=10, read_bins=bins_of({256: 10}), write_bins=bins_of({}))
SECOND = FIRST._replace(
    total_read_ops=13,
    total_read_time_us=3000,
    volume_exceeded_iops_us=250_000,
    instance_exceeded_tp_us=500_000,
    queue_length=7,
    read_bins=bins_of({256: 12, 4096: 1}),
)


def a_machine(profile: Profile = "default") -> Machine:
    settings = Settings(metrics=MetricsSettings(profile=profile))
    return Machine(a_disk("nvme1n1", serial="vol1"), settings=settings)


def reads(machine: Machine, *messages: Page | Failure) -> None:
    """Advance by a tick with readings that were made since the last."""
    readings = [
        each
        if isinstance(each, Failure)
        else Reading("nvme1n1", "vol1", machine.now_s + number / 100, parse(each.written()))
        for number, each in enumerate(messages)
    ]
    machine.now_s += 0.1
    machine.take(Tick(machine.clocks(), machine.text(), provider=tuple(readings)))


def published(machine: Machine) -> dict[str, float]:
    registry = make_registry(SnapshotCollector(lambda: Snapshot(machine.state)))
    page = render_metrics(registry).body.decode()
    samples = {}
    for family in text_string_to_metric_families(page):
        for sample in family.samples:
            labels = {key: value for key, value in sample.labels.items() if key != "device"}
            if "disksla_provider_" in sample.name:
                name = sample.name.removeprefix("disksla_provider_")
                samples[" ".join([name, *labels.values()])] = sample.value
    return samples


def test_without_a_page_nothing_is_published() -> None:
    assert published(a_machine("full")) == {}


def test_counters_begin_at_zero_with_the_first_reading() -> None:
    machine = a_machine()
    reads(machine, SECOND)
    assert published(machine) == {
        "throttled_seconds_total iops": 0.0,
        "throttled_seconds_total bandwidth": 0.0,
        "throttled_seconds_total machine_iops": 0.0,
        "throttled_seconds_total machine_bandwidth": 0.0,
        "queue_length": 7.0,
    }


def test_what_the_second_reading_adds() -> None:
    machine = a_machine("full")
    reads(machine, FIRST)
    reads(machine, SECOND)
    found = published(machine)
    assert found["throttled_seconds_total iops"] == 0.25
    assert found["throttled_seconds_total machine_bandwidth"] == 0.5
    assert found["read_latency_seconds_bucket 0.000256"] == 0
    assert found["read_latency_seconds_bucket 0.000512"] == 2
    assert found["read_latency_seconds_bucket 0.004096"] == 2
    assert found["read_latency_seconds_bucket 0.008192"] == 3
    assert found["read_latency_seconds_count"] == found["read_latency_seconds_bucket +Inf"] == 3
    assert found["read_latency_seconds_sum"] == 0.003
    assert found["write_latency_seconds_count"] == 0


def test_nothing_is_published_of_a_page_that_is_not_read_any_more() -> None:
    """A counter that stands still would say that nothing is throttled."""
    machine = a_machine("full")
    reads(machine, FIRST)
    reads(machine, SECOND)
    machine.tick(after_s=9.0)
    assert "queue_length" in published(machine)
    reads(machine, Failure("nvme1n1", "status"))
    machine.tick(after_s=1.5)
    assert published(machine) == {"statistics_failures_total status": 1.0}
    reads(machine, SECOND._replace(volume_exceeded_iops_us=1_250_000))
    assert published(machine)["throttled_seconds_total iops"] == 1.25


def test_lean_has_none_of_it() -> None:
    machine = a_machine("lean")
    reads(machine, FIRST, SECOND, Failure("nvme1n1", "magic"))
    assert published(machine) == {}


def test_a_disk_at_a_limit_is_read_often() -> None:
    machine = a_machine()
    assert to_read_often(machine.state) == frozenset()
    reads(machine, FIRST)
    reads(machine, FIRST)
    assert to_read_often(machine.state) == frozenset()
    reads(machine, SECOND)
    assert to_read_often(machine.state) == {"nvme1n1"}
    reads(machine, SECOND)
    assert to_read_often(machine.state) == frozenset()
    at_limit = msgspec.structs.replace(
        machine.state.monitored["nvme1n1"], window_verdict=WindowVerdict("met")
    )
    busy = msgspec.structs.replace(
        machine.state, monitored={"nvme1n1": at_limit}, at_limit=frozenset({"nvme1n1"})
    )
    assert to_read_often(busy) == {"nvme1n1"}
