{ prometheusAlerts+:: { groups+: [] } }
