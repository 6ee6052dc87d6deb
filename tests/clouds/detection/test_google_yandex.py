"""What is asked of Google Cloud and Yandex Cloud, and how their answers are read.

Answers follow the samples of their documents.
"""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from disksla.base.units import GIB, MIB
from disksla.clouds.detection.findings import CloudDisk, Detected
from disksla.clouds.detection.google import detect_google
from disksla.clouds.detection.yandex import detect_yandex
from disksla.clouds.http_client.exchange import Request, Response
from support.exchanges import Answer, answered, disks_of, reply

FLAVOR = {"metadata-flavor": "Google"}
ZONE = "projects/123/zones/europe-west3-a"
DISKS = (
    {"deviceName": "boot", "index": 0, "interface": "SCSI", "type": "PERSISTENT-BALANCED"},
    {"deviceName": "data", "index": 1, "interface": "NVME", "type": "HYPERDISK-BALANCED"},
    {"deviceName": "local-ssd-0", "index": 2, "interface": "NVME", "type": "LOCAL-SSD"},
)


def metadata(body: Any, status: int = 200) -> Response:
    return reply(body, status, FLAVOR)


def instance(*disks: dict[str, Any], **values: Any) -> Response:
    return metadata(
        {
            "name": "db-1",
            "zone": ZONE,
            "machineType": "projects/123/machineTypes/n2-standard-8",
            "disks": disks,
            **values,
        }
    )


def attached(name: str, **values: Any) -> dict[str, Any]:
    url = "https://www.googleapis.com/compute/v1"
    return {
        "deviceName": name,
        "type": "PERSISTENT",
        "source": f"{url}/projects/p/zones/z/disks/{name}",
        **values,
    }


def disk(kind: str, **values: Any) -> Response:
    return reply({"type": f"https://x/projects/p/zones/z/diskTypes/{kind}", **values})


TOKEN = metadata({"access_token": "S3CRET", "expires_in": 3599, "token_type": "Bearer"})


def google(*answers: Answer) -> tuple[Detected, list[Request]]:
    found, requests = answered(detect_google(None), answers)
    assert not any("S3CRET" in problem.message for problem in found.problems)
    return found, requests


def yandex(*answers: Answer) -> tuple[Detected, list[Request]]:
    found, requests = answered(detect_yandex(None), answers)
    assert not any("S3CRET" in problem.message for problem in found.problems)
    return found, requests


def test_google_metadata_alone() -> None:
    found, requests = google(instance(*DISKS), metadata("", 404))
    assert disks_of(found.metadata) == (
        CloudDisk("boot", "PERSISTENT-BALANCED"),
        CloudDisk("data", "HYPERDISK-BALANCED"),
        CloudDisk("local-ssd-0", "LOCAL-SSD"),
    )
    assert found.metadata is not None
    assert found.metadata.incomplete == {"data"}
    assert found.machine_type == "n2-standard-8"
    assert [(each.source, each.reason) for each in found.problems] == [
        ("api", "no_credentials"),
        ("metadata", "not_found"),
    ]
    assert requests[0].url == (
        "http://169.254.169.254/computeMetadata/v1/instance/?recursive=true"
    )
    assert requests[0].headers == {"host": "metadata.google.internal", "metadata-flavor": "Google"}


def test_google_api() -> None:
    listing = {
        "disks": [
            attached("boot"),
            attached("data"),
            attached("local-ssd-0", type="SCRATCH", source=None, diskSizeGb="375"),
            attached("odd", source="projects/p/regions/r/disks/odd-1"),
        ]
    }
    found, requests = google(
        instance(*DISKS),
        TOKEN,
        reply(listing),
        disk("pd-balanced", sizeGb="100", provisionedIops="9"),
        disk(
            "hyperdisk-balanced", sizeGb="500", provisionedIops="6000", provisionedThroughput="300"
        ),
        disk("hyperdisk-next", sizeGb="10", provisionedThroughput="40"),
    )
    assert found.problems == ()
    assert disks_of(found.api) == (
        CloudDisk("boot", "pd-balanced", 100 * GIB),
        CloudDisk("data", "hyperdisk-balanced", 500 * GIB, 6000, 300 * MIB),
        CloudDisk("local-ssd-0", "SCRATCH", 375 * GIB),
        CloudDisk("odd", "hyperdisk-next", 10 * GIB, None, 40 * MIB),
    )
    base = "https://compute.googleapis.com/compute/v1"
    assert [each.url for each in requests[2:]] == [
        f"{base}/{ZONE}/instances/db-1",
        f"{base}/projects/p/zones/z/disks/boot",
        f"{base}/projects/p/zones/z/disks/data",
        f"{base}/projects/p/regions/r/disks/odd-1",
    ]
    assert {each.headers["authorization"] for each in requests[2:]} == {"Bearer S3CRET"}


