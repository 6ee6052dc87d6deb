"""Pure reckoning: values in, values out; no files, clocks, threads or logs."""
