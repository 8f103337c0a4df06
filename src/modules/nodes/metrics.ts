import { singleMetric, type Metric } from '../../core/report/metrics.ts';
import type { Store } from '../../core/log/store.ts';

/** The metrics of a node with a centre, or of a cluster, from its store; none for other ones. */
export function nodeMetrics(
  { central }: { readonly central: string | undefined },
  {
    outbox,
    nodes,
    shared,
    sharedPlace,
  }: Pick<Store, 'outbox' | 'nodes' | 'shared' | 'sharedPlace'>,
): readonly Metric[] {
  if (shared !== undefined) {
    return [
      singleMetric('gauge', 'waymark_cluster_connected', {
        help: 'Whether the node reaches the log of its cluster at this moment.',
        value: shared.state().isConnected ? 1 : 0,
      }),
      singleMetric('gauge', 'waymark_cluster_position', {
        help: 'The position up to which the node has applied the log of its cluster.',
        value: sharedPlace()?.position ?? 0,
      }),
    ];
  }
  if (central === undefined) return [];
  const { waiting, refused, bytes } = outbox.counts();
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
    singleMetric('gauge', 'waymark_outbox_bytes', {
      help: 'Bytes of the entries of the outbox that wait or were refused.',
      value: bytes,
    }),
    singleMetric('gauge', 'waymark_outbox_entries_max', {
      help: 'Entries that the outbox may have.',
      value: outbox.max.entries,
    }),
    singleMetric('gauge', 'waymark_outbox_bytes_max', {
      help: 'Bytes that the entries of the outbox may have.',
      value: outbox.max.bytes,
    }),
  ];
}
