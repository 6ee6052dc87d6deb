"""Two Prometheus servers with half of the hosts each, and views of all: compliance adds up."""

import time
from collections.abc import Iterator
from contextlib import ExitStack
from typing import NamedTuple

import pytest
import yaml

from engines.answers import differences, query_range, within
from engines.documented import yaml_blocks
from engines.history import HOSTS, SEED, history
from engines.live import scrape, shard
from engines.programs import Programs, Store, needs_engines
from engines.recording import record
from engines.remote_write import send
from fleet.schedule import host_name
from fleet.server import serve_fleet
from support.monitoring_stack import Prometheus
from support.waiting import eventually

pytestmark = [needs_engines, pytest.mark.alone]

SHARDS = 2
HISTORY_S = 12 * 3600
AHEAD_S = 600
BELOW = "provider_terms:disksla_noncompliant_seconds:increase5m"
TESTED = "provider_terms:disksla_proven_seconds:increase5m"
RATIO_OF_SUMS = (
    f"1 - sum by (provider, terms) (sum_over_time({BELOW}[1h]))"
    f" / (sum by (provider, terms) (sum_over_time({TESTED}[1h])) > 0)"
)
MEAN_OF_RATIOS = (
    "avg by (provider, terms)"
    f" (1 - sum_over_time({BELOW}[1h]) / (sum_over_time({TESTED}[1h]) > 0))"
)
WITHIN_S = 30.0


class Fleet(NamedTuple):
    whole: Prometheus
    shards: list[Store]
    thanos: Prometheus
    federation: Prometheus
    end_s: int

    def times(self) -> range:
        """Return times just after evaluations of rules."""
        return range(self.end_s - HISTORY_S + 2 * 3600 - 1, self.end_s, 300)


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    end_s = int(time.time()) // 60 * 60 + AHEAD_S
    with ExitStack() as stack:
        programs = Programs(stack, tmp_path_factory.mktemp("shards"))
        whole = programs.prometheus("whole", {})
        shards = [
            programs.prometheus(name, {"global": {"external_labels": {"shard": name}}})
            for name in map(str, range(SHARDS))
        ]
        for number, series in enumerate(history(end_s - HISTORY_S, end_s)):
            send(whole.write_url, series)
            send(shards[number % HOSTS % SHARDS].write_url, series)
        for store in (whole, *shards):
            record(store.api, [store.write_url], end_s - HISTORY_S, end_s)
        sidecars = [
            programs.sidecar(str(number), store.api.address) for number, store in enumerate(shards)
        ]
        yield Fleet(
            whole.api,
            shards,
            programs.query("query", sidecars),
            programs.prometheus("federation", federating(shards)).api,
            end_s,
        )


def federating(shards: list[Store]) -> object:
    """Return the configuration of docs/fleet.md, with the addresses of the shards."""
    [config] = [yaml.safe_load(block) for block in yaml_blocks() if "/federate" in block]
    [job] = config["scrape_configs"]
    job["static_configs"] = [{"targets": [store.api.address for store in shards]}]
    return {"global": {"scrape_interval": "2s"}, **config}


def test_compliance_of_the_shards_adds_up_in_thanos(fleet: Fleet) -> None:
    expected = query_range(fleet.whole, RATIO_OF_SUMS, fleet.times())
    found = query_range(fleet.thanos, RATIO_OF_SUMS, fleet.times())
    assert expected
    assert not differences(expected, found, within(1e-12))


def test_it_is_the_recorded_compliance_of_one_server_with_all_hosts(fleet: Fleet) -> None:
    recorded = "max by (provider, terms) (provider_terms:disksla_sla_compliance:ratio1h)"
    expected = query_range(fleet.whole, recorded, fleet.times())
    assert not differences(
        expected, query_range(fleet.thanos, RATIO_OF_SUMS, fleet.times()), within(1e-12)
    )


def test_a_mean_of_ratios_would_be_wrong(fleet: Fleet) -> None:
    expected = query_range(fleet.whole, RATIO_OF_SUMS, fleet.times())
    mean = query_range(fleet.thanos, MEAN_OF_RATIOS, fleet.times())
    assert differences(expected, mean, within(0.0, 0.01))


@pytest.mark.parametrize("name", [BELOW, TESTED])
def test_federation_has_the_series_of_both_shards(fleet: Fleet, name: str) -> None:
    """Their label `shard` keeps them apart."""

    def is_same() -> bool:
        now_s = int(time.time()) - 10
        times = range(now_s, now_s + 1)
        summed = f"sum by (provider, terms) ({name})"
        expected = query_range(fleet.whole, summed, times)
        found = query_range(fleet.federation, summed, times)
        each = query_range(fleet.federation, f"count by (shard) ({name})", times)
        return len(each) == SHARDS and not differences(expected, found, within(1e-12))

    assert eventually(is_same, WITHIN_S, 1.0)


def test_each_host_is_scraped_by_one_shard(tmp_path_factory: pytest.TempPathFactory) -> None:
    with ExitStack() as stack:
        programs = Programs(stack, tmp_path_factory.mktemp("hashmod"))
        address = str(stack.enter_context(serve_fleet(SEED, time.time())))
        stores = [
            programs.prometheus(str(number), scrape(address, *shard(number)))
            for number in range(SHARDS)
        ]

        def hosts(store: Store) -> list[str]:
            targets = store.api.get("/api/v1/targets")["data"]["activeTargets"]
            return [target["labels"]["instance"] for target in targets]

        expected = sorted(f"{host_name(host)}:10056" for host in range(HOSTS))
        assert eventually(
            lambda: sorted(host for store in stores for host in hosts(store)) == expected, WITHIN_S
        )
