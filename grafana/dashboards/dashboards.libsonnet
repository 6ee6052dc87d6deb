// Three dashboards that link to each other: all disks, one disk, probes and acceptance tests.
(import 'fleet.libsonnet')
+ (import 'disk.libsonnet')
+ (import 'probes.libsonnet')
