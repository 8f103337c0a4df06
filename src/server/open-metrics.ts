import { single, type Metric } from '../observability/metrics.ts';

/** How much of each is open at this moment. */
interface Open {
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
}: Open): readonly Metric[] {
  return [
    single('gauge', 'waymark_connections', {
      help: 'Open connections, websockets included.',
      value: connections,
    }),
    single('gauge', 'waymark_requests_in_flight', {
      help: 'Requests over HTTP that are being answered.',
      value: requests,
    }),
    single('gauge', 'waymark_websockets', {
      help: 'Open websockets.',
      value: websockets,
    }),
    single('gauge', 'waymark_tunnels', {
      help: 'Open websockets that are passed on to a source.',
      value: tunnels,
    }),
  ];
}
