"""What another user may read and write, as the kernel decides it: ACLs included."""

import os
import pwd
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

from disksla.base.errors import DiskslaError

Mode = Literal["r", "w"]
_MODES = {"r": os.R_OK, "w": os.W_OK}
_TEST = 'for path; do if [ -{} "$path" ]; then echo yes; else echo no; fi; done'
_TIMEOUT_S = 10.0


def user_name() -> str:
    """Return the name of the user of this process, or its number."""
    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return str(os.geteuid())


def has_user(user: str) -> bool:
    """Return whether there is a user of this name; that of this process need not have one."""
    if user == user_name():
        return True
    try:
        pwd.getpwnam(user)
    except KeyError:
        return False
    return True


def may_access(user: str, paths: Sequence[Path], mode: Mode) -> Mapping[Path, bool]:
    """Return whether a user may read or write each path.

    Nothing is opened. Raise DiskslaError if it is another user than that of this process, which is
    not root. The user must exist.
    """
    if user == user_name():
        return {path: os.access(path, _MODES[mode], effective_ids=True) for path in paths}
    if os.geteuid() != 0:
        raise DiskslaError(f"only root can check what the user {user} may read and write")
    entry = pwd.getpwnam(user)
    try:
        ended = subprocess.run(  # noqa: S603 -- a fixed program; paths are its arguments
            ["/bin/sh", "-c", _TEST.format(mode), "sh", *map(str, paths)],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            cwd="/",
            timeout=_TIMEOUT_S,
            check=True,
            text=True,
            user=entry.pw_uid,
            group=entry.pw_gid,
            extra_groups=os.getgrouplist(user, entry.pw_gid),
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise DiskslaError(f"cannot check what the user {user} may access: {error}") from error
    return {path: word == "yes" for path, word in zip(paths, ended.stdout.split(), strict=True)}
