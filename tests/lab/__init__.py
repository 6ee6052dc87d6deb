"""Block devices that are really throttled, with a log of the truth: `make lab`."""
