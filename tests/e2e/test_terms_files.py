"""The daemon with terms files: changes without a reload, bad files, what is published."""

from pathlib import Path

import pytest

from support.daemon_process import PATIENCE_S, StartDaemon, run
from support.sysfs_tree import host_of_files
from support.waiting import eventually

DETECTED = """
{"source": "api", "origin": "EC2 API", "as_of": "2026-01-01T00:00:00Z", "max_age": "2h",
 "provider": "aws", "machine": {"type": "m6i.large"},
 "disks": [{"match": {"device": "vda"}, "api_type": "gp3", "size": "500GiB", "iops": %d}],
 "problems": [{"source": "api", "reason": "throttled", "message": "slow down <b>"}]}
"""


@pytest.fixture
def flags(tmp_path: Path) -> list[str]:
    """Return the flags for a machine with one disk and an empty configuration."""
    options = host_of_files(tmp_path, "vda 254:0 1GiB")
    (tmp_path / "disksla.yml").write_text(f"state: {{directory: {tmp_path / 'state'}}}\n")
    (tmp_path / "terms.d").mkdir()
    (tmp_path / "state-detect").mkdir(parents=True)
    return [*options, f"--config.file={tmp_path / 'disksla.yml'}"]


def test_terms_of_the_provider_apply_and_change_without_a_reload(
    start_daemon: StartDaemon, flags: list[str], tmp_path: Path
) -> None:
    detected = tmp_path / "state-detect" / "detected.json"
    detected.write_text(DETECTED % 4000)
    daemon = start_daemon(*flags)

    def has_limit(iops: int) -> bool:
        return daemon.samples(device="vda").get("disksla_limit_read_iops") == iops

    assert eventually(lambda: has_limit(4000), PATIENCE_S)
    info = {"terms": "aws.gp3", "terms_source": "api", "machine_type": "m6i.large"}
    assert daemon.samples(device="vda", **info)["disksla_disk_info"] == 1
    assert daemon.samples(group="ebs", direction="read")["disksla_machine_limit_iops"] == 3600
    ticks = daemon.samples()["disksla_sampler_ticks_total"]

    new = tmp_path / "state-detect" / ".new"
    new.write_text(DETECTED % 5000)
    new.rename(detected)
    assert eventually(lambda: has_limit(5000), PATIENCE_S)
    assert daemon.samples()["disksla_sampler_ticks_total"] > ticks
    api = daemon.samples(source="api")
    assert api["disksla_terms_last_refresh_timestamp_seconds"] == 1767225600
    assert api["disksla_terms_expiry_timestamp_seconds"] == 1767225600 + 7200
    assert daemon.samples(source="api", reason="throttled") == {
        "disksla_terms_refresh_failures_total": 2
    }
    _, page = daemon.get("/")
    assert "EC2 API, " in page
    assert "(too old)" in page
    assert "slow down &lt;b&gt;" in page

    (tmp_path / "terms.d" / "people.yml").write_text(
        "disks: [{match: {device: vda}, terms: {budget: sum, iops: 300}},"
        " {match: {device: vda}, terms: aws.gp3, size: many},"
        " {match: {serial: none}, terms: aws.gp3}]"
    )
    assert eventually(lambda: has_limit(300), PATIENCE_S)
    invalid = daemon.samples(source="file", reason="invalid_entry")
    assert invalid == {"disksla_terms_refresh_failures_total": 1}
    unused = daemon.samples(source="file", reason="unmatched")
    assert unused == {"disksla_terms_unused_entries": 1}
    (tmp_path / "terms.d" / "people.yml").write_text("disks: [")
    assert eventually(lambda: bool(daemon.samples(source="file", reason="invalid")), PATIENCE_S)
    assert daemon.samples(collector="terms")["disksla_collector_success"] == 0
    assert has_limit(300)
    (tmp_path / "terms.d" / "people.yml").unlink()
    assert eventually(lambda: has_limit(5000), PATIENCE_S)
    assert daemon.end() == 0
    log = "\n".join(daemon.log())
    assert log.count('msg="terms file ignored"') == 1
    assert log.count('msg="terms entries ignored"') == 1
    assert "people.yml:1: disks[1].size: found 'many'" in log
    assert log.count("serial none) matches no disk") == 1


def test_what_is_not_known_is_named(
    start_daemon: StartDaemon, flags: list[str], tmp_path: Path
) -> None:
    (tmp_path / "state-detect" / "cloud.json").write_text(
        (DETECTED % 4000).replace("gp3", "gp9").replace("m6i", "x99")
    )
    daemon = start_daemon(*flags)
    _, page = daemon.get("/")
    assert "unknown machine type &#x27;x99.large&#x27; of aws" in page
    assert "vda: EC2 API matches device vda, but there are no limits: unknown terms" in page
    info = {"terms": "aws.gp9", "provider": "aws", "budget": ""}
    assert daemon.samples(device="vda", **info)["disksla_disk_info"] == 1
    log = "\n".join(daemon.log())
    assert log.count('msg="terms have no limits" disks=1') == 1
    assert log.count('msg="limits of the machine are not known"') == 1


def test_commands_read_terms_files(flags: list[str], tmp_path: Path) -> None:
    (tmp_path / "state-detect" / "detected.json").write_text(DETECTED % 4000)
    (tmp_path / "terms.d" / "bad.yml").write_text("disks: [")
    (tmp_path / "terms.d" / "new.yml").write_text(
        "disks: [{match: {device: vdz}, provider: aws, api_type: gp9}]"
    )
    discovered = run("disks", *flags)
    assert "aws.gp3" in discovered.stdout
    assert "EC2 API" in discovered.stdout
    assert "(device vdz) matches no disk" in " ".join(discovered.stdout.split())
    assert f"{tmp_path}/terms.d/bad.yml:2: not valid YAML" in discovered.stderr
    explained = run("explain", "vda", "--for=300ms", *flags)
    assert "EC2 API matches device vda" in " ".join(explained.stdout.split())
    checked = run("check-config", "--config.file", str(tmp_path / "disksla.yml"), status=2)
    assert f"{tmp_path}/terms.d/bad.yml:2: not valid YAML" in checked.stderr
    (tmp_path / "terms.d" / "bad.yml").unlink()
    checked = run("check-config", "--config.file", str(tmp_path / "disksla.yml"))
    assert f"{tmp_path}/terms.d: good: 1 file, 1 disk" in checked.stdout
    assert "the catalogue has no 'aws.gp9'" in checked.stdout
    recording = tmp_path / "x.jsonl"
    run("record", str(recording), "--for=300ms", *flags)
    (tmp_path / "state-detect" / "detected.json").unlink()
    replayed = run("replay", str(recording), "--metrics")
    assert 'terms="aws.gp3",terms_source="api"' in replayed.stdout
    explained = run("explain", "vda", "--recording", str(recording))
    assert "EC2 API" in explained.stdout
