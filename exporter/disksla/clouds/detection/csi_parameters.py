"""Parameters of CSI drivers: which type and values of the provider a volume was ordered with.

Sources: the parameters that the drivers document (docs/parameters.md of aws-ebs-csi-driver,
docs/driver-parameters.md of azuredisk-csi-driver, README.md of
gcp-compute-persistent-disk-csi-driver, the manual of cinder-csi-plugin, Yandex Cloud's pages on
Managed Service for Kubernetes, Huawei Cloud's on the Everest add-on).
"""

import re
from collections.abc import Callable, Collection, Mapping
from functools import partial
from typing import Literal

import msgspec

from disksla.base.units import BYTES_PER_UNIT, GIB, MB, MIB
from disksla.clouds.detection.aws import PROVISIONED as OF_AWS
from disksla.clouds.detection.azure import CACHING, OPTIONS
from disksla.clouds.detection.azure import PROVISIONED as OF_AZURE
from disksla.clouds.detection.findings import CloudDisk, amount
from disksla.clouds.detection.google import PROVISIONED as OF_GOOGLE
from disksla.clouds.http_client import plain_text, whole_number

Parameters = Mapping[str, str]  # of classes, by names in lower case: drivers do not distinguish

_EBS = ("ebs.csi.aws.com", "ebs.csi.eks.amazonaws.com")  # the second is that of EKS Auto Mode
_YANDEX = ("disk-csi-driver.mks.ycloud.io", "yandex.csi.flant.com")
"""The second is that of Deckhouse."""
DEFAULTS: Mapping[str, Mapping[str, str]] = {
    "disk.csi.azure.com": {"skuname": "StandardSSD_LRS"},
    **{driver: {"type": "gp3"} for driver in _EBS},
    "pd.csi.storage.gke.io": {"type": "pd-standard"},
}
"""What drivers order where a StorageClass does not say it."""
_CHOSEN_BY_NODE = "dynamic"
"""In place of a type: the driver of Google chooses `pd-type` or `hyperdisk-type` by the node."""
_LEAST_NOT_CACHED_GIB = 4096
"""From this size on, the driver of Azure attaches disks without a cache."""
_IOPS_OF_GP3, _MIB_PER_SECOND_OF_GP3 = 3000, 125
_IOPS_BY_SIZE: Mapping[str, tuple[int, int, int]] = {
    "gp3": (_IOPS_OF_GP3, 16_000, 500),
    "io1": (100, 64_000, 50),
    "io2": (100, 64_000, 500),
}
"""IOPS between which each version of the EBS driver orders what is asked for, and most per GiB."""


