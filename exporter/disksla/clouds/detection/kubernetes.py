"""Kubernetes: which volumes of this node are which PersistentVolumes, and how they were ordered.

The mount table of the node has the names of its PersistentVolumes, so each is requested by name,
and then the classes that they name: a list would have the volumes of all nodes. The parameters of
a class are what was ordered when a volume was created; a VolumeAttributesClass is what it was
changed to. The provider's API has the present state, and comes first. Sources: the API reference
of Kubernetes (PersistentVolume, StorageClass, VolumeAttributesClass).
"""

from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

import msgspec

from disksla.clouds import http_client as http
from disksla.clouds.detection import findings
from disksla.clouds.detection.csi_parameters import (
    DEFAULTS,
    Parameters,
    follows_size,
    ordered_as,
    with_changes,
)
from disksla.clouds.detection.findings import CloudDisk, Detected, Listing

T = TypeVar("T")

_MOST_VOLUMES = 1000  # more than a node can attach
_LONGEST_TEXT = 1024
_NAME = "[a-z0-9.-]"
_CORE = "/api/v1"
_STORAGE = "/apis/storage.k8s.io/v1"
_PROVISIONED_BY = "pv.kubernetes.io/provisioned-by"


class Account(msgspec.Struct, frozen=True):
    """Where the API is, and the service account of this pod."""

    endpoint: str
    token: str
    authority: str  # file of the certificates that the API server has to be signed with

    def __repr__(self) -> str:
        """Return the address only."""
        return f"Account({self.endpoint!r})"


class _Metadata(msgspec.Struct, frozen=True, rename="camel"):
    annotations: Mapping[str, str] = {}
    managed_fields: tuple[dict[str, Any], ...] = ()
    """Each: which fields of the object a program wrote last."""


class _Csi(msgspec.Struct, frozen=True, rename="camel"):
    driver: str
    volume_handle: str
    volume_attributes: Mapping[str, str] = {}


class _Claim(msgspec.Struct, frozen=True):
    name: str | None = None
    namespace: str | None = None


class _Spec(msgspec.Struct, frozen=True, rename="camel"):
    csi: _Csi | None = None
    capacity: Mapping[str, str] = {}
    claim_ref: _Claim | None = None
    storage_class_name: str = ""
    volume_attributes_class_name: str = ""


class _PersistentVolume(msgspec.Struct, frozen=True):
    spec: _Spec
    metadata: _Metadata = _Metadata()


class _Class(msgspec.Struct, frozen=True, rename="camel"):
    """A StorageClass or a VolumeAttributesClass."""

    allow_volume_expansion: bool = False
    parameters: Mapping[str, str] | None = None


class _Resource(msgspec.Struct, frozen=True):
    """A kind of objects of the API."""

    kind: str
    path: str
    plural: str


_VOLUMES = _Resource("PersistentVolume", _CORE, "persistentvolumes")
_STORAGE_CLASSES = _Resource("StorageClass", _STORAGE, "storageclasses")
_ATTRIBUTES_CLASSES = _Resource("VolumeAttributesClass", _STORAGE, "volumeattributesclasses")


def detect_kubernetes(
    account: Account, names: Iterable[str], cinder: str
) -> http.Exchanges[Detected]:
    """Return the volumes of a node; `names` are those that its mount table shows.

    `cinder` is the provider behind the driver of OpenStack. Names of inline volumes are not known
    to the API, and are left out. An odd object costs its volumes only; any other failure is one of
    all: the terms of before are kept.
    """
    try:
        return (yield from _volumes(account, tuple(names), cinder))
    except http.ExchangeError as error:
        return Detected(
            findings.KUBERNETES, "Kubernetes", problems=(findings.problem("metadata", error),)
        )


def _volumes(account: Account, names: tuple[str, ...], cinder: str) -> http.Exchanges[Detected]:
    if len(names) > _MOST_VOLUMES:
        why = f"the node has more than {_MOST_VOLUMES} volumes"
        raise http.failure("request for PersistentVolumes", "too_large", why)
    classes: dict[tuple[str, str], _Class | None] = {}
    disks: list[CloudDisk] = []
    volumes: list[findings.PersistentVolume] = []
    errors: list[http.ExchangeError] = []
    for name in names:
        try:
            found = yield from _get(account, _VOLUMES, name, _PersistentVolume)
            if found is None or found.spec.csi is None:
                continue
            volumes.append(_volume(name, found.spec, found.spec.csi))
            parameters = yield from _parameters(account, found, found.spec.csi, classes)
            ordered = classes.get((_STORAGE_CLASSES.kind, found.spec.storage_class_name))
            disk = _disk(found, found.spec.csi, parameters, ordered, cinder)
        except http.ExchangeError as error:
            if error.reason != "invalid":
                raise
            errors.append(error)
            continue
        if disk is not None:
            disks.append(disk)
    if errors and not volumes:
        raise errors[0]
    return Detected(
        findings.KUBERNETES,
        "Kubernetes",
        metadata=Listing(tuple(disks)),
        problems=tuple(findings.problem("metadata", error) for error in errors),
        volumes=tuple(volumes),
    )


