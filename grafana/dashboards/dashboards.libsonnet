// Three dashboards that lead to each other: all disks, one disk, and what was measured on purpose.
(import 'fleet.libsonnet')
+ (import 'disk.libsonnet')
+ (import 'probes.libsonnet')
