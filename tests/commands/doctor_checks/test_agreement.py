"""Checks of the agreement with the provider's count."""

import msgspec
import pytest
from prometheus_client.core import Sample

from disksla.commands.doctor_checks.facts import MachineFacts
from support.machine_facts import DAEMON, SAMPLES, machine, result, results, sample


def compared(**seconds: float) -> MachineFacts:
    """Return a machine with seconds by both answers, as `iops_none=3.0`; 1000 s are idle."""
    samples = [agreement("none", "none", 1000.0)]
    for pair, each_s in seconds.items():
        own, provider = pair.split("__")
        samples.append(agreement(own, provider, each_s))
    return with_samples(*samples)


def agreement(own: str, provider: str, seconds: float) -> Sample:
    labels = {"device": "nvme1n1", "limit": own, "provider_limit": provider}
    return sample("provider_agreement_seconds_total", seconds, **labels)


def with_samples(*samples: Sample) -> MachineFacts:
    return machine(daemon=msgspec.structs.replace(DAEMON, samples=(*SAMPLES, *samples)))


def test_without_a_count_nothing_is_said() -> None:
    assert results(machine(), "provider.agreement") == []


def test_disk_that_is_not_throttled() -> None:
    found = result(compared(iops__none=9.0), "provider.agreement")
    assert (found.status, found.subject) == ("ok", "nvme1n1")
    assert found.found == "throttled for 9 s in 16.8 min compared with the provider's count"


def test_agreement() -> None:
    facts = compared(iops__iops=60.0, unknown__bandwidth=30.0, iops__none=6.0, none__iops=4.0)
    found = result(facts, "provider.agreement")
    assert found.status == "ok"
    assert found.found == (
        "throttled for 90 s by both (60 s at the same limit), 6 s only by the verdicts, and 4 s"
        " only by the provider, in 18.3 min compared with the provider's count"
    )


@pytest.mark.parametrize("pair", ["iops__none", "none__machine_iops"])
def test_disagreement(pair: str) -> None:
    found = result(compared(iops__iops=60.0, **{pair: 20.0}), "provider.agreement")
    assert found.status == "note"
    assert found.expected == "at least 80 % by both"
    assert found.fix is not None
    assert "disksla record" in found.fix
