import { single, type Metric } from '../observability/metrics.ts';
import type { StoreCounts } from './store.ts';

/** The metrics of a store. */
export function storeMetrics({ seq, rules, keys, bytes }: StoreCounts): readonly Metric[] {
  return [
    single('gauge', 'waymark_store_seq', {
      help: 'Position of the newest change in the log.',
      value: seq,
    }),
    single('gauge', 'waymark_store_rules', { help: 'Page rules.', value: rules }),
    single('gauge', 'waymark_store_keys', { help: 'API keys.', value: keys }),
    single('gauge', 'waymark_store_bytes', { help: 'Size of the data file.', value: bytes }),
  ];
}
