"""Documents of clouds, with one field after another missing, empty or of another kind.

Whatever a cloud writes into one field, the disks that the field is not about keep their terms,
and what is no longer known is said. The documents are those of the other tests of this folder.
"""

import copy
import json
from collections.abc import Iterator
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from disksla.clouds.detection import encode_terms_file, terms_file
from disksla.clouds.detection.aws import detect_aws
from disksla.clouds.detection.azure import detect_azure
from disksla.clouds.detection.findings import Detected
from support.cloud_documents import AZURE, CLOUDS, NOW, Path, run
from support.examples import some
from support.exchanges import answered, reply
from support.machine_facts import terms_file as read_file

MISSING = object()
ODD: tuple[Any, ...] = (
    MISSING,
    None,
    "",
    "No-Such.Value",
    5,
    -1,
    True,
    1.5,
    [],
    {},
    [None],
    ["x"],
    {"x": None},
)


def paths(document: Any, so_far: Path = ()) -> Iterator[Path]:
    """Yield the places of all fields and items of a document."""
    fields: Iterator[tuple[str | int, Any]] = iter(())
    if isinstance(document, dict):
        fields = iter(document.items())
    elif isinstance(document, list):
        fields = iter(enumerate(document))
    for name, value in fields:
        yield (*so_far, name)
        yield from paths(value, (*so_far, name))


def mutated(document: Any, path: Path, value: Any) -> Any:
    """Return a document with another value at a place."""
    document = copy.deepcopy(document)
    parent = document
    for name in path[:-1]:
        parent = parent[name]
    if value is MISSING:
        del parent[path[-1]]
    else:
        parent[path[-1]] = value
    return document


def entries(detected: Detected) -> dict[str, Any]:
    """Return what the daemon reads of each disk."""
    data = encode_terms_file(terms_file(detected, None, NOW))
    read_file(data.decode())
    disks = json.loads(data)["disks"]
    return {next(iter(disk["match"].values())): disk for disk in disks}


def value_at(document: Any, path: Path) -> Any:
    return value_at(document[path[0]], path[1:]) if path else document


def is_valid(path: Path, before: Any, after: Any) -> bool:
    """Return whether a document still is what a cloud may say of fewer disks."""
    is_item = isinstance(path[-1], int) and after is MISSING
    is_empty = isinstance(before, list) and (after is MISSING or after in (None, "", []))
    is_other_kind_of_volume = path in {("spec",), ("spec", "csi")}
    return is_item or is_empty or is_other_kind_of_volume or "attachments" in path


@pytest.mark.parametrize("name", CLOUDS)
def test_an_odd_field_costs_no_other_disk_and_is_said(name: str) -> None:
    cloud = CLOUDS[name]
    usual = run(cloud, cloud.documents)
    assert usual.problems == ()
    before = entries(usual)
    assert len(before) == {"kubernetes": 2, "oracle": 0}.get(name, 3)
    for document, content in cloud.documents.items():
        for number, path in enumerate(paths(content)):
            for value in some(ODD, number):
                where = f"{document} {path} = {'missing' if value is MISSING else value!r}"
                documents = {**cloud.documents, document: mutated(content, path, value)}
                found = run(cloud, documents)
                after = entries(found)
                disk = cloud.disk_of(document, path)
                if disk is not None:
                    others = {each: before[each] for each in before if each != disk}
                    assert {each: after.get(each) for each in others} == others, where
                    assert found.machine_type == usual.machine_type, where
                if found.problems or is_valid(path, value_at(content, path), value):
                    continue
                # Classes of Kubernetes are deleted while there are volumes of them.
                is_kept = len(found.volumes if usual.volumes else after) >= len(before)
                assert is_kept, where
                assert (found.machine_type is None) == (usual.machine_type is None), where


AWS_VOLUMES = "".join(
    f"<item><volumeId>vol-{index}</volumeId><volumeType>gp3</volumeType><size>100</size>"
    "<iops>3000</iops><throughput>125</throughput><attachmentSet><item>"
    "<instanceId>i-0abc</instanceId></item></attachmentSet></item>"
    for index in range(3)
)
AWS_PAGE = (
    f"<DescribeVolumesResponse><volumeSet>{AWS_VOLUMES}</volumeSet></DescribeVolumesResponse>"
)


def of_aws(page: str, machine_type: str = "m5.large") -> Detected:
    keys = reply({"AccessKeyId": "a", "SecretAccessKey": "b", "Token": "c"})
    metadata = [reply("token"), reply("i-0abc"), reply("eu-central-1"), reply(machine_type)]
    return answered(detect_aws(None, NOW), [*metadata, reply("role"), keys, reply(page)])[0]


