import { Failure } from '../../core/values/failure.ts';
import type { JsonObject } from '../../core/values/json/json.ts';
import { retryUntilAborted } from '../../core/values/retry-loop.ts';
import type { Log } from '../../core/report/log.ts';
import {
  copyMissing,
  followProtocol,
  requireEnd,
  type CopyParts,
  Transactions,
} from './copy-rows.ts';
import { feedCharactersMax, feedRowsMax, centralRetry } from './limits.ts';

interface FollowerParts extends CopyParts {
  readonly log: Log;
  /** Copies the rows that the store lacks. */
  readonly copy: (signal: AbortSignal) => Promise<void>;
  /** Called when the follower has connected, and when it has applied rows of hooks. */
  readonly changed?: () => void;
  /** Called when the connection is made or lost. */
  readonly linked?: (connected: boolean, problem?: string) => void;
}

/**
 * Keeps the log of this node a copy of that of its centre (docs/design/nodes.md#following-the-log).
 */
export class Follower {
  readonly #parts: FollowerParts;
  readonly #stopped = new AbortController();
  #running: Promise<void> | undefined;
  #isConnected = false;
  #newest = 0;
  #problem: string | undefined;

  constructor(parts: FollowerParts) {
    this.#parts = parts;
  }

  /** Whether the feed is open, the newest seq of the centre, and why it is not open. */
  get state(): { isConnected: boolean; newest: number; problem: string | undefined } {
    const newest = Math.max(this.#newest, this.#parts.store.seq());
    return { isConnected: this.#isConnected, newest, problem: this.#problem };
  }

  /**
   * Follows until `stop`. Resolves to `other-log` when the log of the centre is no longer the one
   * that this is a copy of, and to `stopped` at a stop. Errors go to the log, and it tries again.
   */
  async run(): Promise<'other-log' | 'stopped'> {
    let outcome: 'other-log' | 'stopped' = 'stopped';
    const running = this.#run().then((is) => {
      outcome = is;
    });
    this.#running = running;
    await running;
    return outcome;
  }

  async stop(): Promise<void> {
    this.#stopped.abort();
    await this.#running;
  }

  async #run(): Promise<'other-log' | 'stopped'> {
    const { signal } = this.#stopped;
    let min = feedRowsMax;
    const attempt = async (connected: () => void): Promise<undefined> => {
      do {
        try {
          await this.#parts.central.readKey?.();
          await this.#catchUp(signal, min);
          min = feedRowsMax;
          if ((await this.#follow(signal, connected)) === 'behind') min = 1;
        } finally {
          this.#isConnected = false;
        }
      } while (min === 1 && !signal.aborted);
    };
    const isOtherLog = (error: unknown): boolean =>
      error instanceof Failure && error.code === 'conflict';
    const failed = (error: unknown): void => {
      if (isOtherLog(error)) throw error;
      this.#report(error);
    };
    try {
      // Nodes that were cut off together do not come back at the same moment.
      await retryUntilAborted(attempt, { ...centralRetry, isSpread: true, signal, failed });
      return 'stopped';
    } catch (error) {
      if (isOtherLog(error)) return 'other-log';
      throw error;
    }
  }

  async #catchUp(signal: AbortSignal, min: number): Promise<void> {
    const { copy } = this.#parts;
    await copyMissing(this.#parts, signal, {
      min,
      copy: () => copy(signal),
      ended: ({ seq }) => {
        this.#newest = seq;
      },
    });
  }

  /**
   * Follows the feed until it ends; resolves to `behind` if too many rows wait, which the caller
   * then copies.
   */
  async #follow(signal: AbortSignal, connected: () => void): Promise<'behind' | 'ended'> {
    const { store, central, node, changed, linked, log } = this.#parts;
    const { apikey, client } = central;
    const v = { node: node.name, protocol: followProtocol, ...store.rowLog.end() };
    const transactions = new Transactions();
    let seq = store.seq();
    let isAnswered = false;
    for await (const data of client.packets('svc1.log.follow', { v, apikey }, signal)) {
      if (!isAnswered) {
        isAnswered = true;
        this.#newest = requireEnd(data).seq;
        this.#isConnected = true;
        this.#problem = undefined;
        log.info({ seq }, `Connected to ${client.url}.`);
        connected();
        linked?.(true);
        changed?.();
        continue;
      }
      const { rows, newest } = requireRows(data);
      seq += rows.length;
      this.#newest = newest;
      transactions.add(rows, seq === newest);
      await this.#append(transactions.take());
      const waiting = transactions.size;
      const missing = newest - seq + waiting.rows;
      if (missing > feedRowsMax || waiting.characters > feedCharactersMax) return 'behind';
    }
    return 'ended';
  }

  async #append(rows: readonly string[]): Promise<void> {
    const { store, changed } = this.#parts;
    if (rows.length === 0) return;
    await store.rowLog.append(rows);
    if (rows.some((row) => hookRow.test(row))) changed?.();
  }

  /** The same problem is logged once. */
  #report(error: unknown): void {
    const { log } = this.#parts;
    const message = error instanceof Failure ? error.message : String(error);
    if (message === this.#problem) return;
    this.#problem = message;
    this.#parts.linked?.(false, message);
    const isBug = !(error instanceof Failure) || error.code === 'internal';
    log.warn({ ...(isBug && { err: error }) }, `Not connected to the centre: ${message}`);
  }
}

const hookRow = /"family":"(?:webhook|secret)"/;

function requireRows(data: JsonObject): { readonly rows: string[]; readonly newest: number } {
  const { rows, newest } = data;
  if (Array.isArray(rows) && typeof newest === 'number') return { rows: rows as string[], newest };
  throw new Failure('bad_gateway', 'The centre sent a packet without rows.');
}
