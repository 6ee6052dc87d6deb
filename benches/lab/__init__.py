"""The lab: throttled block devices whose limiter keeps a log of the truth (`make lab`)."""
