"""A fake fio: it checks its options, then does what a test needs."""

import shlex
import sys
from pathlib import Path

import psutil

_SCRIPT = """#!/bin/sh
''''[ "$*" != --version ] || {{ echo {version}; exit {version_status}; }}
exec {python} -IS "$0" "$@" # '''
# Through a shell: in the first line, the path of Python could not contain a blank.
# Without site packages, such as coverage, which would write a file: RLIMIT_FSIZE may be 0.
import os, signal, sys, time
from pathlib import Path

options = dict(word.removeprefix("--").partition("=")[::2] for word in sys.argv[1:])
HERE = Path({here!r})
sys.path.append({packages!r})
(HERE / f"pid.{{os.getpid()}}").touch()  # an empty file is allowed by RLIMIT_FSIZE 0

def must(condition, what):
    if not condition:
        print("fake fio:", what, file=sys.stderr)
        raise SystemExit(97)

reads_only = options["rw"] in ("read", "randread")
(HERE / ("read-only" if "readonly" in options else "may-write")).touch()
must(("readonly" in options) == reads_only, "readonly unless it writes")
must(Path(options["filename"].replace("\\\\:", ":")).is_absolute(), "an absolute path")
must(options["allow_file_create"] == "0", "a missing target is not created")
must(options["allow_mounted_write"] == "0", "a mounted disk is never written")
must(options["direct"] == "1", "past the page cache")
must(options["invalidate"] == "0", "the page cache is not emptied")
must("thread" in options, "no worker in another session")
must(options["output-format"] == "json+", "latency bins")
must(float(options["runtime"].removesuffix("ms")) > 0, "a runtime")
must(not sys.stdin.read(), "an empty standard input")
must(os.getsid(0) == os.getpgid(0) == os.getpid(), "a session of its own")
{body}
"""

HANGS = """
signal.signal(signal.SIGTERM, signal.SIG_IGN)
(HERE / "hangs").touch()
while True:
    time.sleep(60)
"""

HAS_A_GRANDCHILD = """
import subprocess
code = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)"
grandchild = subprocess.Popen([sys.executable, "-c", code])
(HERE / f"grandchild.{grandchild.pid}").touch()
(HERE / "hangs").touch()
grandchild.wait()
"""

LEAVES_A_GRANDCHILD = """
import subprocess
grandchild = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
(HERE / f"grandchild.{grandchild.pid}").touch()
os.write(1, (HERE / "answer").read_bytes())
"""

ANSWERS = """
os.write(1, (HERE / "answer").read_bytes())
"""

PRINTS_FOR_EVER = """
while True:
    os.write(1, b"{" * 65536)
"""

PRINTS_ERRORS_FOR_EVER = """
while True:
    os.write(2, b"no " * 20000)
"""


def fake_fio(
    directory: Path, body: str, *, version: str = "fio-3.33", version_status: int = 0
) -> Path:
    """Write the program, for `find_fio(str(directory))`; it creates marker files there."""
    script = directory / "fio"
    script.write_text(
        _SCRIPT.format(
            python=shlex.quote(sys.executable),
            version=shlex.quote(version),
            version_status=version_status,
            here=str(directory),
            packages=str(Path(psutil.__file__).parent.parent),
            body=body,
        ),
        encoding="utf-8",
    )
    script.chmod(0o755)
    return script


def pid_left(directory: Path, whose: str = "pid") -> int:
    """Return the PID of the last fake fio, or of its `grandchild`."""
    [marker] = directory.glob(f"{whose}.*")
    return int(marker.suffix[1:])