def _volume(name: str, spec: _Spec, csi: _Csi) -> findings.PersistentVolume:
    driver, handle = _text(csi.driver), _text(csi.volume_handle)
    if driver is None or handle is None:
        why = "its driver or its volume handle is not text"
        raise http.failure(f"request for PersistentVolume {name}", "invalid", why)
    claim = spec.claim_ref or _Claim()
    return findings.PersistentVolume(
        driver=driver,
        volume_handle=handle,
        persistent_volume=name,
        claim=_text(claim.name),
        namespace=_text(claim.namespace),
        storage_class=_text(spec.storage_class_name),
    )


def _text(value: str | None) -> str | None:
    """Return printable text of any length that the daemon accepts; None for anything else."""
    return value if value and value.isprintable() and len(value) <= _LONGEST_TEXT else None


def _parameters(
    account: Account,
    volume: _PersistentVolume,
    csi: _Csi,
    classes: dict[tuple[str, str], _Class | None],
) -> http.Exchanges[Parameters | None]:
    """Return what was ordered for a volume; None if it is not known, or its classes are gone.

    A StorageClass counts only for a volume that its driver created: people write any name into
    volumes that they created themselves.
    """
    spec, found = volume.spec, _lower(csi.volume_attributes)
    if volume.metadata.annotations.get(_PROVISIONED_BY) == csi.driver and spec.storage_class_name:
        ordered = yield from _class(account, _STORAGE_CLASSES, spec.storage_class_name, classes)
        if ordered is None:
            return None
        found |= {**DEFAULTS.get(csi.driver, {}), **_lower(ordered.parameters or {})}
    if spec.volume_attributes_class_name:
        name = spec.volume_attributes_class_name
        changed = yield from _class(account, _ATTRIBUTES_CLASSES, name, classes)
        if changed is None:
            return None
        return with_changes(csi.driver, found, _lower(changed.parameters or {}))
    return found


def _lower(parameters: Parameters) -> dict[str, str]:
    return {key.lower(): value for key, value in parameters.items()}


def _class(
    account: Account, resource: _Resource, name: str, classes: dict[tuple[str, str], _Class | None]
) -> http.Exchanges[_Class | None]:
    """Return a class, which is requested once; None if it is gone."""
    key = resource.kind, name
    if key not in classes:
        classes[key] = yield from _get(account, resource, name, _Class)
    return classes[key]


def _get(
    account: Account, resource: _Resource, name: str, kind: type[T]
) -> http.Exchanges[T | None]:
    """Return an object; None if there is none of this name.

    `resourceVersion=0` lets the API server answer from its memory.
    """
    if http.plain_text(name, _NAME) is None:
        return None
    what = f"request for {resource.kind} {name}"
    path = f"{resource.path}/{resource.plural}/{name}?resourceVersion=0"
    group = "storage.k8s.io" if resource.path == _STORAGE else '""'
    words: http.Explanations = {
        "denied": (
            f"the service account may not get {resource.plural}; add the verb get on them (API"
            f" group {group}) to its ClusterRole"
        ),
        "expired": (
            "the API server rejected the token of the service account; see that it is mounted and"
            " not older than an hour"
        ),
    }
    headers = {"authorization": f"Bearer {account.token}", "accept": "application/json"}
    url = f"{account.endpoint}{path}"
    request = http.Request(what, "api", "GET", url, headers, authority=account.authority)
    try:
        response = yield from http.get_response(request, words)
    except http.ExchangeError as error:
        if error.reason == "not_found":
            return None
        raise
    return http.decode(what, response.body, kind)


def _disk(
    volume: _PersistentVolume,
    csi: _Csi,
    parameters: Parameters | None,
    ordered: _Class | None,
    cinder: str,
) -> CloudDisk | None:
    """Return the terms of a volume; None if they are not known."""
    if parameters is None:
        return None
    capacity = volume.spec.capacity.get("storage", "")
    if _may_be_expanded(volume, ordered) and not follows_size(csi.driver, parameters):
        capacity = ""
    found = ordered_as(csi.driver, parameters, capacity)
    if found is None:
        return None
    provider = cinder if found.provider == "openstack" else found.provider
    return msgspec.structs.replace(
        found, volume=csi.volume_handle, is_handle=True, provider=provider
    )


def _may_be_expanded(volume: _PersistentVolume, ordered: _Class | None) -> bool:
    """Return whether a volume may be larger than it was ordered.

    The program that created it wrote its capacity together with its handle; the one that expands
    it writes the capacity only. Where the API does not say who wrote it, the class decides.
    """
    what = "request for PersistentVolumes"
    fields = (findings.part_of(what, each, "fieldsV1") for each in volume.metadata.managed_fields)
    owned = [findings.part_of(what, each, "f:spec") for each in fields]
    writers = [spec for spec in owned if "f:storage" in findings.part_of(what, spec, "f:capacity")]
    if not writers:
        return ordered is not None and ordered.allow_volume_expansion
    return any("f:csi" not in spec for spec in writers)
