"""Providers, machine types, and the catalogue: what is found has the limits of its type."""

import datetime as dt
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import msgspec
import pytest

from disksla.base.errors import DiskslaError
from disksla.base.units import GIB, MB, MIB, parse_bandwidth_bytes_per_second, parse_size_bytes
from disksla.clouds.detection import (
    PROVIDERS,
    azure,
    encode_terms_file,
    exchanges_of,
    google,
    terms_file,
)
from disksla.clouds.detection.findings import Detected
from disksla.clouds.detection.openstack import OpenstackCredentials, _Session
from disksla.clouds.http_client.exchange import Request, Response, _Token
from disksla.promise.catalogue import Catalog, Limits, Provision, Terms, derive_limits
from disksla.promise.catalogue.catalog import load_catalog
from disksla.promise.catalogue.rules import Provisioned, Sum
from support.exchanges import answered, reply

NOW = dt.datetime(2026, 11, 23, tzinfo=dt.UTC)
CATALOG = load_catalog()
CREDENTIALS = OpenstackCredentials("https://keystone/v3", "id", "secret")
SIZE_GIB = 1000
IOPS = 4321
MIB_PER_SECOND = 345
TOKEN = reply({"access_token": "t"}, headers={"metadata-flavor": "Google"})


def provisioned(terms: Terms) -> tuple[bool, bool]:
    """Return whether the customer chooses the IOPS, and the bandwidth."""

    def chosen(rule: Any) -> bool:
        parts = rule.of if isinstance(rule, Sum) else (rule,)
        return any(isinstance(part, Provisioned) for part in parts)

    return chosen(terms.read_iops), chosen(terms.read_bandwidth)


def api_types(provider: str) -> Iterator[tuple[str, Terms]]:
    """Yield the names that the API of a provider has, with their terms."""
    for row in (each for each in CATALOG.rows if not each.is_file_storage):
        if row.provider == provider:
            for name in row.api_names or (row.id.partition(".")[2],):
                if name.lower() == name or provider != "gcp":
                    yield name, row


def aws(api_type: str) -> Detected:
    """Return what is found where EC2 has every value, as it does for every type."""
    volume = (
        f"<volumeId>vol-1</volumeId><volumeType>{api_type}</volumeType><size>{SIZE_GIB}</size>"
        f"<iops>{IOPS}</iops><throughput>{MIB_PER_SECOND}</throughput>"
        "<attachmentSet><item><instanceId>i-1</instanceId></item></attachmentSet>"
    )
    keys = {"AccessKeyId": "a", "SecretAccessKey": "b", "Token": "c"}
    answers = [reply("t"), reply("i-1"), reply("eu-west-1"), reply("m5.large"), reply("r")]
    page = reply(f"<a><volumeSet><item>{volume}</item></volumeSet></a>")
    return answered(exchanges_of("aws", now=NOW), [*answers, reply(keys), page])[0]


def microsoft(api_type: str) -> Detected:
    managed = {"id": "/subscriptions/s/disks/d", "storageAccountType": api_type}
    storage = {"osDisk": {"managedDisk": managed}}
    metadata = {"vmSize": "Standard_D4s_v5", "storageProfile": storage}
    resource = {
        "sku": {"name": api_type},
        "properties": {
            "diskSizeGB": SIZE_GIB,
            "diskIOPSReadWrite": IOPS,
            "diskMBpsReadWrite": MIB_PER_SECOND,
            "tier": "P40",
            "burstingEnabled": True,
            "creationData": {"performancePlus": False},
        },
    }
    answers = [reply(metadata), TOKEN, reply(resource)]
    return answered(exchanges_of("azure", now=NOW), answers)[0]


def gcp(api_type: str) -> Detected:
    def answer(request: Request) -> Response:
        flavor = {"metadata-flavor": "Google"}
        if "token" in request.url:
            return TOKEN
        if request.source == "metadata":
            zone = {"name": "n", "zone": "projects/1/zones/z", "machineType": "m/n1-standard-4"}
            return reply(zone, headers=flavor)
        if "/disks/" in request.url:
            values = {"provisionedIops": str(IOPS), "provisionedThroughput": str(MIB_PER_SECOND)}
            return reply({"type": f"x/diskTypes/{api_type}", "sizeGb": str(SIZE_GIB), **values})
        local = {"type": "SCRATCH", "diskSizeGb": "375"} if api_type == "local-ssd" else {}
        source = {"deviceName": "d", "source": "https://x/projects/p/zones/z/disks/d"}
        return reply({"disks": [{**source, **local}]})

    return answered(exchanges_of("gcp", now=NOW), answer)[0]


def yandex(api_type: str) -> Detected:
    identity = reply("epd", headers={"metadata-flavor": "Google"})
    instance = reply({"bootDisk": {"diskId": "d"}})
    disk = reply({"typeId": api_type, "size": str(SIZE_GIB * GIB)})
    return answered(exchanges_of("yandex", now=NOW), [identity, TOKEN, instance, disk])[0]


def openstack(provider: str, api_type: str) -> Detected:
    endpoint = {"interface": "public", "url": "https://cinder"}
    catalog = {"token": {"catalog": [{"type": "volumev3", "endpoints": [endpoint]}]}}
    volume = {"id": "a1", "size": SIZE_GIB, "volume_type": api_type}
    attached = {**volume, "attachments": [{"server_id": "b2"}]}
    answers = [
        reply({"uuid": "b2"}),
        reply(catalog, 201, {"x-subject-token": "t"}),
        reply({"volumes": [attached]}),
    ]
    return answered(exchanges_of(provider, now=NOW, credentials=CREDENTIALS), answers)[0]


