from vm.truth import Admission, Request, by_disk, own_lines, read_trace

LINES = """\
7@100.000000:blk_root_attach child 0xc blk 0xb1 bs 0xd1
7@101.000000:virtio_blk_handle_write vdev 0xe req 0xf1 sector 8 nsectors 8
7@101.000010:virtio_blk_handle_write vdev 0xe req 0xf2 sector 16 nsectors 8
7@101.000020:blk_co_pwritev blk 0xb1 bs 0xd1 offset 4096 bytes 8192 flags 0x0
7@101.000100:blk_co_preadv blk 0xb0 bs 0xd0 offset 0 bytes 512 flags 0x0
7@101.000110:bdrv_co_preadv_part bs 0xd0 offset 0 bytes 512 flags 0x0
7@101.250000:bdrv_co_pwritev_part bs 0xd1 offset 4096 bytes 8192 flags 0x0
7@101.250100:virtio_blk_req_complete vdev 0xe req 0xf1 status 0
7@101.250110:virtio_blk_req_complete vdev 0xe req 0xf2 status 0
qemu-system-x86_64: warning: this is not an event
7@101.300000:virtio_blk_req_complete vdev 0xe req 0xf1 status 0
7@102.000000:virtio_blk_handle_read vdev 0xe req 0xf1 sector 0 nsectors 1
7@102.000020:blk_co_preadv blk 0xb1 bs 0xd1 offset 0 bytes 512 flags 0x0
7@102.000030:bdrv_co_preadv_part bs 0xd1 offset 0 bytes 512 flags 0x0
""".splitlines()


def test_requests_have_their_times() -> None:
    trace = read_trace(own_lines(LINES))
    assert trace.plugged_s == [100.0]
    assert trace.requests == [
        Request(101.0, 101.2501, is_write=True, size_bytes=4096),
        Request(101.00001, 101.25011, is_write=True, size_bytes=4096),
        Request(102.0, None, is_write=False, size_bytes=512),
    ]


def test_limiter_sees_merged_requests_and_admits_some_at_once() -> None:
    trace = read_trace(own_lines(LINES))
    assert trace.admissions == [
        Admission(101.00002, 101.25, is_write=True, size_bytes=8192),
        Admission(102.00002, 102.00003, is_write=False, size_bytes=512),
    ]
    assert [admission.waited for admission in trace.admissions] == [True, False]


def test_other_disks_and_messages_are_left_out() -> None:
    kept = own_lines(LINES)
    assert len(kept) == len(LINES) - 3
    assert not any("0xd0" in line or "warning" in line for line in kept)
    assert own_lines(kept) == kept


def test_lines_are_those_of_one_disk_each() -> None:
    first = [
        "7@1.0:blk_root_attach child 0xc blk 0xb1 bs 0xd1",
        "7@1.1:virtio_blk_handle_read vdev 0xe1 req 0xf sector 0 nsectors 8",
        "7@1.2:blk_co_preadv blk 0xb1 bs 0xd1 offset 0 bytes 4096 flags 0x0",
        "7@1.3:bdrv_co_preadv_part bs 0xd1 offset 0 bytes 4096 flags 0x0",
        "7@1.4:virtio_blk_req_complete vdev 0xe1 req 0xf status 0",
    ]
    second = [line.replace("1 ", "2 ").replace("7@1", "7@2") for line in first]
    later = "7@3.0:virtio_blk_handle_read vdev 0xe1 req 0xf sector 0 nsectors 8"
    lines = [*first, *second, later]
    assert by_disk(lines, 2) == [[*first, later], second]
    assert by_disk(lines, 1) == [lines]
    together = read_trace(lines)
    assert [len(read_trace(own).requests) for own in by_disk(lines, 2)] == [2, 1]
    assert len(together.requests) == 3
    assert len(together.admissions) == 2
