"""The machine in the configuration: its limits over the disks."""

from pathlib import Path

import pytest

from disksla.base.errors import DiskslaError
from disksla.promise.catalogue.limits import Rates
from disksla.promise.configuration.configuration import TermsFile
from disksla.promise.configuration.matching import machine_limits
from disksla.promise.configuration.settings import Settings
from disksla.promise.configuration.settings_file import read_configuration, with_terms_files
from disksla.promise.terms_file import MachineTerms

AWS = "disks:\n  - {match: {device: vda}, terms: aws.gp3}\n"
YANDEX = "disks:\n  - {match: {device: vda}, terms: yandex.network-ssd}\n"
OWN = "disks:\n  - {match: {device: vda}, terms: {budget: sum, iops: 300}}\n"


def limits_in(directory: Path, text: str, cpus: int | None = None) -> dict[str, Rates]:
    """Return the rates of each group by name and machine."""
    file = directory / "disksla.yml"
    file.write_text(text, encoding="utf-8")
    configuration = read_configuration(file)
    found = machine_limits(configuration.settings, configuration.machines, cpus)
    return {f"{limits.name} {limits.machine}": limits.limits.rates for limits in found}


def test_machine_type_is_looked_up(tmp_path: Path) -> None:
    (rates,) = limits_in(tmp_path, f"{AWS}machine: {{type: M6i.large}}\n").values()
    assert rates.read_iops == 3600  # https://docs.aws.amazon.com/ec2/latest/instancetypes/gp.html


def test_without_a_type_there_are_no_limits(tmp_path: Path) -> None:
    assert limits_in(tmp_path, AWS) == {}
    assert limits_in(tmp_path, "", 4) == {}


@pytest.mark.parametrize(
    ("machine", "cpus", "iops"),
    [("", 2, 7000), ("machine: {vcpus: 4}", 2, 14_000), ("machine: {vcpus: 4}", None, 14_000)],
)
def test_limits_by_vcpus(tmp_path: Path, machine: str, cpus: int | None, iops: int) -> None:
    found = limits_in(tmp_path, YANDEX + machine, cpus)
    assert {name.split()[0] for name in found} == {"replicated", "unreplicated"}
    assert next(iter(found.values())).read_iops == iops


def test_limits_by_vcpus_need_their_number(tmp_path: Path) -> None:
    assert limits_in(tmp_path, YANDEX) == {}


def test_limits_that_are_written_out_replace_those_of_the_tables(tmp_path: Path) -> None:
    text = f"{YANDEX}machine: {{type: special, limits: {{budget: sum, iops: 900}}}}\n"
    assert limits_in(tmp_path, text, 2) == {"custom special": Rates(900.0, 900.0, None, None)}
    assert limits_in(tmp_path, f"{OWN}machine: {{limits: {{budget: sum, iops: 900}}}}").keys() == {
        "custom "
    }


@pytest.mark.parametrize("disks", [OWN, YANDEX, ""])
def test_type_may_be_that_of_disks_in_terms_files(tmp_path: Path, disks: str) -> None:
    file = tmp_path / "disksla.yml"
    file.write_text(f"{disks}machine: {{type: m6i.large}}\n", encoding="utf-8")
    configuration = read_configuration(file)
    expected = "machine type: found 'm6i.large'; expected terms of alibaba, aws"
    assert str(configuration.machine_problem).startswith(expected)
    known = with_terms_files(configuration, (TermsFile("f", "api", "f", 0.0, provider="aws"),))
    assert known.machine_problem is None
    (limits,) = machine_limits(Settings(), known.machines[:1], None)
    assert (limits.machine, limits.limits.rates.read_iops) == ("m6i.large", 3600)


def test_type_of_a_terms_file_may_be_new(tmp_path: Path) -> None:
    file = tmp_path / "disksla.yml"
    file.write_text(AWS, encoding="utf-8")
    new = TermsFile("f", "api", "EC2 API", 0.0, machine=MachineTerms(type="x99.large"))
    configuration = with_terms_files(read_configuration(file), (new,))
    assert configuration.machines == ()
    assert "unknown machine type 'x99.large' of aws" in str(configuration.machine_problem)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (f"{AWS}machine: {{type: m6i.larg}}", "unknown machine type 'm6i.larg' of aws; did you"),
        (f"{AWS}machine: {{vcpus: 0}}", "machine.vcpus"),
        (f"{AWS}machine: {{limits: {{budget: sum}}}}", "machine.limits: found no rate"),
        (f"{AWS}machine: {{typ: m6i.large}}", "machine.typ: unknown key (did you mean `type`?)"),
    ],
)
def test_problems(tmp_path: Path, text: str, problem: str) -> None:
    with pytest.raises(DiskslaError) as caught:
        limits_in(tmp_path, text)
    assert problem in str(caught.value)
    assert str(caught.value).startswith(f"{tmp_path}/disksla.yml:")
