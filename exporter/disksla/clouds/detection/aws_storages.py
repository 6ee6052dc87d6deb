"""AWS: what the EFS and FSx file systems are that are mounted, by their APIs.

Each is asked for by its id, so a role may be permitted to see it only. Sources: the API references
of EFS and FSx (DescribeFileSystems), and their pages on permissions and errors.
"""

import contextlib
import datetime as dt
from collections.abc import Mapping
from functools import partial
from typing import Any

import msgspec

from disksla.base.errors import DECODE_ERRORS, ExchangeReason
from disksla.base.units import GIB, MB, MIB
from disksla.clouds import http_client as http
from disksla.clouds.detection import aws
from disksla.clouds.detection.aws import Role
from disksla.clouds.detection.file_storages import each_storage, value_in
from disksla.clouds.detection.findings import CloudDisk, Listing
from disksla.kernel.nfs import FileStorage

_FSX: Mapping[str, tuple[str, set[str]]] = {
    "LUSTRE": ("Lustre", set()),
    "OPENZFS": ("OpenZFS", {"single-az-1"}),
    "ONTAP": ("Ontap", {"single-az-1", "multi-az-1"}),
}
"""Names of configurations, and the deployments that the catalogue has, if not all."""
_FORBIDDEN = 403
_MOST_MIB_PER_SECOND = 10**6
_FSX_TARGET = "AWSSimbaAPIService_v20180301.DescribeFileSystems"
_NONE = "there is no such file system in this account and region"
EFS_REGIONS: Mapping[str, frozenset[str]] = {
    "bursting": frozenset({"us-east-1", "us-east-2", "us-west-2", "ap-southeast-2", "eu-west-1"}),
    "provisioned": frozenset({"us-east-1", "us-east-2", "us-west-2", "eu-west-1"}),
    "elastic": frozenset(
        {
            *("us-east-1", "us-east-2", "us-west-2", "eu-west-1", "eu-west-2", "eu-central-1"),
            *("ap-south-1", "ap-northeast-1", "ap-northeast-2"),
            *("ap-southeast-1", "ap-southeast-2"),
        }
    ),
}
"""Regions with limits of their own, by throughput mode, as the catalogue has them."""


def storages_of_aws(
    endpoints: Mapping[str, str], now: dt.datetime, storages: tuple[FileStorage, ...]
) -> http.Exchanges[Listing]:
    """Return the terms of EFS and FSx; `endpoints` replaces addresses of `efs` and `fsx`."""
    token = yield from aws.metadata_token()
    home = yield from aws.region_of(token)

    def terms(role: Role) -> http.Exchanges[Listing]:
        return each_storage(storages, partial(_terms, _Caller(endpoints, now, role, home)))

    return (yield from http.authorized(partial(aws.role_of, token), terms))


class _Caller(msgspec.Struct, frozen=True):
    """Who asks, when, and from which region."""

    endpoints: Mapping[str, str]
    now: dt.datetime
    role: Role
    region: str


def _terms(caller: _Caller, storage: FileStorage) -> http.Exchanges[CloudDisk]:
    region = storage.region or caller.region
    what = f"request for {storage.service} {storage.id} in {region}"
    is_efs = storage.service == "EFS"
    service = "elasticfilesystem" if is_efs else "fsx"
    address = caller.endpoints.get("efs" if is_efs else "fsx") or aws.public_endpoint(
        service, region
    )
    request = (_efs_request if is_efs else _fsx_request)(what, address, storage)
    scope = f"{region}/{service}"
    classify = partial(_classify, what, caller.role.name, f"{service}:DescribeFileSystems")
    response = yield from http.get_response(
        aws.signed(request, caller.role.credentials, scope, caller.now), classify=classify
    )
    found = http.items_of(http.decode(what, response.body, dict).get("FileSystems"))
    if len(found) != 1:
        raise http.failure(what, "not_found", _NONE)
    return _efs_terms(what, found[0], storage, region) if is_efs else _fsx_terms(what, found[0])


def _efs_request(what: str, address: str, storage: FileStorage) -> http.Request:
    url = f"{address}/2015-02-01/file-systems?FileSystemId={storage.id}"
    return http.Request(what, "api", "GET", url)


