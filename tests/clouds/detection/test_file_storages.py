"""What is asked of the providers about file storages, and the limits that follow of the answers.

Answers are the samples of the providers' documents.
"""

import copy
import datetime as dt
import json
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import msgspec
import pytest

from disksla.base.units import GIB, MB, MIB, parse_size_bytes
from disksla.clouds.detection import Detected, encode_terms_file, exchanges_of, terms_file
from disksla.clouds.detection.aws_storages import EFS_REGIONS
from disksla.clouds.detection.file_storages import with_storage_entries
from disksla.clouds.http_client.exchange import ExchangeError, Request, Response
from disksla.kernel.nfs import FileStorage
from disksla.promise.catalogue import Limits, Provision, derive_limits
from disksla.promise.catalogue.catalog import load_catalog
from disksla.promise.catalogue.options import effective_options
from support.examples import some
from support.exchanges import Answer, answered, reply
from support.machine_facts import terms_file as read_file

NOW = dt.datetime(2026, 11, 27, tzinfo=dt.UTC)
CATALOG = load_catalog()
SUBSCRIPTION = "00000000-1111-2222-3333-444444444444"
ACCOUNT = (
    f"/subscriptions/{SUBSCRIPTION}/resourceGroups/rg/providers/Microsoft.Storage/storageAccounts"
)
LIST = "/providers/Microsoft.Storage/storageAccounts"
VERSION = "api-version=2024-01-01"
ODD: tuple[Any, ...] = (
    None,
    "",
    "No-Such.Value",
    5,
    -1,
    10**400,
    True,
    1.5,
    [],
    {},
    [None],
    ["x"],
    {"x": None},
)
Documents = Mapping[str, Any]
"""Answers by the end of the path, or by the start of the body; None is a denial."""


class Case(NamedTuple):
    """A storage that is mounted, what the provider says, and the entry that is expected."""

    storage: FileStorage
    documents: Documents
    entry: dict[str, Any]


def efs(**values: Any) -> dict[str, Any]:
    """Return the answer of EFS about a file system of 200 GiB."""
    size = {"Value": 300 * GIB, "ValueInIA": 100 * GIB, "ValueInStandard": 200 * GIB}
    system = {"FileSystemId": "fs-1", "PerformanceMode": "generalPurpose", "SizeInBytes": size}
    return {"FileSystems": [{"ThroughputMode": "bursting"} | system | values]}


def fsx(kind: str, gib: int, **values: Any) -> dict[str, Any]:
    return {"FileSystems": [{"FileSystemType": kind, "StorageCapacity": gib} | values]}


def azure(sku: str, account: Any = None, **values: Any) -> dict[str, Any]:
    listed = {"id": f"{ACCOUNT}/a1", "name": "a1", "sku": {"name": sku}} | (account or {})
    return {
        "/storageAccounts": {"value": [{"id": f"{ACCOUNT}/zz", "name": "zz"}, listed]},
        "/shares/s1": {"properties": {"shareQuota": 1024} | values},
    }


def filestore(tier: str, gib: int, **values: Any) -> dict[str, Any]:
    instance = {
        "name": "projects/p/locations/l/instances/i",
        "tier": tier,
        "fileShares": [{"name": "vol1", "capacityGb": str(gib)}],
        "networks": [{"ipAddresses": ["10.0.0.2"]}],
    }
    return {"/instances": {"instances": [{"name": "other"}, instance | values]}}


def at(service: str, **values: Any) -> FileStorage:
    return FileStorage("/mnt/a", values.pop("source", "s"), "nfs4", service=service, **values)


