"""Checks of the provider: DMI, `disksla detect`, credentials."""

from typing import get_args

import pytest

from disksla.base.errors import ExchangeReason
from disksla.commands.doctor_checks.facts import UnitFacts
from disksla.commands.doctor_checks.provider_checks import _FIXES
from support.machine_facts import SETTINGS, configured, machine, result, results, terms_file

API = """
source: api
origin: EC2 API
as_of: 2027-01-15T07:50:00Z
disks: [{match: {volume: vol-0a1b}, provider: aws, api_type: gp3}]
"""


def test_machine() -> None:
    assert result(machine(), "provider.machine").found.startswith("aws")
    assert result(machine(provider=None), "provider.machine").status == "ok"
    without = machine(provider=None, configuration=configured(""))
    assert result(without, "provider.machine").status == "note"


def test_provider_that_was_not_asked() -> None:
    assert results(machine(), "provider.detect") == []
    found = result(machine(configuration=configured("")), "provider.detect")
    assert found.status == "note"
    assert found.fix == "systemctl start disksla-detect"
    found = result(machine(configuration=configured(""), detect_unit=None), "provider.detect")
    assert found.fix == "disksla detect --output /var/lib/disksla-detect/cloud.json"
    elsewhere = machine(configuration=configured(""), provider="alibaba")
    assert results(elsewhere, "provider.detect") == []


def test_answer_of_the_provider() -> None:
    found = result(machine(configuration=configured("", terms_file(API))), "provider.detect")
    assert (found.status, found.found) == ("ok", "EC2 API was asked 10 min ago")
    people = terms_file("disks: []", "/etc/disksla/terms.d/people.yml")
    assert results(machine(configuration=configured(SETTINGS, people)), "provider.detect") == []


@pytest.mark.parametrize("source", ["api", "metadata"])
@pytest.mark.parametrize("reason", get_args(ExchangeReason))
def test_each_problem_is_wrong_and_has_a_fix(source: str, reason: str) -> None:
    problems = f"problems: [{{source: {source}, reason: {reason}, message: it failed}}]"
    file = terms_file(f"source: api\n{problems}")
    found = result(machine(configuration=configured(SETTINGS, file)), "provider.detect")
    assert (found.status, found.found) == ("wrong", "it failed")
    assert found.fix == _FIXES[reason]
    assert found.subject == "/state-detect/cloud.json"


@pytest.mark.parametrize(
    ("provider", "has_file", "count"),
    [("openstack", False, 1), ("openstack", True, 0), ("vk", False, 1), ("aws", False, 0)],
)
def test_credentials_file(provider: str, has_file: bool, count: int) -> None:
    facts = machine(
        provider=provider,
        has_credentials_file=has_file,
        configuration=configured(""),
        detect_unit=None,
    )
    assert len(results(facts, "provider.credentials")) == count


@pytest.mark.parametrize(
    ("passed", "count"), [((), 1), (("x:/x",), 1), (("clouds.yaml:/etc/disksla/clouds.yaml",), 0)]
)
def test_credentials_that_the_unit_does_not_pass_on(passed: tuple[str, ...], count: int) -> None:
    facts = machine(
        provider="openstack",
        has_credentials_file=True,
        configuration=configured(""),
        detect_unit=UnitFacts("unit", {"LoadCredential": passed}),
    )
    assert len(results(facts, "provider.credentials")) == count


def test_timer() -> None:
    assert result(machine(), "provider.timer").status == "ok"
    assert result(machine(has_detect_timer=False), "provider.timer").status == "note"
    assert results(machine(detect_unit=None), "provider.timer") == []
    assert results(machine(provider="alibaba"), "provider.timer") == []
