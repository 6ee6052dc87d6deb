"""The last slots of a disk, packed and in order of time."""

import zlib

import msgspec

from disksla.state.history.slot import Slot, unpack

BLOCK = 20
"""Slots of a block."""


class PackedSlots(msgspec.Struct, frozen=True, gc=False):
    """Slots in blocks, which are compressed when they are complete: to a fifth in most cases."""

    blocks: tuple[bytes, ...] = ()
    """Complete ones, the oldest first."""
    last: tuple[bytes, ...] = ()

    def plus(self, packed: bytes, most: int) -> "PackedSlots":
        """Return the slots with one more; of the others, the last `most` at least are kept."""
        if len(self.last) < BLOCK:
            return PackedSlots(self.blocks, (*self.last, packed))
        block = zlib.compress(b"".join(self.last), zlib.Z_BEST_SPEED)
        return PackedSlots((*self.blocks, block)[-most // BLOCK :], (packed,))

    def without_stall(self, most: int) -> "PackedSlots":
        """Return the last `most` slots, idle where stalled since requests were completed last."""
        slots = self.unpacked(most)
        for index, slot in reversed(list(enumerate(slots))):
            totals = slot.totals
            totals = msgspec.structs.replace(
                totals, idle_s=totals.idle_s + totals.stalled_s, stalled_s=0.0
            )
            slots[index] = slot._replace(totals=totals)
            if slot.requests and index < len(slots) - 1:
                break
        kept = PackedSlots()
        for slot in slots:
            kept = kept.plus(slot.pack(), most)
        return kept

    def unpacked(self, most: int) -> list[Slot]:
        """Return the last `most` slots, the oldest first."""
        packed = b"".join([*map(zlib.decompress, self.blocks), *self.last])
        return list(unpack(packed))[-most:]
