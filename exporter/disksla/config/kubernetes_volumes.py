"""Volumes of Kubernetes: what terms files say of the PersistentVolumes of disks."""

from collections.abc import Iterable

import msgspec

from disksla.config.terms_file import KubernetesVolume, TermsFile
from disksla.disks import CsiVolume, Disk, handle_hash, with_volume


def with_kubernetes_volumes(
    disks: Iterable[Disk], terms_files: Iterable[TermsFile]
) -> tuple[Disk, ...]:
    """Return the disks with their volumes, claims and storage classes, where a file has them.

    A volume is recognised by its handle or the hash of it, and in block mode, where kubelet shows
    neither, by the name of the PersistentVolume. Of several files, the first that has it counts.
    """
    volumes = [volume for file in reversed(tuple(terms_files)) for volume in file.volumes]
    by_hash = {handle_hash(volume.volume_handle): volume for volume in volumes}
    by_name = {volume.persistent_volume: volume for volume in volumes if volume.persistent_volume}

    def described(disk: Disk) -> Disk:
        if disk.volume_handle is not None:
            volume = by_hash.get(handle_hash(disk.volume_handle))
        elif disk.volume_handle_hash is not None:
            volume = by_hash.get(disk.volume_handle_hash)
        else:
            volume = by_name.get(disk.persistent_volume or "")
        return disk if volume is None else _with_volume(disk, volume)

    return tuple(map(described, disks)) if volumes else tuple(disks)


def _with_volume(disk: Disk, volume: KubernetesVolume) -> Disk:
    name = volume.persistent_volume or disk.persistent_volume
    return msgspec.structs.replace(
        with_volume(disk, CsiVolume(volume.driver, volume.volume_handle, name)),
        claim=volume.claim,
        namespace=volume.namespace,
        storage_class=volume.storage_class,
    )
