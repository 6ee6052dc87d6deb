"""The machine: its identity, boot, firmware, provider and clock; what another user may access."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from disksla.base.errors import DiskslaError
from disksla.base.operating_system.dmi_provider import provider_of
from disksla.base.operating_system.machine import (
    DMI_ATTRIBUTES,
    UNKNOWN_MACHINE,
    Roots,
    has_user,
    may_access,
    read_boot_id,
    read_clock_state,
    read_dmi,
    read_machine_id,
    user_name,
)
from disksla.promise.catalogue.catalog import load_catalog

BOOT = "a7f0f4d0-2b0a-4c1d-9a0c-0f5f0f3a9b11"


def procfs_with(tmp_path: Path, boot_id: bytes) -> Roots:
    random = tmp_path / "sys" / "kernel" / "random"
    random.mkdir(parents=True)
    (random / "boot_id").write_bytes(boot_id)
    return Roots(procfs=tmp_path)


def test_boot_id_is_that_of_the_kernel(tmp_path: Path) -> None:
    assert read_boot_id(procfs_with(tmp_path, f"{BOOT}\n".encode())) == BOOT


def test_boot_id_of_this_machine_is_stable() -> None:
    assert re.fullmatch(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", read_boot_id(Roots()))
    assert read_boot_id(Roots()) == read_boot_id(Roots())


def test_unreadable_boot_ids_are_never_equal(tmp_path: Path) -> None:
    missing = Roots(procfs=tmp_path / "missing")
    assert read_boot_id(missing) != read_boot_id(missing)
    invalid = procfs_with(tmp_path, b"\xff\xfe\n")
    assert read_boot_id(invalid) != read_boot_id(invalid)


def test_machine_id_is_hashed(tmp_path: Path) -> None:
    file = tmp_path / "machine-id"
    file.write_text("0123456789abcdef0123456789abcdef\n")
    machine = read_machine_id(file)
    assert re.fullmatch("[0-9a-f]{64}", machine)
    assert "0123456789abcdef" not in machine
    file.write_text("0123456789abcdef0123456789abcdef")
    assert read_machine_id(file) == machine
    file.write_text("1123456789abcdef0123456789abcdef\n")
    assert read_machine_id(file) != machine


@pytest.mark.parametrize("content", [None, "", "\n", "uninitialized\n"])
def test_machine_without_id_is_unknown(tmp_path: Path, content: str | None) -> None:
    file = tmp_path / "machine-id"
    if content is not None:
        file.write_text(content)
    assert read_machine_id(file) == UNKNOWN_MACHINE


def firmware(directory: Path, **attributes: str) -> Roots:
    files = directory / "class" / "dmi" / "id"
    files.mkdir(parents=True)
    for name, content in attributes.items():
        (files / name).write_text(content)
    return Roots(sysfs=directory)


def test_attributes_that_are_there_are_read(tmp_path: Path) -> None:
    roots = firmware(tmp_path, sys_vendor="Amazon EC2\n", chassis_asset_tag="\n", product_uuid="x")
    assert read_dmi(roots) == {"sys_vendor": "Amazon EC2"}


def test_machine_without_firmware(tmp_path: Path) -> None:
    assert read_dmi(Roots(sysfs=tmp_path)) == {}


def test_files_that_cannot_be_read_are_absent(tmp_path: Path) -> None:
    roots = firmware(tmp_path, product_name="CVM\n")
    (tmp_path / "class/dmi/id/sys_vendor").mkdir()
    assert read_dmi(roots) == {"product_name": "CVM"}


def test_long_and_binary_content_is_bounded(tmp_path: Path) -> None:
    roots = firmware(tmp_path, sys_vendor="x" * 100_000)
    (tmp_path / "class/dmi/id/product_name").write_bytes(b"\xff\xfe\n")
    assert read_dmi(roots) == {"sys_vendor": "x" * 256, "product_name": "��"}


def test_only_attributes_for_every_user_are_read() -> None:
    assert not [name for name in DMI_ATTRIBUTES if "uuid" in name or "serial" in name]


def test_state_is_read() -> None:
    state = read_clock_state()
    assert state.is_synchronised in {True, False}
    assert 0 <= state.error_s < 3600


@pytest.mark.skipif(shutil.which("adjtimex") is None, reason="NOT TESTED: needs adjtimex")
def test_state_is_that_of_another_program() -> None:
    printed = subprocess.run(
        ["adjtimex", "--print"], capture_output=True, text=True, check=True
    ).stdout
    fields = dict(line.strip().split(": ") for line in printed.splitlines() if ": " in line)
    state = read_clock_state()
    assert state.is_synchronised == (not int(fields["status"]) & 0x40)
    assert state.error_s == pytest.approx(int(fields["maxerror"]) / 1e6, abs=60)


needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="NOT TESTED: needs root")


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    """Return a file that all may read, and one that only its owner may."""
    for parent in (tmp_path, *tmp_path.parents):
        if parent.stat().st_uid == os.geteuid() and parent != Path("/"):
            parent.chmod(parent.stat().st_mode | 0o755)
    paths = {name: tmp_path / f"{name} '$(x)" for name in ("public", "private")}
    for name, path in paths.items():
        path.touch()
        path.chmod(0o644 if name == "public" else 0o600)
    return paths


def test_this_user(files: dict[str, Path], tmp_path: Path) -> None:
    paths = [*files.values(), tmp_path / "missing"]
    assert list(may_access(user_name(), paths, "r").values()) == [True, True, False]
    assert list(may_access(user_name(), paths, "w").values()) == [True, True, False]


def test_users() -> None:
    assert has_user(user_name())
    assert has_user("root")
    assert not has_user("no-such-user")


@needs_root
def test_another_user(files: dict[str, Path], tmp_path: Path) -> None:
    paths = [*files.values(), tmp_path / "missing"]
    assert list(may_access("games", paths, "r").values()) == [True, False, False]
    assert list(may_access("games", paths, "w").values()) == [False, False, False]
    assert may_access("games", [], "r") == {}


@needs_root
@pytest.mark.skipif(shutil.which("setfacl") is None, reason="NOT TESTED: needs setfacl (acl)")
def test_access_by_an_acl(files: dict[str, Path]) -> None:
    private = files["private"]
    subprocess.run(["setfacl", "--modify", "u:games:r", str(private)], check=True)
    assert may_access("games", [private], "r") == {private: True}


@pytest.mark.skipif(os.geteuid() == 0, reason="NOT TESTED: needs another user than root")
def test_another_user_needs_root(tmp_path: Path) -> None:
    with pytest.raises(DiskslaError, match="only root can check what the user root may"):
        may_access("root", [tmp_path], "r")


AZURE_TAG = "7783-7084-3265-9085-8269-3286-77"
MACHINES = [
    ("Amazon EC2", "m6i.large", "Amazon EC2", "1.0", "aws"),
    ("Xen", "HVM domU", "", "4.11.amazon", "aws"),
    ("Xen", "HVM domU", "", "4.11", None),
    ("Google", "Google Compute Engine", "", "Google", "gcp"),
    ("Google", "Kohaku", "", "Google_Kohaku.12672.648.0", None),
    ("Microsoft Corporation", "Virtual Machine", AZURE_TAG, "090008", "azure"),
    ("Microsoft Corporation", "Virtual Machine", "1234-5678", "090008", None),
    ("Yandex", "xeon-gold-6338", "", "1.11.1-1", "yandex"),
    ("OpenStack Foundation", "OpenStack Nova", "", "1.15.0-1", "openstack"),
    ("Red Hat", "OpenStack Compute", "", "", "openstack"),
    ("QEMU", "Standard PC", "OpenStack Nova", "", "openstack"),
    ("QEMU", "Standard PC", "SAP CCloud VM", "", "openstack"),
    ("OpenStack Foundation", "OpenStack Nova", "HUAWEICLOUD", "", "huawei"),
    ("OpenStack Foundation", "OpenStack Nova", "OpenTelekomCloud", "", "huawei"),
    ("VK Cloud", "OpenStack Nova", "", "", "vk"),
    ("OpenStack Foundation", "Mail.Ru Cloud Solutions", "", "", "vk"),
    ("AVK Systems", "Standard PC", "", "", None),
    ("Alibaba Cloud", "Alibaba Cloud ECS", "", "449e491", "alibaba"),
    ("Alibaba", "Alibaba Cloud X-Dragon", "", "", "alibaba"),
    ("QEMU", "Standard PC", "OracleCloud.com", "", "oracle"),
    ("QEMU", "Standard PC", "ibmcloud", "", "ibm"),
    ("Tencent Cloud", "CVM", "", "seabios-1.9.1", "tencent"),
    ("Hetzner", "vServer", "", "20171111", "hetzner"),
    ("DigitalOcean", "Droplet", "", "20171212", "digitalocean"),
    ("Scaleway", "SCW-PLAY2-PICO", "", "0.0.0", "scaleway"),
    ("Exoscale", "Exoscale Compute Platform", "", "", "exoscale"),
    ("QEMU", "Standard PC (Q35 + ICH9, 2009)", "", "1.16.0", None),
    ("Dell Inc.", "PowerEdge R650", "", "1.9.2", None),
]


@pytest.mark.parametrize(("vendor", "product", "tag", "bios", "provider"), MACHINES)
def test_provider_of_known_machines(
    vendor: str, product: str, tag: str, bios: str, provider: str | None
) -> None:
    dmi = dict(zip(DMI_ATTRIBUTES, (vendor, product, tag, bios), strict=True))
    assert provider_of(dmi) == provider
    assert provider_of({name: text for name, text in dmi.items() if text}) == provider


def test_machine_without_firmware_has_no_provider() -> None:
    assert provider_of({}) is None


def test_providers_are_those_of_the_catalogue() -> None:
    catalogue = {row.id.partition(".")[0] for row in load_catalog().rows}
    found = {provider for *_, provider in MACHINES if provider}
    assert found - catalogue == {"openstack"}


@given(st.dictionaries(st.sampled_from(DMI_ATTRIBUTES), st.text(max_size=30)))
def test_any_text_is_accepted(dmi: dict[str, str]) -> None:
    assert provider_of(dmi) is None or any(dmi.values())
