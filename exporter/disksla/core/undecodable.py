"""What reading JSON raises for a file that somebody else has written, or nobody."""

import msgspec

UNDECODABLE = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
"""It is no JSON or of another shape, not UTF-8, or nested more deeply than anything of ours."""
