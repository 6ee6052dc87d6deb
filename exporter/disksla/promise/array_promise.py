"""What several disks is promised: from how it is made, and from what they are.

Whatever limits a part of the array (a disk, or the machine over some of its disks) gets a share
of the requests; the array has its promise where the first of them is at its limit:

| | share of a member | so equal members give |
|---|---|---|
| `striped` over n, c copies | reads 1/n, writes c/n | reads n times one, writes n/c times one |
| `mirrored` on n | reads 1/n, writes 1 | reads the sum, writes as one |
| `linear` | 1 of one member at a time | one: a load may be on any part |

Requests of a stripe are no larger than a chunk, or they count for several members. Copies share
reads only if they are promised the same and the kernel takes them for non-rotational; else one may
serve all of them, since the kernel reads the copy whose head it assumes to be nearest. Tried with
Linux 6.1 and limits of QEMU: RAID 10 on four disks of 100 IOPS read 371 IOPS, but 246 where
`rotational` was 1; on three disks of 300 IOPS and one of 100, 255.
"""

import math
from collections.abc import Collection, Iterator, Mapping
from itertools import chain
from typing import NamedTuple

import msgspec
from msgspec.structs import asdict

from disksla.kernel.disks import Disk, Layer, devices_below
from disksla.promise.catalogue import Limits, Rates

_EVEN = 1.01  # promises that differ by less are the same


class ArrayPart(msgspec.Struct, frozen=True):
    """A layer of an array, whose members are disks, by kernel name, or layers."""

    layer: Layer
    members: tuple["ArrayPart | str", ...]


class Array(NamedTuple):
    """Several disks that are used as one device."""

    device: Disk  # the device that is mounted or used: the highest of its stack
    disks: tuple[str, ...]  # the disks at the bottom, by kernel name, without spares
    tree: ArrayPart | str | None  # how it is made of them; None if that is not known


class Bound(NamedTuple):
    """A limit over disks together."""

    name: str
    devices: frozenset[str]
    rates: Rates


class ArrayPromise(NamedTuple):
    """What an array is promised, and what binds it."""

    rates: Rates
    binding: Mapping[str, tuple[str, ...]]
    """The disks or limits of the machine that are reached first, by the field of the rate."""
    is_uneven: bool  # it is striped, and its disks are not at their limits at the same time


def arrays_of(disks: Collection[Disk]) -> Iterator[Array]:
    """Yield the arrays on several disks; `disks` are all devices of the machine."""
    by_name = {disk.name: disk for disk in disks}
    for device in disks:
        if device.slaves and not device.holders:
            tree = _tree(device.name, by_name, frozenset())
            below = devices_below(device, disks) if tree is None else ()
            used = {each.name for each in below if each.is_sold} | set(_disks_of(tree))
            if len(used) > 1:
                yield Array(device, tuple(sorted(used)), tree)


def _disks_of(node: ArrayPart | str | None) -> Iterator[str]:
    if isinstance(node, str):
        yield node
    elif node is not None:
        yield from chain.from_iterable(map(_disks_of, node.members))


def _tree(name: str, disks: Mapping[str, Disk], above: frozenset[str]) -> ArrayPart | str | None:
    disk = disks.get(name)
    if disk is None or name in above:
        return None
    whole = disk.partition_of or disk.path_of
    if whole is not None:
        return _tree(whole, disks, above | {name})
    if not disk.slaves:
        return name
    if disk.layer is None:
        return None
    found = [_tree(member, disks, above | {name}) for member in disk.layer.members]
    members = tuple(member for member in found if member is not None)
    return ArrayPart(disk.layer, members) if len(members) == len(found) else None


def layers_of(node: ArrayPart | str | None) -> list[Layer]:
    """Return the layers, the highest first; of several members, those of the first."""
    if not isinstance(node, ArrayPart):
        return []
    return [node.layer, *layers_of(node.members[0])]


def promise_of(
    array: Array, limits: Mapping[str, Limits], machine: Collection[Bound] = ()
) -> ArrayPromise | None:
    """Return what an array is promised, by the limits of its disks and those of the machine.

    None where a part is made in a way that is not known, or a disk has no limits.
    """
    known = {name for name in array.disks if name in limits and limits[name].budget}
    if array.tree is None or not _is_known(array.tree) or len(known) < len(array.disks):
        return None
    of_disks = [Bound(name, frozenset({name}), limits[name].rates) for name in array.disks]
    rates, binding, is_uneven = {}, {}, False
    for field in Rates.__struct_fields__:
        is_spread = array.device.rotational is False and not field.startswith("write")
        load = _Load({each.name: _rate(each, field) for each in of_disks}, is_spread=is_spread)
        reached = {
            bound.name: _rate(bound, field) / share
            for bound in (*of_disks, *machine)
            if (share := load.share(array.tree, bound.devices))
        }
        least = min(reached.values())
        if least < math.inf:
            rates[field] = least
            binding[field] = tuple(name for name in reached if reached[name] <= _EVEN * least)
        of_each = [rate for name, rate in reached.items() if name in known]
        is_uneven = is_uneven or max(of_each) > _EVEN * min(of_each)
    hows = {layer.how for layer in layers_of(array.tree) if len(layer.members) > 1}
    is_striped = "striped" in hows and "linear" not in hows
    return ArrayPromise(Rates(**rates), binding, is_striped and is_uneven)


def _is_known(node: ArrayPart | str) -> bool:
    return isinstance(node, str) or (
        node.layer.how != "unknown" and all(map(_is_known, node.members))
    )


def _rate(bound: Bound, field: str) -> float:
    rate: float | None = asdict(bound.rates)[field]
    return math.inf if rate is None else rate


class _Load:
    """Reads or writes of an array, and where they go."""

    def __init__(self, rates: Mapping[str, float], *, is_spread: bool) -> None:
        self._rates, self._is_spread = rates, is_spread

    def share(self, node: ArrayPart | str, devices: Collection[str]) -> float:
        """Return the most requests of some disks together, for each request of a node."""
        if isinstance(node, str):
            return float(node in devices)
        shares = [self.share(member, devices) for member in node.members]
        if node.layer.how == "linear":
            return max(shares)
        copies = len(shares) if node.layer.how == "mirrored" else node.layer.copies
        promised = [self._promised(member) for member in node.members]
        is_spread = self._is_spread and max(promised) <= _EVEN * min(promised)
        return sum(shares) * (1 if is_spread else copies) / len(shares)

    def _promised(self, node: ArrayPart | str) -> float:
        """Return what the disks of a node promise."""
        return min(
            rate / share
            for name, rate in self._rates.items()
            if (share := self.share(node, {name}))
        )
