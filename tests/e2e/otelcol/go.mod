module hikyaku/tests/otelcol

go 1.23.0

require (
	go.opentelemetry.io/collector/component v1.30.0
	go.opentelemetry.io/collector/confmap v1.30.0
	go.opentelemetry.io/collector/confmap/provider/fileprovider v1.30.0
	go.opentelemetry.io/collector/exporter v0.124.0
	go.opentelemetry.io/collector/exporter/otlphttpexporter v0.124.0
	go.opentelemetry.io/collector/otelcol v0.124.0
	go.opentelemetry.io/collector/receiver v1.30.0
	go.opentelemetry.io/collector/receiver/otlpreceiver v0.124.0
)