EFS = at("EFS", provider="aws", id="fs-1", region="eu-west-1")
FSX = at("FSx", provider="aws", id="fs-1", region="eu-west-1")
FILES = at("Azure Files", provider="azure", id="a1/s1")
FILESTORE = FileStorage("/mnt/a", "10.0.0.2:/vol1/sub", "nfs")
VIRTIOFS = at("file storage", provider="yandex", id="data")
CASES = {
    "efs-bursting": Case(
        EFS,
        {"/file-systems": efs()},
        {
            "api_type": "efs",
            "size": "200GiB",
            "options": {"mode": "bursting", "region": "eu-west-1"},
        },
    ),
    "efs-elastic-by-proxy": Case(
        msgspec.structs.replace(EFS, by_efs_proxy=True, region=None),
        {"/file-systems": efs(ThroughputMode="elastic")},
        {
            "api_type": "efs",
            "size": "200GiB",
            "options": {"mode": "elastic", "region": "eu-central-1", "client": "efs-utils-2"},
        },
    ),
    "efs-provisioned-one-zone": Case(
        EFS,
        {
            "/file-systems": efs(
                ThroughputMode="provisioned",
                ProvisionedThroughputInMibps=12.5,
                AvailabilityZoneId="euw1-az1",
            )
        },
        {
            "api_type": "efs",
            "size": "200GiB",
            "bandwidth": "13107200B/s",
            "options": {"mode": "provisioned", "region": "eu-west-1", "type": "one-zone"},
        },
    ),
    "efs-empty": Case(
        msgspec.structs.replace(EFS, region="sa-east-1"),
        {"/file-systems": efs(SizeInBytes={"ValueInStandard": 0})},
        {"api_type": "efs", "size": "1B", "options": {"mode": "bursting"}},
    ),
    "lustre": Case(
        FSX,
        {
            "DescribeFileSystems": fsx(
                "LUSTRE",
                1200,
                StorageType="SSD",
                LustreConfiguration={
                    "DeploymentType": "PERSISTENT_2",
                    "PerUnitStorageThroughput": 250,
                },
            )
        },
        {"api_type": "fsx-lustre", "size": "1200GiB", "options": {"deployment": "persistent-250"}},
    ),
    "lustre-hdd": Case(
        FSX,
        {
            "DescribeFileSystems": fsx(
                "LUSTRE",
                6000,
                StorageType="HDD",
                LustreConfiguration={
                    "DeploymentType": "PERSISTENT_1",
                    "PerUnitStorageThroughput": 12,
                },
            )
        },
        {"api_type": "fsx-lustre", "size": "6000GiB", "options": {"deployment": "hdd-12"}},
    ),
    "lustre-scratch": Case(
        FSX,
        {
            "DescribeFileSystems": fsx(
                "LUSTRE", 2400, LustreConfiguration={"DeploymentType": "SCRATCH_2"}
            )
        },
        {"api_type": "fsx-lustre", "size": "2400GiB", "options": {"deployment": "scratch-2"}},
    ),
    "openzfs": Case(
        FSX,
        {
            "DescribeFileSystems": fsx(
                "OPENZFS",
                1024,
                OpenZFSConfiguration={
                    "DeploymentType": "SINGLE_AZ_1",
                    "ThroughputCapacity": 2048,
                    "DiskIopsConfiguration": {"Mode": "USER_PROVISIONED", "Iops": 5000},
                },
            )
        },
        {"api_type": "fsx-openzfs", "size": "1024GiB", "iops": 5000, "bandwidth": "2048MB/s"},
    ),
    "ontap": Case(
        FSX,
        {
            "DescribeFileSystems": fsx(
                "ONTAP",
                10240,
                OntapConfiguration={
                    "DeploymentType": "MULTI_AZ_1",
                    "ThroughputCapacity": 256,
                    "DiskIopsConfiguration": {"Mode": "AUTOMATIC", "Iops": 30720},
                },
            )
        },
        {"api_type": "fsx-ontap", "size": "10240GiB", "options": {"throughput": "256"}},
    ),
    "files-v1": Case(
        FILES,
        azure("Premium_LRS", provisionedIops=4024, includedBurstIops=10000),
        {"api_type": "files-ssd-v1", "size": "1024GiB"},
    ),
    "files-v1-paid": Case(
        FILES,
        azure("Premium_ZRS", fileSharePaidBursting={"paidBurstingEnabled": True}),
        {"api_type": "files-ssd-v1", "size": "1024GiB", "options": {"paid_burst": "on"}},
    ),
    "files-v2": Case(
        FILES,
        azure("PremiumV2_LRS", provisionedIops=5000, provisionedBandwidthMibps=200),
        {"api_type": "files-ssd-v2", "size": "1024GiB", "iops": 5000, "bandwidth": "200MiB/s"},
    ),
    "files-hdd": Case(
        FILES,
        azure("StandardV2_GZRS", provisionedIops=1000, provisionedBandwidthMibps=80),
        {"api_type": "files-hdd-v2", "size": "1024GiB", "iops": 1000, "bandwidth": "80MiB/s"},
    ),
    "files-payg": Case(
        FILES,
        azure("Standard_RAGRS", {"properties": {"largeFileSharesState": "Disabled"}}),
        {"api_type": "files-payg", "size": "1024GiB", "options": {"large_shares": "off"}},
    ),
    "filestore-zonal": Case(
        FILESTORE,
        filestore("ZONAL", 2048),
        {"api_type": "filestore", "size": "2048GiB", "options": {"tier": "zonal"}},
    ),
    "filestore-basic": Case(
        FILESTORE,
        filestore("STANDARD", 1024),
        {"api_type": "filestore", "size": "1024GiB", "options": {"tier": "basic-hdd"}},
    ),
    "filestore-custom": Case(
        FILESTORE,
        filestore(
            "REGIONAL",
            2048,
            performanceConfig={"fixedIops": {"maxIops": "9000"}},
            performanceLimits={"maxReadIops": "9000", "maxWriteIops": "2700"},
        ),
        {
            "api_type": "filestore",
            "size": "2048GiB",
            "iops": 9000,
            "options": {"tier": "regional", "performance": "custom"},
        },
    ),
    "yandex": Case(
        VIRTIOFS,
        {
            "/instances/epd": {"filesystems": [{"deviceName": "data", "filesystemId": "fhm1"}]},
            "/filesystems/fhm1": {"typeId": "network-ssd", "size": str(100 * GIB)},
        },
        {"api_type": "filestore-ssd", "size": "100GiB"},
    ),
}
METADATA: Documents = {
    "/latest/api/token": b"token",
    "/instance-id": b"i-0abc",
    "/placement/region": b"eu-central-1",
    "/instance-type": b"m5.large",
    "/security-credentials/": b"disksla",
    "/security-credentials/disksla": {
        "AccessKeyId": "ASIAKEY",
        "SecretAccessKey": "S3CRET",
        "Token": "T0KEN",
    },
    "/metadata/instance/compute": {
        "vmSize": "Standard_D4s_v5",
        "subscriptionId": SUBSCRIPTION,
        "azEnvironment": "AzurePublicCloud",
        "storageProfile": {"osDisk": {"diffDiskSettings": {"option": "Local"}}},
    },
    "/oauth2/token": {"access_token": "T0KEN"},
    "/instance/": {"name": "n", "zone": "projects/1/zones/z", "machineType": "m/n1"},
    "/instance/id": b"epd",
    "/project/project-id": b"my-project",
    "/default/token": {"access_token": "T0KEN"},
    "/": b"<a><volumeSet/></a>",
}


