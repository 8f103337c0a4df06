import { deserialize, serialize } from 'node:v8';
import type { Config, ConfigResult } from '../config/config.ts';
import { isCidr, parseCidr } from '../model/cidr.ts';
import type { Metric, ProcessMetrics } from '../observability/metrics.ts';

/** What a worker tells the process that leads it. */
export type WorkerMessage =
  | { readonly kind: 'serving'; readonly addresses: readonly string[] }
  | { readonly kind: 'stopped'; readonly cut: number }
  | { readonly kind: 'ask-config' }
  | MetricsFromWorker;

/** What a worker is told. */
export type LeaderMessage =
  | { readonly kind: 'stop' }
  /** The access log file was renamed. */
  | { readonly kind: 'reopen-logs' }
  /** The configuration in force. */
  | { readonly kind: 'config'; readonly packed: Packed<Config> }
  /** What the ini file has come to. */
  | { readonly kind: 'reload'; readonly packed: Packed<ConfigResult> }
  | MetricsFromLeader;

/** What a worker asks of the process that leads it, and what it tells when it is asked. */
export type MetricsFromWorker =
  | { readonly kind: 'ask-metrics'; readonly request: number }
  | {
      readonly kind: 'told-metrics';
      readonly request: number;
      readonly metrics: readonly Metric[];
    };

/** What the leading process asks of each worker, and what it answers to the one that asked. */
export type MetricsFromLeader =
  | { readonly kind: 'tell-metrics'; readonly request: number }
  | {
      readonly kind: 'all-metrics';
      readonly request: number;
      readonly processes: readonly ProcessMetrics[];
    };

/** A text that stands for a value of a type; for another process of the same version. */
type Packed<T> = string & { readonly packed?: T };

/** Makes a text of a configuration, or of what reading one came to. */
export function pack<T>(value: T): Packed<T> {
  return serialize(plain(value)).toString('base64');
}

/** What a text was made of, frozen as it was. */
export function unpack<T>(text: Packed<T>): T {
  return revived(deserialize(Buffer.from(text, 'base64'))) as T;
}

/**
 * A network has methods, with which its text makes it again. A Set of that stands for it, lest it
 * be mistaken: a schema may hold everything that there is in JSON.
 */
function plain(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value;
  if (isCidr(value)) return new Set([value.text]);
  if (Array.isArray(value)) return value.map(plain);
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, plain(member)]));
}

function revived(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value;
  if (value instanceof Set) return Object.freeze(parseCidr(String([...value][0])));
  for (const [name, member] of Object.entries(value)) Reflect.set(value, name, revived(member));
  return Object.freeze(value);
}
