"""The files of the operator: configuration and catalogue; the machine in the configuration."""

from pathlib import Path

import pytest

from disksla.base.errors import DiskslaError
from disksla.promise.catalogue.limits import Rates
from disksla.promise.configuration.configuration import TermsFile
from disksla.promise.configuration.matching import machine_limits
from disksla.promise.configuration.settings import Settings
from disksla.promise.configuration.settings_file import (
    beyond_catalog,
    catalog_directory,
    file_in_force,
    read_configuration,
    with_terms_files,
)
from disksla.promise.terms_file import MachineTerms

ROW = """
terms:
  - id: acme.disk
    title: A disk
    provider: acme
    provider_name: Acme
    examples: [{size_bytes: 1GiB, rates: {}}]
"""


def test_catalog_directory_is_beside_the_file() -> None:
    assert catalog_directory(Path("/srv/a/disksla.yml")) == Path("/srv/a/catalog.d")
    assert catalog_directory(Path("disksla.yml")) == Path("catalog.d")
    assert catalog_directory(None) == Path("/etc/disksla/catalog.d")


def test_default_file_applies_where_it_exists_and_no_other_is_named(tmp_path: Path) -> None:
    default, named = tmp_path / "disksla.yml", tmp_path / "named.yml"
    assert file_in_force(None, default) is None
    assert file_in_force(named, default) == named
    default.touch()
    assert file_in_force(None, default) == default
    assert file_in_force(named, default) == named


def test_default_file_that_cannot_be_examined_is_not_ignored(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    default = tmp_path / "file" / "disksla.yml"
    assert file_in_force(None, default) == default


def test_configuration_has_rows_of_the_operator(tmp_path: Path) -> None:
    (tmp_path / "catalog.d").mkdir()
    (tmp_path / "catalog.d" / "a.yml").write_text(ROW)
    file = tmp_path / "disksla.yml"
    file.write_text("disks: [{match: {device: vda}, terms: acme.disk}]\n")
    configuration = read_configuration(file)
    assert configuration.catalog["acme.disk"].title == "A disk"
    assert [entry.terms for entry in configuration.settings.disks] == ["acme.disk"]


def test_file_storage_is_no_terms_of_a_disk(tmp_path: Path) -> None:
    file = tmp_path / "disksla.yml"
    file.write_text("disks: [{match: {device: vda}, terms: aws.efs}]\n")
    with pytest.raises(
        DiskslaError,
        match=r"disks\[0\]: found aws\.efs, a network file storage; expected a type of disk",
    ):
        read_configuration(file)


def test_disk_is_no_terms_of_a_mount(tmp_path: Path) -> None:
    file = tmp_path / "disksla.yml"
    file.write_text("disks: [{match: {device: 'fs1:/export'}, terms: aws.gp3}]\n")
    with pytest.raises(
        DiskslaError,
        match=r"disks\[0\]: found aws\.gp3, a type of disk; expected a network file storage",
    ):
        read_configuration(file)


def test_entries_beyond_the_catalogue_are_named(tmp_path: Path) -> None:
    file = tmp_path / "disksla.yml"
    file.write_text("""
disks:
  - {match: {device: vda}, terms: aws.gp3, iops: 6000}
  - {match: {device: vdb}, terms: aws.gp3, iops: 6000, size: 10GiB}
  - {match: {device: vdc}, terms: aws.st1, size: 100GiB}
  - {match: {device: vdd}, terms: {budget: sum, iops: 300}}
  - {match: {device: vde}, terms: azure.PremiumV2_LRS, iops: 90000}
""")
    assert beyond_catalog(read_configuration(file)) == [
        (
            "disks[1]: 6000 IOPS of aws.gp3: above what AWS sells"
            " (catalogue: 3000 to 5000 at this size)"
        ),
        "disks[2]: found 100 GiB for aws.st1; expected 125 GiB to 16 TiB",
        (
            "disks[4]: 90000 IOPS of azure.premium-ssd-v2: above what Microsoft Azure sells"
            " (catalogue: 3000 to 80000 at this size)"
        ),
    ]


def test_configuration_without_catalog_directory(tmp_path: Path) -> None:
    file = tmp_path / "disksla.yml"
    file.touch()
    configuration = read_configuration(file)
    assert configuration.settings == Settings()
    assert configuration.catalog["vk.ceph-ssd"].provider == "vk"


def test_bad_catalog_file_does_not_hide_other_problems(tmp_path: Path) -> None:
    (tmp_path / "catalog.d").mkdir()
    (tmp_path / "catalog.d" / "a.yml").write_text("terms: [\n")
    file = tmp_path / "disksla.yml"
    file.write_text(
        "disks: [{match: {device: vda}, terms: acme.disk}]\n"
        "probes: [{kind: read-latency, cron: '* * * * 1'}]\n"
    )
    with pytest.raises(DiskslaError) as caught:
        read_configuration(file)
    first, second = str(caught.value).splitlines()
    assert first.startswith(f"{tmp_path}/catalog.d/a.yml:2: not valid YAML")
    assert second.startswith(f"{file}:2: probes[0].cron: found '* * * * 1'; expected minute,")


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