def provider_of(storage: FileStorage) -> str:
    return storage.provider or "gcp"


def answer_by(documents: Documents) -> Callable[[Request], Answer]:
    """Return a cloud that has these documents, and what every machine is told."""

    def answer(request: Request) -> Response:
        target = request.headers.get("x-amz-target", "").rpartition(".")[2]
        path = urlsplit(request.url).path
        known = {**METADATA, **documents}
        ends = [target] if target else [end for end in known if path.endswith(end)]
        found = known[max(ends, key=len)] if ends else {}
        if isinstance(found, Response):
            return found
        return reply(found, headers={"metadata-flavor": "Google"})

    return answer


def run(
    storages: tuple[FileStorage, ...], documents: Documents, **values: Any
) -> tuple[Detected, list[Request]]:
    exchanges = exchanges_of(provider_of(storages[0]), now=NOW, storages=storages, **values)
    return answered(exchanges, answer_by(documents))


def entries_of(detected: Detected, last: Any = None) -> list[dict[str, Any]]:
    """Return the entries of file storages, of a file that the daemon accepts."""
    file = with_storage_entries(terms_file(detected, last, NOW), detected, last)
    data = encode_terms_file(file)
    read_file(data.decode())
    disks: list[dict[str, Any]] = json.loads(data)["disks"]
    return [each for each in disks if "mountpoint" in each["match"]]


def limits_of(provider: str, entry: dict[str, Any]) -> Limits:
    """Return the limits that follow from an entry, as the daemon reads it."""
    file = {"provider": provider, "disks": [entry]}
    [(_, read)] = read_file(json.dumps(file)).entries()
    assert isinstance(read.terms, str)
    provision = Provision(read.iops, read.bytes_per_second, read.options)
    return derive_limits(CATALOG[read.terms], read.size_bytes() or 0, provision)


