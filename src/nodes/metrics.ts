import { singleMetric, type Metric } from '../observability/metrics.ts';
import type { Store } from '../store/store.ts';

/** The metrics of a node with a centre, from its store; none for a node without one. */
export function nodeMetrics(
  { central }: { readonly central: string | undefined },
  { outbox, nodes }: Pick<Store, 'outbox' | 'nodes'>,
): readonly Metric[] {
  if (central === undefined) return [];
  const { waiting, refused } = outbox.counts();
  return [
    singleMetric('gauge', 'waymark_central_connected', {
      help: 'Whether the node follows its centre at this moment.',
      value: nodes.link()?.connected === true ? 1 : 0,
    }),
    singleMetric('gauge', 'waymark_outbox_waiting', {
      help: 'Entries of the outbox that wait for the centre.',
      value: waiting,
    }),
    singleMetric('gauge', 'waymark_outbox_refused', {
      help: 'Entries of the outbox that the centre has refused.',
      value: refused,
    }),
  ];
}
