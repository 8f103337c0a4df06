import { createRequire } from 'node:module';

// As in core/values/lazy-packages.ts.
const require = createRequire(import.meta.url);

type OtlpExporter = typeof import('@opentelemetry/exporter-trace-otlp-http');

/** The SDK of OpenTelemetry, which collects spans and sends them. */
export function loadOpenTelemetry(): typeof import('@opentelemetry/api') &
  typeof import('@opentelemetry/resources') &
  Pick<typeof import('@opentelemetry/sdk-trace'), 'BatchSpanProcessor' | 'TracerProvider'> &
  OtlpExporter {
  const sdk = require('@opentelemetry/sdk-trace') as typeof import('@opentelemetry/sdk-trace');
  const { BatchSpanProcessor, TracerProvider } = sdk;
  return {
    ...(require('@opentelemetry/api') as typeof import('@opentelemetry/api')),
    ...(require('@opentelemetry/resources') as typeof import('@opentelemetry/resources')),
    ...(require('@opentelemetry/exporter-trace-otlp-http') as OtlpExporter),
    ...{ BatchSpanProcessor, TracerProvider },
  };
}
