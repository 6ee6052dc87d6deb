// Identifiers of the dashboards in Grafana; links use them.
{ fleet: 'disksla-fleet', disk: 'disksla-disk', probes: 'disksla-probes' }