def ordered_as(driver: str, parameters: Parameters, capacity: str) -> CloudDisk | None:
    """Return the terms of a volume without its name, and the provider that the driver is of.

    `capacity` is the size that was ordered, a quantity of Kubernetes; empty if that is not known.
    Return None if the type, or a value that has to be chosen for it, is not known.
    """
    describe = _DRIVERS.get(driver)
    return None if describe is None else describe(parameters, (_bytes(capacity) or 0) // GIB)


def follows_size(driver: str, parameters: Parameters) -> bool:
    """Return whether what the driver ordered follows the present size, after an expansion too.

    That of EBS does not, unless this parameter is set: after an expansion, a volume has
    `iopsPerGB` times the size that it was created with. Source: issues 818, 1698 and 2551, and
    pull request 2635 of kubernetes-sigs/aws-ebs-csi-driver.
    """
    orders_again = parameters.get("allowautoiopsincreaseonmodify", "").lower() == "true"
    return driver not in _EBS or orders_again


def with_changes(driver: str, ordered: Parameters, changes: Parameters) -> Parameters | None:
    """Return the parameters of a volume after a VolumeAttributesClass; None if not known.

    A volume of EBS that becomes another type without IOPS and throughput gets what follows from
    its former type, if it was changed, or the defaults, if the class was there when it was
    created; the API of Kubernetes does not show which. Source: announcement of AWS of 2022-07 on
    Elastic Volumes.
    """
    before = ordered.get("type")
    after = changes.get("type", before)
    if driver in _EBS and after is not None and after != before:
        return changes if changes.keys() >= set(OF_AWS.get(after, ())) else None
    return {**ordered, **changes}


def _aws(parameters: Parameters, size_gib: int) -> CloudDisk | None:
    api_type = _type(parameters.get("type"))
    if api_type is None:
        return None
    values = {
        "iops": _aws_iops(parameters, api_type, size_gib),
        "throughput": amount(parameters.get("throughput", _MIB_PER_SECOND_OF_GP3), MIB),
    }
    return _chosen("aws", api_type, OF_AWS.get(api_type, ()), values)


def _chosen(
    provider: str, api_type: str, names: Collection[str], values: Mapping[str, int | None]
) -> CloudDisk | None:
    """Return the terms of a type with these values; None if one that it needs is not known."""
    chosen = {name: values[name] for name in names}
    if None in chosen.values():
        return None
    return CloudDisk(
        "",
        api_type,
        iops=chosen.get("iops"),
        bytes_per_second=chosen.get("throughput"),
        provider=provider,
    )


def _aws_iops(parameters: Parameters, api_type: str, size_gib: int) -> int | None:
    """Return the IOPS that were ordered; None where the driver would have chosen others."""
    least, most, per_gib = _IOPS_BY_SIZE.get(api_type, (0, 0, 0))
    by_size = per_gib * size_gib if per_gib * size_gib >= least else most
    if "iops" in parameters:
        iops = whole_number(parameters["iops"]) or 0
        least, most = 1, max(most, iops)
    elif "iopspergb" in parameters:
        iops = (whole_number(parameters["iopspergb"]) or 0) * size_gib
    else:
        return _IOPS_OF_GP3 if api_type == "gp3" else None
    capped = min(iops, by_size) if size_gib else iops
    if api_type == "io2" and capped < iops:
        return None  # EC2 allows 1000 per GiB, which newer versions of the driver order
    return capped if least <= capped <= most else None


def _google(parameters: Parameters, _: int) -> CloudDisk | None:
    api_type = _type(parameters.get("type"))
    if api_type is None or api_type == _CHOSEN_BY_NODE:
        return None
    iops = _first(parameters, "iops", "provisioned-iops", "provisioned-iops-on-create")
    rate = _first(
        parameters, "throughput", "provisioned-throughput", "provisioned-throughput-on-create"
    )
    values = {"iops": whole_number(iops), "throughput": _bytes(rate)}
    names = OF_GOOGLE.get(api_type, tuple(values) if "hyperdisk" in api_type else ())
    return _chosen("gcp", api_type, names, values)


def _azure(parameters: Parameters, size_gib: int) -> CloudDisk | None:
    api_type = _type(_first(parameters, "storageaccounttype", "skuname"))
    if api_type is None:
        return None
    values = {
        "iops": whole_number(parameters.get("diskiopsreadwrite")),
        "throughput": amount(parameters.get("diskmbpsreadwrite"), MB),
    }
    found = _chosen("azure", api_type, values if api_type in OF_AZURE else (), values)
    is_on = {
        "performance_plus": parameters.get("enableperformanceplus", "").lower() == "true",
        "on_demand_burst": parameters.get("enablebursting", "").lower() == "true",
    }
    return found and msgspec.structs.replace(
        found,
        caching=_azure_caching(parameters, api_type, size_gib),
        options={name: "on" for name in OPTIONS.get(api_type, ()) if is_on.get(name)},
    )


def _azure_caching(
    parameters: Parameters, api_type: str, size_gib: int
) -> Literal["none", "read-only", "read-write"] | None:
    """Return what the host caches of a disk, which is by default what is read.

    The size is 0 if it is not known. Source: the driver's parameters, and its limit of size.
    """
    is_shared = (whole_number(parameters.get("maxshares")) or 1) > 1
    if api_type in OF_AZURE or is_shared or size_gib >= _LEAST_NOT_CACHED_GIB:
        return "none"
    return CACHING.get(parameters.get("cachingmode", "ReadOnly"))


def _by_type(provider: str, name: str, parameters: Parameters, _: int) -> CloudDisk | None:
    api_type = _type(parameters.get(name))
    return None if api_type is None else CloudDisk("", api_type, provider=provider)


_DRIVERS: Mapping[str, Callable[[Parameters, int], CloudDisk | None]] = {
    "cinder.csi.openstack.org": partial(_by_type, "openstack", "type"),
    "disk.csi.azure.com": _azure,
    "disk.csi.everest.io": partial(_by_type, "huawei", "everest.io/disk-volume-type"),
    "pd.csi.storage.gke.io": _google,
    **dict.fromkeys(_EBS, _aws),
    **dict.fromkeys(_YANDEX, partial(_by_type, "yandex", "type")),
}


def _type(value: str | None) -> str | None:
    return plain_text(value, r"[\w.-]")


def _first(parameters: Parameters, *names: str) -> str | None:
    return next((parameters[name] for name in names if name in parameters), None)


def _bytes(value: str | None) -> int | None:
    """Return the bytes of a quantity of Kubernetes with a unit.

    A bare number may mean bytes or MiB.
    """
    found = re.fullmatch(r"([0-9]{1,9})([KMGT]i|[kMGT])", value or "")
    return None if found is None else int(found[1]) * BYTES_PER_UNIT[f"{found[2]}B"]
