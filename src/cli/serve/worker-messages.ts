import { deserialize, serialize } from 'node:v8';
import type { Config, ConfigResult } from '../../core/config/config.ts';
import type { IniSection } from '../../core/config/ini-section.ts';
import type { Taken, TokenOrder } from '../../core/fair/token-buckets.ts';
import type { ProcessState } from '../../core/background/tasks.ts';
import { isCidr, parseCidr } from '../../core/values/network/cidr.ts';
import type { AccessRows } from '../../modules/status/live-access.ts';
import type { ListeningSocket } from './inherited-sockets.ts';

/** Requests to other processes that wait for a reply at once, per process and purpose. */
export const pendingRepliesMax = 4_096;

/** A message of a worker to the leading process. */
export type WorkerMessage =
  | { readonly kind: 'serving'; readonly addresses: readonly string[] }
  | { readonly kind: 'stopped'; readonly cut: number }
  /** The worker cannot serve. */
  | { readonly kind: 'failed'; readonly message: string }
  | { readonly kind: 'get-config' }
  | AccessMessage
  | MetricsFromWorker
  | TokensFromWorker
  | CountedByWorker;

/** A message of the leading process to a worker. */
export type LeaderMessage =
  | { readonly kind: 'stop' }
  /** Another process serves: end with the last connection. */
  | { readonly kind: 'drain' }
  /** The access log file was renamed: open it again. */
  | { readonly kind: 'reopen-logs' }
  /** The configuration in use, and listening sockets that the leading process has inherited. */
  | {
      readonly kind: 'config';
      readonly serialized: Serialized<Config>;
      readonly sockets: readonly ListeningSocket[];
    }
  /** The result of reading the ini file again. */
  | { readonly kind: 'reload'; readonly serialized: Serialized<ConfigResult> }
  /** The key of session tickets in base64: before the configuration, and after each change. */
  | { readonly kind: 'ticket-key'; readonly key: string }
  | AccessMessage
  | MetricsFromLeader
  | TokensFromLeader
  | CountedByLeader;

/**
 * Messages about the live access log. A worker says whether it has readers, and the leading process
 * whether others have; a worker sends its lines, and the leading process passes them on.
 */
export type AccessMessage =
  | { readonly kind: 'watch-access'; readonly isWatching: boolean }
  | { readonly kind: 'access-lines'; readonly lines: AccessRows };

/** Messages of a worker about metrics: a request for those of all, and its own. */
export type MetricsFromWorker =
  | { readonly kind: 'get-all-metrics'; readonly request: number }
  | {
      readonly kind: 'own-metrics';
      readonly request: number;
      readonly own: ProcessState;
    };

/** Messages of the leading process about metrics: a request to each worker, and the answer. */
export type MetricsFromLeader =
  | { readonly kind: 'get-metrics'; readonly request: number }
  | {
      readonly kind: 'all-metrics';
      readonly request: number;
      readonly processes: readonly ProcessState[];
    };

/** A worker asks for a token of a rate (`[rate.<name>]`); the leading process has the buckets. */
export interface TokensFromWorker {
  readonly kind: 'take-token';
  readonly request: number;
  readonly order: TokenOrder;
}

/** A worker has given out a token, or has got it back: the leading process counts for all. */
export interface CountedByWorker {
  readonly kind: 'count-token';
  readonly order: TokenOrder;
  readonly tokens: 1 | -1;
}

/** What the leading process has counted for a client. */
export interface CountedByLeader {
  readonly kind: 'counted-token';
  readonly order: TokenOrder;
  /** Milliseconds until its bucket is full. */
  readonly fullMs: number;
}

/** The reply. */
export interface TokensFromLeader {
  readonly kind: 'token';
  readonly request: number;
  readonly taken: Taken;
}

/** A serialized value for another process of the same version. */
type Serialized<T> = string & { readonly value?: T };

/**
 * Serializes a configuration, or the result of reading one, without its sections: each process has
 * those of its own modules.
 */
export function serializeConfig<T extends Config | ConfigResult>(value: T): Serialized<T> {
  return serialize(plain(withSections(value, []))).toString('base64');
}

/** Restores a serialized value, frozen as the original, with the sections of this process. */
export function deserializeConfig<T extends Config | ConfigResult>(
  text: Serialized<T>,
  sections: readonly IniSection[],
): T {
  const value = revived(deserialize(Buffer.from(text, 'base64'))) as T;
  return withSections(value, sections);
}

function withSections<T extends Config | ConfigResult>(
  value: T,
  sections: readonly IniSection[],
): T {
  if ('config' in value) return { ...value, config: withSections(value.config, sections) };
  return 'ok' in value ? value : (Object.freeze({ ...value, sections }) as T);
}

/**
 * Replaces networks, which have methods, by a Set with their text: a Set cannot be confused with a
 * value of a schema, which is JSON.
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

/** Requests that wait for a reply with their number, for a limited time and in limited number. */
export class PendingReplies<Answer> {
  readonly #resolves = new Map<number, (answer: Answer | undefined) => void>();
  #latest = 0;

  /**
   * Sends a request; resolves to its reply, or to undefined if none arrives in time. A request
   * beyond `pendingRepliesMax` is not sent: the other process has stopped to reply, and what is
   * sent to it would fill the memory.
   */
  request(send: (request: number) => void, waitMs: number): Promise<Answer | undefined> {
    if (this.#resolves.size >= pendingRepliesMax) return Promise.resolve(undefined);
    this.#latest += 1;
    const request = this.#latest;
    return new Promise((resolve) => {
      const timer = setTimeout(() => {
        this.resolve(request, undefined);
      }, waitMs);
      this.#resolves.set(request, (answer) => {
        clearTimeout(timer);
        resolve(answer);
      });
      send(request);
    });
  }

  /** Passes a reply on to the request with its number. */
  resolve(request: number, answer: Answer | undefined): void {
    this.#resolves.get(request)?.(answer);
    this.#resolves.delete(request);
  }
}