@pytest.mark.parametrize(
    ("answers", "source", "reason", "text"),
    [
        ([reply({"name": "x"})], "metadata", "invalid", "not that of this provider"),
        ([reply(status=404)], "metadata", "not_found", "not that of this provider"),
        ([metadata("junk")], "metadata", "invalid", ""),
        ([instance(zone="zones/z")], "metadata", "invalid", "no name or no zone"),
        ([instance(name="a/../b c")], "metadata", "invalid", "no name or no zone"),
        ([instance(), metadata("", 500)], "api", "unreachable", ""),
        ([instance(), metadata({"access_token": ""})], "api", "invalid", ""),
        (
            [instance(), TOKEN, reply(status=403)],
            "api",
            "denied",
            "compute.instances.get was denied",
        ),
        ([instance(), TOKEN, reply({"disks": [attached("a b")]})], "api", "invalid", "no name"),
        (
            [instance(), TOKEN, reply({"disks": [attached("a", source="/x")]})],
            "api",
            "invalid",
            "source",
        ),
        (
            [instance(), TOKEN, reply({"disks": [attached("a")]}), reply(status=403)],
            "api",
            "denied",
            "compute.disks.get was denied",
        ),
        (
            [instance(), TOKEN, reply({"disks": [attached("a")]}), disk("a b")],
            "api",
            "invalid",
            "type",
        ),
        (
            [instance(), TOKEN, reply({"disks": [attached("a")]}), disk("pd-extreme")],
            "api",
            "not_found",
            "a has no provisioned iops",
        ),
    ],
)
def test_google_failures(answers: list[Answer], source: str, reason: str, text: str) -> None:
    found, _ = google(*answers)
    problem = found.problems[0]
    assert (problem.source, problem.reason) == (source, reason)
    assert text in problem.message


INSTANCE = {
    "id": "epd1",
    "platformId": "standard-v3",
    "resources": {"cores": "4", "memory": "8589934592"},
    "bootDisk": {"mode": "READ_WRITE", "deviceName": "epdboot", "diskId": "epdboot"},
    "secondaryDisks": [{"deviceName": "data", "diskId": "epddata"}, {"diskId": "epdlog"}],
}


def test_yandex() -> None:
    found, requests = yandex(
        metadata("epd1\n"),
        TOKEN,
        reply(INSTANCE),
        reply({"id": "epdboot", "typeId": "network-hdd", "size": "10737418240"}),
        reply({"id": "epddata", "typeId": "network-ssd", "size": "107374182400"}),
        reply({"id": "epdlog", "typeId": "network-ssd-nonreplicated"}),
    )
    assert found.problems == ()
    assert disks_of(found.api) == (
        CloudDisk("epdboot", "network-hdd", 10 * GIB),
        CloudDisk("data", "network-ssd", 100 * GIB),
        CloudDisk("epdlog", "network-ssd-nonreplicated"),
    )
    base = "https://compute.api.cloud.yandex.net/compute/v1"
    assert [each.url for each in requests] == [
        "http://169.254.169.254/computeMetadata/v1/instance/id",
        "http://169.254.169.254/computeMetadata/v1/instance/service-accounts/default/token",
        f"{base}/instances/epd1",
        *(f"{base}/disks/{name}" for name in ("epdboot", "epddata", "epdlog")),
    ]


@pytest.mark.parametrize(
    ("answers", "source", "reason", "text"),
    [
        ([metadata("a/b")], "metadata", "invalid", "not an id"),
        ([reply("epd1")], "metadata", "invalid", "not that of this provider"),
        ([metadata("epd1"), metadata("", 404)], "api", "no_credentials", "compute.viewer"),
        ([metadata("epd1"), TOKEN, reply(status=403)], "api", "denied", "role compute.viewer"),
        ([metadata("epd1"), TOKEN, reply({})], "api", "invalid", ""),
        (
            [metadata("epd1"), TOKEN, reply({"bootDisk": {"diskId": "a/b"}})],
            "api",
            "invalid",
            "no id",
        ),
        (
            [metadata("epd1"), TOKEN, reply({"bootDisk": {"diskId": "a"}}), reply({"typeId": ""})],
            "api",
            "invalid",
            "type",
        ),
    ],
)
def test_yandex_failures(answers: list[Answer], source: str, reason: str, text: str) -> None:
    found, _ = yandex(*answers)
    [problem] = found.problems
    assert (problem.source, problem.reason) == (source, reason)
    assert text in problem.message


@given(st.binary(max_size=200), st.integers(0, 3))
def test_any_answer_is_disks_or_a_problem(data: bytes, good: int) -> None:
    bodies = [b"epd1", b'{"access_token": "x"}', b'{"bootDisk": {"diskId": "a"}}']
    for detector in (detect_yandex, detect_google):
        count = iter(range(100))

        def answer(_: Request, count: Any = count) -> Response:
            index = next(count)
            return metadata(bodies[index] if index < min(good, 3) else data)

        found, _ = answered(detector(None), answer)
        assert found.problems or found.api is not None