def odd_pages() -> Iterator[tuple[list[str], str]]:
    """Yield the page with one element changed, after the names from that element upwards."""
    for index in range(1, len(list(ET.fromstring(AWS_PAGE).iter()))):
        for text in (None, "", "No-Such.Value", "-1", "0"):
            root = ET.fromstring(AWS_PAGE)
            above = {child: parent for parent in root.iter() for child in parent}
            element = list(root.iter())[index]
            chain = [element]
            while chain[-1] in above:
                chain.append(above[chain[-1]])
            if text is None:
                above[element].remove(element)
            for child in list(element):
                element.remove(child)
            element.text = text
            yield [each.tag for each in chain], ET.tostring(root, "unicode")


def test_an_odd_element_of_aws_costs_no_other_volume_and_is_said() -> None:
    before = entries(of_aws(AWS_PAGE))
    assert len(before) == 3
    for names, page in odd_pages():
        found = of_aws(page)
        after = entries(found)
        if "item" in names:
            assert sum(after.get(each) == before[each] for each in before) >= 2, page
        is_detached = "attachmentSet" in names or names[0] in {"item", "volumeSet"}
        assert found.problems or is_detached or len(after) == len(before), page


def test_machine_type_of_aws_that_is_odd_costs_no_volume() -> None:
    found = of_aws(AWS_PAGE, "m5 large")
    assert len(entries(found)) == 3
    assert (found.machine_type, [each.source for each in found.problems]) == (None, ["metadata"])


def test_type_of_azure_that_the_metadata_lack_is_that_of_the_api() -> None:
    """And is kept while the API does not answer."""
    compute = copy.deepcopy(AZURE.documents["compute"])
    compute["storageProfile"]["osDisk"]["managedDisk"]["storageAccountType"] = ""
    found = run(AZURE, {**AZURE.documents, "compute": compute})
    assert found.problems == ()
    first = terms_file(found, None, NOW)
    assert {entry.match.volume: entry.api_type for entry in first.disks}["os"] == "Premium_LRS"
    failed = run(AZURE, {"compute": compute})
    assert "it has no type of disk os" in failed.problems[-2].message
    assert terms_file(failed, first, NOW).disks == first.disks
    assert "os" not in {entry.match.volume for entry in terms_file(failed, None, NOW).disks}


@pytest.mark.parametrize("environment", ["AzureUSGovernmentCloud", "AzureChinaCloud"])
def test_cloud_of_azure_that_is_not_public_has_its_own_address(environment: str) -> None:
    host = {
        "AzureUSGovernmentCloud": "management.usgovcloudapi.net",
        "AzureChinaCloud": "management.chinacloudapi.cn",
    }[environment]
    compute = {**AZURE.documents["compute"], "azEnvironment": environment}
    answers = [reply(compute), reply({"access_token": "t"}), *[reply(status=403)] * 3]
    for endpoint in (None, f"https://{host}", "https://private.example"):
        _, requests = answered(detect_azure(endpoint), answers)
        assert requests[1].url.endswith(f"resource=https%3A%2F%2F{host}%2F")
        expected = endpoint or f"https://{host}"
        assert all(each.url.startswith(f"{expected}/subscriptions/") for each in requests[2:])


def test_cloud_of_azure_that_is_not_known_is_named() -> None:
    compute = {**AZURE.documents["compute"], "azEnvironment": "AzureMoonCloud"}
    found, _ = answered(detect_azure(None), [reply(compute)])
    assert "in the cloud 'AzureMoonCloud' is not known; give it by" in found.problems[0].message
    assert found.metadata is not None
    answers = [reply(compute), reply({"access_token": "t"}), *[reply(status=403)] * 3]
    _, requests = answered(detect_azure("https://arm.moon"), answers)
    assert requests[1].url.endswith("resource=https%3A%2F%2Farm.moon%2F")


@pytest.mark.parametrize(
    ("region", "host"),
    [
        ("eu-central-1", "amazonaws.com"),
        ("us-gov-west-1", "amazonaws.com"),
        ("cn-north-1", "amazonaws.com.cn"),
        ("eusc-de-east-1", "amazonaws.eu"),
        ("us-isob-east-1", "sc2s.sgov.gov"),
    ],
)
def test_partition_of_aws_has_its_own_domain(region: str, host: str) -> None:
    answers = [reply("token"), reply("i-0abc"), reply(region), reply("m5.large"), reply("role")]
    keys = reply({"AccessKeyId": "a", "SecretAccessKey": "b", "Token": "c"})
    _, requests = answered(detect_aws(None, NOW), [*answers, keys, reply(AWS_PAGE)])
    assert requests[-1].url == f"https://ec2.{region}.{host}/"
