"""The provider of a machine, by what its firmware says."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from disksla.base.operating_system.dmi_provider import provider_of
from disksla.base.operating_system.machine import DMI_ATTRIBUTES
from disksla.promise.catalogue.catalog import load_catalog

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