@pytest.mark.parametrize("name", CASES)
def test_entry_has_limits(name: str) -> None:
    case = CASES[name]
    detected, _ = run((case.storage,), case.documents)
    [entry] = entries_of(detected)
    assert entry == {"match": {"mountpoint": "/mnt/a"}} | case.entry
    storage_problems = [each for each in detected.problems if "disk" not in each.message]
    assert storage_problems == [] or provider_of(case.storage) == "yandex"
    row = f"{provider_of(case.storage)}.{entry['api_type']}"
    assert CATALOG[row].is_file_storage
    effective_options(CATALOG[row], entry.get("options", {}))
    limits_of(provider_of(case.storage), entry)


def test_known_limits_of_some() -> None:
    """The worked points of the catalogue, by way of detection."""

    def write_rates(name: str) -> tuple[float | None, float | None]:
        case = CASES[name]
        rates = limits_of(provider_of(case.storage), {"match": {"mountpoint": "/x"}} | case.entry)
        return rates.rates.write_iops, rates.rates.write_bytes_per_second

    assert write_rates("efs-bursting") == (7000, 200 * 50 * 1024)
    assert write_rates("efs-empty") == (7000, MIB)
    assert write_rates("efs-provisioned-one-zone") == (7000, 12.5 * MIB)
    assert write_rates("files-v2") == (5000, 200 * MIB)
    assert write_rates("openzfs") == (5000, 2048 * MB)
    assert write_rates("yandex") == (None, None)


def test_regions_are_those_of_the_catalogue() -> None:
    for mode, regions in EFS_REGIONS.items():
        chosen = CATALOG["aws.efs"].options["mode"].values[mode].options["region"]
        assert set(chosen.values) == set(regions)


def test_requests_of_aws() -> None:
    _, requests = run(
        (EFS, FSX),
        CASES["lustre"].documents | CASES["efs-bursting"].documents,  # type: ignore[operator]
    )
    of_efs, of_fsx = requests[-2:]
    assert (of_efs.method, of_efs.url) == (
        "GET",
        "https://elasticfilesystem.eu-west-1.amazonaws.com/2015-02-01/file-systems?FileSystemId=fs-1",
    )
    assert "/eu-west-1/elasticfilesystem/aws4_request" in of_efs.headers["authorization"]
    assert (of_fsx.method, of_fsx.url) == ("POST", "https://fsx.eu-west-1.amazonaws.com/")
    assert json.loads(of_fsx.body) == {"FileSystemIds": ["fs-1"]}
    assert of_fsx.headers["x-amz-target"] == "AWSSimbaAPIService_v20180301.DescribeFileSystems"
    endpoints = {"efs": "https://vpce.example.com/x"}
    _, requests = run((EFS,), CASES["efs-bursting"].documents, endpoints=endpoints)
    assert requests[-1].url.startswith("https://vpce.example.com/x/2015-02-01/file-systems?")


def test_requests_of_others() -> None:
    _, requests = run((FILES,), CASES["files-v2"].documents)
    assert [each.url for each in requests[-2:]] == [
        f"https://management.azure.com/subscriptions/{SUBSCRIPTION}{LIST}?{VERSION}",
        f"https://management.azure.com{ACCOUNT}/a1/fileServices/default/shares/s1?{VERSION}",
    ]
    _, requests = run((FILESTORE,), CASES["filestore-zonal"].documents)
    url = "https://file.googleapis.com/v1/projects/my-project/locations/-/instances"
    assert requests[-1].url == url
    for request in requests:
        assert "S3CRET" not in request.url + str(request.body)


def test_a_storage_is_asked_for_once_wherever_it_is_mounted() -> None:
    second = msgspec.structs.replace(EFS, mount_point="/mnt/b", source="127.0.0.1:/")
    detected, requests = run((EFS, second), CASES["efs-bursting"].documents)
    assert sum("/file-systems" in each.url for each in requests) == 1
    entries = entries_of(detected)
    assert [each["match"]["mountpoint"] for each in entries] == ["/mnt/a", "/mnt/b"]


def test_pages_of_azure_and_google() -> None:
    documents = dict(azure("Premium_LRS"))
    accounts = documents.pop("/storageAccounts")["value"]
    following = f"https://management.azure.com{ACCOUNT}?page=2"
    answers = [{"value": accounts[:1], "nextLink": following}, {"value": accounts[1:]}]

    def answer(request: Request) -> Answer:
        is_list = urlsplit(request.url).path.endswith("/storageAccounts")
        return reply(answers.pop(0)) if is_list else answer_by(documents)(request)

    detected, _ = answered(exchanges_of("azure", now=NOW, storages=(FILES,)), answer)
    assert len(entries_of(detected)) == 1
    answers = [{"value": [], "nextLink": "https://evil.example.com/"}]
    detected, _ = answered(exchanges_of("azure", now=NOW, storages=(FILES,)), answer)
    assert [each.reason for each in detected.problems] == ["redirected"]


