import type { Execute } from '../../core/operations/execute.ts';
import type { Dialler, OutboundRequest } from '../../core/outbound/dialler.ts';
import { placeOf } from '../../core/outbound/place.ts';
import {
  type SpanAttributes,
  type Tracer,
  currentSpan,
  errorType,
  runInSpan,
  serverAttributes,
} from '../../core/report/trace.ts';

/**
 * A dialler that passes the trace of the work on which it sends (W3C Trace Context §3): each `send`
 * is a span of its own until the head of its answer, and `exchange` belongs to that of its caller.
 * What belongs to no trace is sent as it is.
 */
export function tracedDialler(dialler: Dialler): Dialler {
  return {
    ...dialler,
    send(request) {
      const span = currentSpan()?.child('client', request.method, sourceAttributes(request));
      if (span === undefined) return dialler.send(request);
      const fields = tracedFields(request.fields, span.fields);
      return dialler.send({ ...request, fields }).then(
        (answer) => {
          const { status } = answer;
          const attributes = { 'http.response.status_code': status };
          span.end({ attributes, error: status >= 400 ? String(status) : undefined });
          return answer;
        },
        (error: unknown) => {
          span.end({ error: errorType(error) });
          throw error;
        },
      );
    },
    exchange(request) {
      const span = currentSpan();
      if (span === undefined) return dialler.exchange(request);
      return dialler.exchange({ ...request, fields: tracedFields(request.fields, span.fields) });
    },
  };
}

/**
 * The attributes of a request to another server (OpenTelemetry's conventions for HTTP clients).
 * The query is left out: a page rule may have a secret there.
 */
function sourceAttributes({
  method,
  origin,
  target,
  resends,
}: Pick<OutboundRequest, 'method' | 'origin' | 'target' | 'resends'>): SpanAttributes {
  return {
    'http.request.method': method,
    'url.full': placeOf(origin).url.origin + (target.split('?', 1)[0] ?? ''),
    ...serverAttributes(origin),
    ...(resends !== undefined && resends > 0 && { 'http.request.resend_count': resends }),
  };
}

/** Fields with those of a trace in place of the ones that a client has sent. */
function tracedFields(fields: readonly string[], own: readonly string[]): readonly string[] {
  const others = fields.filter((_, at) => !isTraceField(fields[at - (at % 2)] ?? ''));
  return [...others, ...own];
}

function isTraceField(name: string): boolean {
  return /^trace(?:parent|state)$/i.test(name);
}

/**
 * Runs each operation as a span with its name: a part of the request that asks for it, or, over a
 * websocket, a trace of its own.
 */
export function tracedExecute(execute: Execute, tracer: Pick<Tracer, 'start'>): Execute {
  return {
    ...execute,
    async run(name, v, call) {
      if (execute.find(name) === undefined) return execute.run(name, v, call);
      const span = currentSpan()?.child('internal', name, {}) ?? tracer.start('server', name, {});
      try {
        const result = await runInSpan(span, () => execute.run(name, v, call));
        span.end({});
        return result;
      } catch (error) {
        span.end({ error: errorType(error) });
        throw error;
      }
    },
  };
}
