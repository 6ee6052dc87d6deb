"""The provider of a machine, from what its firmware says (DMI)."""

import re
from collections.abc import Mapping

_AZURE = r"7783-7084-3265-9085-8269-3286-77"
_OPENSTACK = r"OpenStack (Nova|Compute)"

_RULES = (
    # Hyper-V elsewhere has the vendor of Azure, but not its tag (cloud-init, tools/ds-identify).
    ("chassis_asset_tag", _AZURE, "azure"),
    ("chassis_asset_tag", r"OracleCloud\.com", "oracle"),  # ds-identify
    # The catalogue has the types of Open Telekom Cloud among those of Huawei, which built it.
    ("chassis_asset_tag", r"HUAWEICLOUD|OpenTelekomCloud", "huawei"),  # ds-identify
    ("chassis_asset_tag", r".*ibmcloud.*", "ibm"),  # saptune, system/csp.go
    ("sys_vendor", r"Amazon EC2", "aws"),  # systemd, src/basic/virt.c
    # Xen instances have the vendor Xen (insights-core, combiners/cloud_provider.py: 4.2.amazon).
    ("bios_version", r"\d+\.\d+\.amazon", "aws"),
    # Chromebooks have the vendor Google, too.
    ("product_name", r"Google Compute Engine", "gcp"),  # ds-identify
    ("sys_vendor", r"Yandex", "yandex"),  # kernel logs: DMI: Yandex xeon-gold-6338
    ("product_name", r"Alibaba Cloud.*", "alibaba"),  # ds-identify: Alibaba Cloud ECS
    ("sys_vendor", r"Alibaba( Cloud)?", "alibaba"),  # kernel logs of bare-metal instances
    ("sys_vendor", r"Tencent Cloud", "tencent"),  # kernel logs: DMI: Tencent Cloud CVM
    ("sys_vendor", r"Hetzner", "hetzner"),  # ds-identify; kernel logs: DMI: Hetzner vServer
    ("sys_vendor", r"DigitalOcean", "digitalocean"),  # ds-identify
    ("sys_vendor", r"Scaleway", "scaleway"),  # ds-identify
    ("product_name", r"Exoscale.*", "exoscale"),  # ds-identify
    ("sys_vendor", r"(.*\W)?(VK|Mail\.Ru)(\W.*)?", "vk"),
    ("product_name", r"(.*\W)?(VK|Mail\.Ru)(\W.*)?", "vk"),
    ("product_name", _OPENSTACK, "openstack"),  # ds-identify
    ("chassis_asset_tag", rf"{_OPENSTACK}|SAP CCloud VM", "openstack"),
    ("sys_vendor", r"OpenStack Foundation", "openstack"),
)
"""Attribute, the text that it has, and the provider; the first that fits decides."""

Dmi = Mapping[str, str]  # attributes of /sys/class/dmi/id by name, without those that are absent


def provider_of(dmi: Dmi) -> str | None:
    """Return the id of the provider in the catalogue; None if it is not certain.

    A machine of VK Cloud, of OVH and of others reports OpenStack like any private cloud. It is
    called `openstack`, a provider without types in the catalogue, unless a name says more. No
    capture of a machine of VK Cloud with its own name is known.
    """
    for attribute, pattern, provider in _RULES:
        if re.fullmatch(pattern, dmi.get(attribute, "")):
            return provider
    return None
