import type { Execute } from '../../../core/operations/execute.ts';
import { tracedExecute } from '../../../modules/telemetry/traced-execute.ts';
import type { Config } from '../../../core/config/config.ts';
import type { Tracer } from '../../../core/report/trace.ts';
import type { Dialler } from '../../../core/outbound/dialler.ts';
import { tracedDialler } from '../../../modules/telemetry/traced-dialler.ts';
import { openTelemetry } from '../../../modules/telemetry/telemetry.ts';
import type { DeliveryAttempt } from '../../../modules/webhooks/attempt.ts';
import { tracedAttempt } from '../../../modules/telemetry/traced-attempt.ts';
import type { AppContext } from './context.ts';

/** The traces of a configuration; without any, each part stays as it is given. */
interface Tracing {
  /** Undefined without `[telemetry]`. */
  readonly tracer: Tracer | undefined;
  readonly dialler: (given: Dialler) => Dialler;
  readonly execute: (given: Execute) => Execute;
  readonly attempt: (given: DeliveryAttempt) => DeliveryAttempt;
  readonly close: () => Promise<void>;
}

const noTracing: Tracing = {
  tracer: undefined,
  dialler: (given) => given,
  execute: (given) => given,
  attempt: (given) => given,
  close: () => Promise.resolve(),
};

/** Begins traces, if the configuration names a collector. Without one, nothing of it is loaded. */
export function composeTracing(
  { telemetry: settings }: Config,
  { version, state }: Pick<AppContext, 'version' | 'state'>,
): Tracing {
  const { endpoint, headers = {}, ...others } = settings;
  if (endpoint === undefined) return noTracing;
  const given = { counts: state.spans, version, random: Math.random };
  const telemetry = openTelemetry({ ...others, endpoint, headers }, given);
  const { tracer } = telemetry;
  return {
    tracer,
    dialler: tracedDialler,
    execute: (execute) => tracedExecute(execute, tracer),
    attempt: (attempt) => tracedAttempt(attempt, tracer),
    close: () => telemetry.close(),
  };
}
