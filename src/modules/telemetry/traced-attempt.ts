import { runInSpan, type Tracer } from '../../core/report/trace.ts';
import { serverAttributes } from './traced-dialler.ts';
import type { DeliveryAttempt } from '../webhooks/attempt.ts';

/**
 * Makes each attempt at a delivery a trace of its own, which the receiver gets in `traceparent`.
 * The path of a hook is left out: it is often a secret.
 */
export function tracedAttempt(
  attempt: DeliveryAttempt,
  tracer: Pick<Tracer, 'start'>,
): DeliveryAttempt {
  return async (destination, message, cancellation) => {
    const { method } = destination;
    const url = URL.parse(destination.url);
    const span = tracer.start('client', `${method} webhook`, {
      'http.request.method': method,
      ...(url !== null && serverAttributes(url.origin)),
      'waymark.message': message.id,
    });
    const result = await runInSpan(span, () => attempt(destination, message, cancellation));
    const { status, problem } = result;
    const isRefused = status !== undefined && status >= 400;
    span.end({
      attributes: { 'http.response.status_code': status },
      error: isRefused ? String(status) : problem?.code,
    });
    return result;
  };
}
