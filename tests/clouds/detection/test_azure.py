"""What is asked of Azure, and how its answers are read. Answers follow its samples."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from disksla.base.units import GIB, MB
from disksla.clouds.detection.azure import detect_azure
from disksla.clouds.detection.findings import CloudDisk, Detected
from disksla.clouds.http_client.exchange import Request
from support.exchanges import Answer, answered, disks_of, reply

SUBSCRIPTION = "/subscriptions/0-0/resourceGroups/rg/providers/Microsoft.Compute/disks"


def attached(kind: str, lun: str | None = None, **values: Any) -> dict[str, Any]:
    name = f"disk-{lun or 'os'}"
    return {
        "diskSizeGB": "1024",
        "caching": "None",
        "name": name,
        "managedDisk": {"id": f"{SUBSCRIPTION}/{name}", "storageAccountType": kind},
        **({"lun": lun} if lun is not None else {}),
        **values,
    }


def compute(*data: dict[str, Any], **system: Any) -> dict[str, Any]:
    return {
        "vmSize": "Standard_D4s_v5",
        "location": "westus",
        "storageProfile": {
            "osDisk": attached("Premium_LRS", caching="ReadWrite", diskSizeGB="30", **system),
            "dataDisks": list(data),
            "resourceDisk": {"size": "4096"},
        },
    }


def resource(kind: str, **properties: Any) -> Any:
    return reply({"sku": {"name": kind}, "properties": {"diskState": "Attached", **properties}})


TOKEN = reply({"access_token": "S3CRET", "expires_in": "86399"})
OS = resource("Premium_LRS", diskSizeGB=30, tier="P4", diskIOPSReadWrite=120)
OS_DISK = CloudDisk("os", "Premium_LRS", 30 * GIB, caching="read-write", options={"tier": "P4"})


def run(*answers: Answer, endpoint: str | None = None) -> tuple[Detected, list[Request]]:
    found, requests = answered(detect_azure(endpoint), answers)
    assert not any("S3CRET" in problem.message for problem in found.problems)
    return found, requests


def test_metadata_alone() -> None:
    metadata = compute(
        attached("StandardSSD_LRS", "0", caching="ReadOnly"),
        attached("PremiumV2_LRS", "1", opsPerSecondThrottle="", bytesPerSecondThrottle=""),
        attached(
            "UltraSSD_LRS", "2", opsPerSecondThrottle="65280", bytesPerSecondThrottle="979202048"
        ),
        attached("Premium_LRS", "3", opsPerSecondThrottle="65280", diskSizeGB=""),
    )
    found, requests = run(reply(metadata), reply({"error": "invalid_request"}, 400))
    assert disks_of(found.metadata) == (
        CloudDisk("os", "Premium_LRS", 30 * GIB, caching="read-write"),
        CloudDisk("0", "StandardSSD_LRS", 1024 * GIB, caching="read-only"),
        CloudDisk("1", "PremiumV2_LRS", 1024 * GIB, caching="none"),
        CloudDisk("2", "UltraSSD_LRS", 1024 * GIB, 65280, 979202048, "none"),
        CloudDisk("3", "Premium_LRS", None, caching="none"),
    )
    assert found.metadata is not None
    assert found.metadata.incomplete == {"1"}
    assert found.machine_type == "Standard_D4s_v5"
    assert [(each.source, each.reason) for each in found.problems] == [
        ("api", "no_credentials"),
        ("metadata", "not_found"),
    ]
    assert "give it one with the role Reader" in found.problems[0].message
    assert {each.headers["metadata"] for each in requests} == {"true"}
    assert [each.url for each in requests] == [
        "http://169.254.169.254/metadata/instance/compute?api-version=2021-12-13",
        (
            "http://169.254.169.254/metadata/identity/oauth2/token?api-version=2018-02-01"
            "&resource=https%3A%2F%2Fmanagement.azure.com%2F"
        ),
    ]


def test_disks_on_the_host_and_in_storage_accounts_are_left_out() -> None:
    blob = attached("Premium_LRS", "0", managedDisk=None, vhd={"uri": "x"})
    metadata = compute(blob, diffDiskSettings={"option": "Local"})
    found, _ = run(reply(metadata), TOKEN)
    assert disks_of(found.metadata) == ()
    assert found.api is not None


def test_api() -> None:
    metadata = compute(attached("PremiumV2_LRS", "0"), attached("Premium_LRS", "1"))
    v2 = resource("PremiumV2_LRS", diskSizeGB=1024, diskIOPSReadWrite=9000, diskMBpsReadWrite=400)
    premium = resource(
        "Premium_LRS",
        tier="P50",
        burstingEnabled=True,
        creationData={"createOption": "Empty", "performancePlus": True},
    )
    found, requests = run(reply(metadata), TOKEN, OS, v2, premium)
    assert found.problems == ()
    assert disks_of(found.api) == (
        OS_DISK,
        CloudDisk("0", "PremiumV2_LRS", 1024 * GIB, 9000, 400 * MB, "none"),
        CloudDisk(
            "1",
            "Premium_LRS",
            1024 * GIB,
            caching="none",
            options={"tier": "P50", "performance_plus": "on", "on_demand_burst": "on"},
        ),
    )
    assert [each.url for each in requests[2:]] == [
        f"https://management.azure.com{SUBSCRIPTION}/disk-{name}?api-version=2024-03-02"
        for name in ("os", "0", "1")
    ]
    assert {each.headers["authorization"] for each in requests[2:]} == {"Bearer S3CRET"}


def test_options_that_a_type_does_not_have_are_left_out() -> None:
    found, _ = run(
        reply(compute(attached("StandardSSD_LRS", "0"))),
        *(TOKEN, OS, resource("StandardSSD_LRS", tier="E30", burstingEnabled=True)),
        endpoint="http://127.0.0.1:1",
    )
    assert disks_of(found.api)[1].options == {}


def test_disks_of_the_metadata_that_are_odd_cost_no_others() -> None:
    odd = [attached("Premium_LRS", "x"), attached("Premium_LRS"), attached("P S", "1")]
    found, _ = run(reply(compute(*odd)), reply(status=404))
    assert found.metadata is not None
    assert [disk.volume for disk in found.metadata.disks] == ["os", "1"]
    assert found.metadata.incomplete == {"1"}
    assert [each.message.partition("failed: ")[2] for each in found.problems[1:]] == [
        "a disk has no LUN",
        "a disk has no LUN",
        "it has no type of disk 1",
    ]


def test_denied_disk_is_named() -> None:
    found, _ = run(
        reply(compute(attached("Premium_LRS", "0"))), TOKEN, OS, reply({"error": {}}, 403)
    )
    [problem] = found.problems
    assert (problem.source, problem.reason) == ("api", "denied")
    assert "Microsoft.Compute/disks/read was denied" in problem.message
    assert f"on {SUBSCRIPTION}/disk-0" in problem.message
    assert disks_of(found.api) == (OS_DISK,)


def test_token_that_expires_is_fetched_again() -> None:
    found, _ = run(reply(compute()), TOKEN, reply(status=401), TOKEN, OS)
    assert found.api is not None
    assert found.problems == ()


@pytest.mark.parametrize(
    ("answers", "source", "reason"),
    [
        ([reply(status=404)], "metadata", "not_found"),
        ([reply("<html>")], "metadata", "invalid"),
        ([reply({"storageProfile": {}})], "metadata", "invalid"),
        ([reply(compute()), reply({"access_token": "a\nb"})], "api", "invalid"),
        ([reply(compute()), reply(status=500)], "api", "unreachable"),
        ([reply(compute()), TOKEN, reply("junk")], "api", "invalid"),
        ([reply(compute()), TOKEN, resource("a b")], "api", "invalid"),
        (
            [reply(compute()), TOKEN, resource("UltraSSD_LRS", diskIOPSReadWrite=0)],
            "api",
            "not_found",
        ),
        (
            [reply(compute(managedDisk={"id": "/etc", "storageAccountType": "x"})), TOKEN],
            "api",
            "invalid",
        ),
        (
            [
                reply(
                    compute(managedDisk={"id": "/subscriptions/@evil?", "storageAccountType": "x"})
                ),
                TOKEN,
            ],
            "api",
            "invalid",
        ),
    ],
)
def test_failures(answers: list[Answer], source: str, reason: str) -> None:
    found, _ = run(*answers)
    assert (found.problems[0].source, found.problems[0].reason) == (source, reason)


@given(st.binary(max_size=200), st.integers(0, 2))
def test_any_answer_is_disks_or_a_problem(data: bytes, good: int) -> None:
    answers = iter([*[reply(compute()), TOKEN][:good], *[reply(data)] * 3])
    found, _ = answered(detect_azure(None), lambda _: next(answers))
    assert found.problems or found.api is not None
