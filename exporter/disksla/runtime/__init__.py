"""Everything that touches the machine: files, threads, sockets, clocks."""