def _fsx_request(what: str, address: str, storage: FileStorage) -> http.Request:
    headers = {"content-type": "application/x-amz-json-1.1", "x-amz-target": _FSX_TARGET}
    body = msgspec.json.encode({"FileSystemIds": [storage.id]})
    url = f"{address}/"
    return http.Request(
        what=what, source="api", method="POST", url=url, headers=headers, body=body
    )


def _classify(
    what: str, role: str, permission: str, response: http.Response
) -> tuple[ExchangeReason, str] | None:
    """Return why an API rejected a request, by the code of its error."""
    code = response.headers.get("x-amzn-errortype", "")
    if not code:
        with contextlib.suppress(*DECODE_ERRORS):
            code = str(value_in(msgspec.json.decode(response.body), "__type"))
    if not code and response.status == _FORBIDDEN:
        code = "AccessDenied"
    code = code.partition(":")[0].rpartition("#")[2]
    if code == "FileSystemNotFound":
        return "not_found", _NONE
    return aws.why_rejected(code, role, permission, partial(http.check_clock, what, response))


def _efs_terms(what: str, found: Any, storage: FileStorage, region: str) -> CloudDisk:
    mode = http.plain_text(value_in(found, "ThroughputMode"), "[a-z_]")
    size = value_in(found, "SizeInBytes", "ValueInStandard")
    # Without data, it has the limits of the smallest; without a size, they would be unknown.
    size_bytes = http.whole_number(1 if size == 0 else size)
    if mode is None or size_bytes is None:
        raise http.failure(what, "not_found", "it has no throughput mode or no size in Standard")
    options = {"mode": mode}
    if region in EFS_REGIONS.get(mode, ()):
        options["region"] = region
    if value_in(found, "AvailabilityZoneId") is not None:
        options["type"] = "one-zone"
    if mode == "elastic" and storage.by_efs_proxy:
        options["client"] = "efs-utils-2"
    is_max_io = value_in(found, "PerformanceMode") == "maxIO"
    bought = _mib_per_second(value_in(found, "ProvisionedThroughputInMibps"))
    return CloudDisk(
        "",
        "efs-max-io" if is_max_io else "efs",
        size_bytes=size_bytes,
        bytes_per_second=bought if mode == "provisioned" else None,
        options=options,
    )


def _mib_per_second(number: Any) -> int | None:
    """Return MiB/s, which may have a fraction, in bytes per second."""
    is_number = isinstance(number, int | float) and 0 < number < _MOST_MIB_PER_SECOND
    return round(number * MIB) if is_number else None


def _fsx_terms(what: str, found: Any) -> CloudDisk:
    kind = http.plain_text(value_in(found, "FileSystemType"), "[A-Z]") or ""
    size_gib = http.whole_number(value_in(found, "StorageCapacity"))
    if kind not in _FSX or size_gib is None:
        raise http.failure(what, "not_found", "it has no type that is known, or no capacity")
    chosen = value_in(found, f"{_FSX[kind][0]}Configuration")
    deployment = http.plain_text(value_in(chosen, "DeploymentType"), r"[\w]") or "unknown"
    deployment = deployment.lower().replace("_", "-")
    in_catalogue = _FSX[kind][1]
    is_known = not in_catalogue or deployment in in_catalogue
    has_iops = value_in(chosen, "DiskIopsConfiguration", "Mode") == "USER_PROVISIONED"
    iops = value_in(chosen, "DiskIopsConfiguration", "Iops") if has_iops else None
    throughput = http.whole_number(value_in(chosen, "ThroughputCapacity"))
    options = {}
    if kind == "LUSTRE":
        per_tib = http.whole_number(value_in(chosen, "PerUnitStorageThroughput"))
        medium = "hdd" if value_in(found, "StorageType") == "HDD" else "persistent"
        options["deployment"] = deployment if per_tib is None else f"{medium}-{per_tib}"
    elif throughput is None:
        raise http.failure(what, "not_found", "it has no throughput capacity")
    elif kind == "ONTAP":
        options["throughput"] = str(throughput)
    return CloudDisk(
        "",
        f"fsx-{kind.lower()}{'' if is_known else f'-{deployment}'}",
        size_bytes=size_gib * GIB,
        iops=http.whole_number(iops),
        bytes_per_second=throughput * MB if kind == "OPENZFS" and throughput else None,
        options=options,
    )