DETECTORS: dict[str, Callable[[str], Detected]] = {
    "aws": aws,
    "azure": microsoft,
    "gcp": gcp,
    "yandex": yandex,
    **{name: partial(openstack, name) for name in ("vk", "ovh", "huawei")},
}


def limits_of(detected: Detected, catalog: Catalog) -> Limits:
    """Return the limits that follow from the file alone."""
    assert detected.problems == ()
    [entry] = msgspec.json.decode(encode_terms_file(terms_file(detected, None, NOW)))["disks"]
    rate = entry.get("bandwidth")
    return derive_limits(
        catalog[f"{detected.provider}.{entry['api_type']}"],
        parse_size_bytes(entry["size"]),
        Provision(
            entry.get("iops"),
            None if rate is None else parse_bandwidth_bytes_per_second(rate),
            entry.get("options", {}),
        ),
    )


@pytest.mark.parametrize(
    ("provider", "api_type", "terms"),
    [
        pytest.param(provider, name, row, id=f"{provider}.{name}")
        for provider in DETECTORS
        for name, row in api_types(provider)
    ],
)
def test_file_gives_the_limits_of_the_type(provider: str, api_type: str, terms: Terms) -> None:
    has_iops, has_rate = provisioned(terms)
    unit = MB if provider == "azure" else MIB
    options = {"tier": "P40", "on_demand_burst": "on"} if terms.id == "azure.premium-ssd" else {}
    size_gib = 375 if api_type == "local-ssd" else SIZE_GIB
    expected = derive_limits(
        terms,
        size_gib * GIB,
        Provision(
            IOPS if has_iops else None, MIB_PER_SECOND * unit if has_rate else None, options
        ),
    )
    assert limits_of(DETECTORS[provider](api_type), CATALOG) == expected
    if has_iops:
        assert expected.rates.read_iops == IOPS


def test_types_with_provisioned_values_are_those_of_the_catalogue() -> None:
    """The metadata lack these values; limits of the catalogue's defaults would be wrong."""
    disks = (row for row in CATALOG.rows if not row.is_file_storage)
    chosen = {row.id: row for row in disks if any(provisioned(row))}
    of_azure = {n for row in chosen.values() if row.provider == "azure" for n in row.api_names}
    assert of_azure == azure.PROVISIONED
    of_google = {
        name: tuple(
            what
            for what, is_chosen in zip(("iops", "throughput"), provisioned(row), strict=True)
            if is_chosen
        )
        for row in chosen.values()
        if row.provider == "gcp"
        for name in row.api_names
        if name.islower()
    }
    assert of_google == google.PROVISIONED
    for row in (each for each in CATALOG.rows if each.provider == "gcp"):
        for name in row.api_names:
            assert google.has_provisioned_values(name) == any(provisioned(row)), name


def test_value_beyond_the_catalogue_counts() -> None:
    assert limits_of(aws("gp3"), CATALOG).rates.read_iops == IOPS
    beyond = derive_limits(CATALOG["aws.gp3"], GIB, Provision(10**6))
    assert beyond.rates.read_iops == 10**6


def test_every_provider_begins_with_its_own_metadata() -> None:
    hosts = {}
    for provider in PROVIDERS:
        request = next(exchanges_of(provider, now=NOW))
        assert request.source == "metadata"
        hosts[provider] = request.url.split("/")[2]
    assert hosts.pop("alibaba") == "100.100.100.200"
    assert set(hosts.values()) == {"169.254.169.254"}


def test_machine_types() -> None:
    found, requests = answered(
        exchanges_of("alibaba", now=NOW), [reply("token"), reply("ecs.g7.large\n")]
    )
    assert (found.machine_type, found.problems) == ("ecs.g7.large", ())
    assert requests[1].headers == {"x-aliyun-ecs-metadata-token": "token"}
    found, requests = answered(
        exchanges_of("oracle", now=NOW), [reply({"shape": "VM.Standard.E4.Flex"})]
    )
    assert (found.machine_type, found.problems) == ("VM.Standard.E4.Flex", ())
    assert requests[0].headers == {"authorization": "Bearer Oracle"}


@pytest.mark.parametrize("answer", [reply({"shape": "a b"}), reply("junk"), reply("", 404)])
def test_answer_of_another_provider(answer: Response) -> None:
    for provider in ("alibaba", "oracle"):
        answers = [reply("token"), answer] if provider == "alibaba" else [answer]
        if provider == "alibaba" and answer.body == b"junk":
            continue  # a possible name
        [problem] = answered(exchanges_of(provider, now=NOW), answers)[0].problems
        assert problem.source == "metadata"


def test_records_with_tokens_do_not_show_them() -> None:
    shown = [_Token("S3CRET"), _Session("S3CRET", "https://cinder")]
    assert "S3CRET" not in repr(shown)


def test_type_that_the_catalogue_lacks_keeps_its_name() -> None:
    for detected in (aws("gp9"), microsoft("PremiumV9_LRS"), gcp("pd-next"), yandex("network-9")):
        [entry] = terms_file(detected, None, NOW).disks
        assert entry.api_type in {"gp9", "PremiumV9_LRS", "pd-next", "network-9"}
        assert (entry.iops, entry.bytes_per_second, entry.options) == (None, None, {})
        with pytest.raises(DiskslaError, match="unknown terms"):
            limits_of(detected, CATALOG)
