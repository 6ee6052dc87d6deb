"""All commands: what each is for, two examples, and what its exit status means."""

import re
from collections.abc import Iterator, Mapping
from typing import Literal, NamedTuple

Purpose = Literal["see", "set up", "measure", ""]
PURPOSES: Mapping[Purpose, str] = {
    "see": "See what the disks do, and why they are slow:",
    "set up": "Set up what they were sold as, and the exporter:",
    "measure": "Measure and test:",
}
"""In the order of the help; commands without a purpose are not in it."""


class Command(NamedTuple):
    """What the help says of a command."""

    purpose: Purpose
    caption: str
    examples: tuple[tuple[str, str], tuple[str, str]]
    """Arguments, and what they do."""
    statuses: Mapping[int, str]

    @property
    def description(self) -> str:
        """The caption as a sentence."""
        return f"{self.caption[0].upper()}{self.caption[1:]}."

    def epilog(self, name: str) -> str:
        """Return the examples and the exit statuses."""
        lines = ["examples:"]
        for arguments, what in self.examples:
            lines += [f"  disksla {name} {arguments}".rstrip(), f"      {what}"]
        lines += ["", "exit status:"]
        lines += [f"  {status}  {text}" for status, text in self.statuses.items()]
        return "\n".join(lines)


_TABLE = """
explain  see  say what throttled the disks or made them slow, and what to do
    $                                       all disks, those with problems first
    $ vdb --for 30s --output slow.jsonl.gz  sample now, and keep a file to send
top  see  show live what each disk does, and what throttles it
    $          the disks of this machine
    $ -b -n 1  one block of plain text, for a script or a ticket
disks  see  list the disks of this machine with their terms and limits
    $         a table
    $ --json  all that is known, in base units
check  see  print one line with an exit status, for Nagios, Icinga or CI
    $ /var/lib/postgresql                       the disk of a mount point
    $ -w throttled=10%,latency=20ms -c stalled  other thresholds
    0  OK
    1  warning
    2  critical
    3  unknown
report  see  write proof for the provider, from series of Prometheus
    $ --prometheus http://localhost:9090 --last 30d  all disks in the last month
    $ --prometheus URL --last 1d --html ticket.html  a page to attach to a ticket
    0  all tested disks comply
    1  a disk does not comply
    2  no disk was tested, or it could not: standard error says why
advise  see  say which disk or machine would have been enough for a load
    $ vdb --recording load.jsonl.gz                          by a recording of that load
    $ db-1:vdb --prometheus http://localhost:9090 --last 7d  by recorded series
    0  there is an answer
    1  there is none; it says what to do next
    2  it could not: standard error says why
detect  set up  ask the cloud what the disks were sold as
    $                                              print what was found out, as a file of terms
    $ --output /etc/disksla/terms.d/detected.json  keep it where the daemon reads it
    0  it worked
    1  something was not found out: standard error says what
    2  it could not: standard error says why
limits  set up  list the disk types, or compute the limits of one for a size
    $ aws.gp3 500GiB --iops 6000  the limits of one, and how they are computed
    $ --textfile FILE.prom        those of the disks of this host, for node_exporter
    0  it worked
    1  with --textfile, no disk has limits: standard error says why
    2  it could not: standard error says why
check-config  set up  list all problems of the configuration
    $                        the configuration that is in force
    $ --config.file new.yml  another one, before it is used
    0  it is valid
    2  it is not, or could not be read
doctor  set up  check everything that must be right here, and name the fixes
    $         all checks
    $ --json  for other programs
    0  nothing is wrong
    1  something is wrong
    2  it could not: standard error says why
serve  set up  run the exporter: sample all disks and serve metrics
    $ --web.listen-address 127.0.0.1:10056  until SIGTERM or Ctrl-C
    $ --once --for 5s                       print the metrics once, for a textfile collector or CI
    0  it was stopped, or the metrics were printed
    2  it could not: standard error says why
verify  measure  run the provider's acceptance test, or measure latency
    $ vdb --html report.html  read at full speed, and compare with the promise
    $ vdb --latency           a few requests a second, as a probe of the daemon
    0  it passed, or latencies were measured
    1  it failed, or the latency was not measured
    2  no valid result, or it could not: standard error says why
judge  measure  compare a result of fio or DiskSpd with the terms of a disk
    $ result.json --terms aws.gp3 --size 500GiB  a result from anywhere
    $ - --device vdb  standard input, by the terms of a disk of this machine
    0  it passed
    1  it failed
    2  nothing could be judged: standard error says why
    3  what was measured passed, and a part of the test is missing
sweep  measure  measure a disk under all kinds of load, or what it is
    $ vdb --html map.html  reads of all sizes and depths, as heat maps
    $ vdb --identify       HDD, SSD or another medium, by its latencies
    0  it worked
    1  with --identify, the medium is not known
    2  it could not: standard error says why
record  measure  record what is read from the kernel to a file, tick by tick
    $ slow.jsonl.gz --for 60s  evidence for a question, a bug or a ticket
    $ load.jsonl.gz --for 10m  a load for disksla advise
replay  -  run a recording through the pipeline of the exporter
    $ slow.jsonl.gz            a summary
    $ slow.jsonl.gz --metrics  the metrics after the last tick
ebs-statistics  -  read what AWS counts of its disks, and pass it to the daemon
    $ --once  print what each disk says, and end
    $         listen until SIGTERM, as the unit of the package does
    0  it worked
    1  with --once, a disk could not be read
    2  it could not: standard error says why
open-events  -  open performance events of the kernel, and pass them to the daemon
    $                               for the connection that systemd passed
    $ --listen /run/disksla/events  for all clients of a socket
"""
"""Of each command its name, purpose and caption, two examples, and what its exit statuses mean,
unless they are the usual ones."""
_USUAL = [["0", "it worked"], ["2", "it could not: standard error says why"]]


def _commands() -> Iterator[tuple[str, Command]]:
    for entry in re.split(r"\n(?=\S)", _TABLE.strip()):
        head, *lines = (line.strip() for line in entry.split("\n"))
        name, purpose, caption = head.split("  ", 2)
        rows = [re.split(r"\s{2,}", line, maxsplit=1) for line in lines]
        first, second = ((words[1:].strip(), what) for words, what in rows if words[0] == "$")
        said = [row for row in rows if row[0].isdigit()] or _USUAL
        statuses = {int(status): what for status, what in said}
        known: Purpose = next((each for each in PURPOSES if each == purpose), "")
        yield name, Command(known, caption, (first, second), statuses)


COMMANDS: Mapping[str, Command] = dict(_commands())
