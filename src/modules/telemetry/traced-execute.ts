import { currentSpan, errorType, runInSpan, type Tracer } from '../../core/report/trace.ts';
import type { Execute } from '../../core/operations/execute.ts';

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
