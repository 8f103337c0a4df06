import type { Module } from '../../core/module.ts';
import { SpanCounts } from './span-queue.ts';
import { openTelemetry } from './telemetry.ts';
import { tracedDialler, tracedExecute } from './traced-calls.ts';

/** Traces for a collector of OpenTelemetry: `[telemetry]`. Without one, nothing of it is loaded. */
export const telemetry: Module<SpanCounts> = {
  name: 'telemetry',
  open: ({ log, now }) => new SpanCounts({ log, now }),
  provision({ settings, version, random }, counts) {
    const { endpoint, headers = {}, ...others } = settings.telemetry;
    if (endpoint === undefined) return {};
    const given = { ...others, endpoint, headers, redact: settings.log.redact };
    const opened = openTelemetry(given, { counts, version, random });
    const { tracer } = opened;
    return {
      offers: {
        tracing: {
          tracer,
          dialler: tracedDialler,
          execute: (execute) => tracedExecute(execute, tracer),
        },
      },
      close: () => opened.close(),
    };
  },
  report: (counts) => ({ metrics: counts.metrics() }),
};