def denied(status: int, **headers: str) -> Response:
    return reply({"message": "S3CRET"}, status, headers)


@pytest.mark.parametrize(
    ("name", "end", "answer", "reason", "text"),
    [
        (
            "efs-bursting",
            "/file-systems",
            denied(403, **{"x-amzn-errortype": "AccessDeniedException:http://x"}),
            "denied",
            "elasticfilesystem:DescribeFileSystems was denied to role disksla; add it to",
        ),
        (
            "efs-bursting",
            "/file-systems",
            denied(404, **{"x-amzn-errortype": "FileSystemNotFound"}),
            "not_found",
            "there is no such file system in this account",
        ),
        (
            "lustre",
            "DescribeFileSystems",
            reply({"__type": "AccessDeniedException"}, 400),
            "denied",
            "fsx:DescribeFileSystems was denied to role disksla",
        ),
        (
            "lustre",
            "DescribeFileSystems",
            reply({"__type": "ThrottlingException"}, 400),
            "throttled",
            "repeated at the next run",
        ),
        ("lustre", "DescribeFileSystems", reply("junk", 400), "invalid", "HTTP 400"),
        ("lustre", "DescribeFileSystems", reply({"FileSystems": []}), "not_found", "no such file"),
        (
            "files-v2",
            "/storageAccounts",
            denied(403),
            "denied",
            "Microsoft.Storage/storageAccounts/read was denied",
        ),
        (
            "files-v2",
            "/shares/s1",
            denied(403),
            "denied",
            "Microsoft.Storage/storageAccounts/fileServices/shares/read was denied",
        ),
        (
            "files-v2",
            "/storageAccounts",
            reply({"value": []}),
            "not_found",
            "sees no such storage",
        ),
        (
            "filestore-zonal",
            "/instances",
            denied(403),
            "denied",
            "file.instances.list was denied to the service account; give it the role",
        ),
        ("yandex", "/filesystems/fhm1", denied(403), "denied", "give it the role compute.viewer"),
    ],
)
def test_failures(name: str, end: str, answer: Response, reason: str, text: str) -> None:
    case = CASES[name]
    detected, _ = run((case.storage,), {**case.documents, end: answer})
    [problem] = [each for each in detected.problems if text in each.message]
    assert (problem.source, problem.reason) == ("api", reason)
    assert "S3CRET" not in problem.message
    assert entries_of(detected) == []


def test_denial_costs_one_storage() -> None:
    refused = denied(403, **{"x-amzn-errortype": "AccessDeniedException"})
    documents = {"/file-systems": refused, **CASES["lustre"].documents}
    lustre = msgspec.structs.replace(FSX, mount_point="/mnt/l")
    detected, _ = run((EFS, lustre), documents)
    assert [each["match"] for each in entries_of(detected)] == [{"mountpoint": "/mnt/l"}]
    assert len(detected.problems) == 1
    assert detected.api is not None


def test_disks_that_are_denied_cost_no_storage() -> None:
    refused = reply("<a><Code>UnauthorizedOperation</Code></a>", 403)
    detected, _ = run((EFS,), {"/": refused, **CASES["efs-bursting"].documents})
    assert [each.reason for each in detected.problems] == ["denied"]
    assert len(entries_of(detected)) == 1


def test_role_that_is_missing_is_said_once() -> None:
    detected, _ = run((EFS,), {"/security-credentials/": reply(status=404)})
    [problem] = detected.problems
    assert "this instance has no role" in problem.message


def test_expired_credentials_are_fetched_again() -> None:
    answers = [denied(403, **{"x-amzn-errortype": "ExpiredTokenException"}), reply(efs())]

    def answer(request: Request) -> Answer:
        is_efs = "/file-systems" in request.url
        return answers.pop(0) if is_efs else answer_by({})(request)

    detected, _ = answered(exchanges_of("aws", now=NOW, storages=(EFS,)), answer)
    assert (len(entries_of(detected)), detected.problems) == (1, ())


