import { singleMetric, type Metric } from '../observability/metrics.ts';
import type { SharedLimits } from './shared-limits.ts';

/** How much of each is open at this moment, and what clients share of it. */
interface Open {
  readonly shared: SharedLimits;
  readonly connections: number;
  readonly requests: number;
  readonly websockets: number;
  readonly tunnels: number;
}

/** What is open on a port, as metrics. */
export function openMetrics({
  connections,
  requests,
  websockets,
  tunnels,
  shared,
}: Open): readonly Metric[] {
  return [
    singleMetric('gauge', 'waymark_connections', {
      help: 'Open connections, websockets included.',
      value: connections,
    }),
    singleMetric('gauge', 'waymark_requests_in_flight', {
      help: 'Requests over HTTP that are being answered.',
      value: requests,
    }),
    singleMetric('gauge', 'waymark_websockets', {
      help: 'Open websockets.',
      value: websockets,
    }),
    singleMetric('gauge', 'waymark_tunnels', {
      help: 'Open websockets that are passed on to a source.',
      value: tunnels,
    }),
    singleMetric('gauge', 'waymark_subscriptions', {
      help: 'Subscriptions of websockets.',
      value: shared.subscriptions.size,
    }),
    singleMetric('gauge', 'waymark_requests_held_bytes', {
      help: 'Bytes held of requests that are not answered yet.',
      value: shared.requests.size,
    }),
    singleMetric('gauge', 'waymark_unread_answers_bytes', {
      help: 'Bytes held of large answers that are not read yet.',
      value: shared.unread.size,
    }),
  ];
}