def test_storage_that_does_not_answer_keeps_its_entry_and_the_old_time() -> None:
    def answer(request: Request) -> Answer:
        if "/file-systems" in request.url:
            return ExchangeError("timeout", "no answer")
        return answer_by({})(request)

    def written(detected: Detected, last: Any, now: dt.datetime) -> Any:
        return with_storage_entries(terms_file(detected, last, now), detected, last)

    good = written(run((EFS,), CASES["efs-bursting"].documents)[0], None, NOW)
    later = NOW + dt.timedelta(hours=1)
    failed, _ = answered(exchanges_of("aws", now=NOW, storages=(EFS,)), answer)
    kept = written(failed, good, later)
    assert (kept.disks, kept.as_of_timestamp_s, kept.tried_timestamp_s) == (
        good.disks,
        good.as_of_timestamp_s,
        later.timestamp(),
    )
    assert [each.reason for each in kept.problems] == ["timeout"]
    # Without an earlier entry, the rest of the file has the time of this attempt.
    assert written(failed, None, later).as_of_timestamp_s == later.timestamp()
    # A storage that is no longer mounted has no entry, also if the disks keep theirs.
    gone, _ = answered(exchanges_of("aws", now=NOW), lambda _: ExchangeError("timeout", "x"))
    assert written(gone, good, later).disks == ()
    other = msgspec.structs.replace(good, provider="azure")
    assert written(failed, other, later).disks == ()


def test_storages_of_others_are_not_asked_for() -> None:
    others = (FILES, VIRTIOFS, FileStorage("/mnt/x", "10.0.0.2:/vol1", "nfs"))
    netapp = at("NetApp Volumes", provider="gcp", source="10.0.0.2:/vol1")
    for provider, storages in (
        ("aws", others),
        ("vk", (EFS,)),
        ("gcp", (netapp,)),
        ("gcp", (EFS,)),
    ):
        detected, requests = answered(
            exchanges_of(provider, now=NOW, storages=storages), answer_by({})
        )
        _, without = answered(exchanges_of(provider, now=NOW), answer_by({}))
        assert requests == without
        assert entries_of(detected) == []


@pytest.mark.parametrize("source", ["10.0.0.3:/vol1", "10.0.0.2:/vol2", "10.0.0.2:/srv/nfs"])
def test_nfs_server_that_is_no_filestore(source: str) -> None:
    server = FileStorage("/mnt/x", source, "nfs")
    detected, _ = run((server,), CASES["filestore-zonal"].documents)
    assert entries_of(detected) == []
    assert not any("Filestore" in each.message for each in detected.problems)


@pytest.mark.parametrize(
    ("documents", "row"),
    [
        ({"/file-systems": efs(PerformanceMode="maxIO")}, "efs-max-io"),
        (
            {
                "DescribeFileSystems": fsx(
                    "OPENZFS",
                    64,
                    OpenZFSConfiguration={
                        "DeploymentType": "SINGLE_AZ_HA_2",
                        "ThroughputCapacity": 160,
                    },
                )
            },
            "fsx-openzfs-single-az-ha-2",
        ),
        (azure("Next_LRS"), "files-Next_LRS"),
    ],
)
def test_storage_that_the_catalogue_lacks_keeps_its_name(documents: Documents, row: str) -> None:
    storage = {"/file-systems": EFS, "DescribeFileSystems": FSX}.get(next(iter(documents)), FILES)
    detected, _ = run((storage,), documents)
    [entry] = entries_of(detected)
    assert entry["api_type"] == row
    assert CATALOG.find(f"{provider_of(storage)}.{row}") is None


def places(part: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    items = (
        part.items()
        if isinstance(part, dict)
        else enumerate(part if isinstance(part, list) else ())
    )
    found = [] if not path else [path]
    for key, value in items:
        found += places(value, (*path, key))
    return found


@pytest.mark.parametrize("name", CASES)
def test_odd_documents_cost_the_storage_only(name: str) -> None:
    """Whatever one field has, the run ends, and the daemon accepts the file."""
    case = CASES[name]
    for number, path in enumerate(places(case.documents)):
        for odd in some(ODD, number):
            documents: Any = copy.deepcopy(dict(case.documents))
            parent = documents
            for key in path[:-1]:
                parent = parent[key]
            parent[path[-1]] = odd
            detected, _ = run((case.storage,), documents)
            for entry in entries_of(detected):
                assert parse_size_bytes(entry.get("size", "1GiB"))
