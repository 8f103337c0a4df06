import { pause } from '../../core/background/retry-loop.ts';
import type { Log } from '../../core/report/log.ts';
import { Failure } from '../../core/values/failure.ts';
import type { JsonObject } from '../../core/values/json/json.ts';
import {
  type CopyParts,
  Transactions,
  copyMissing,
  followProtocol,
  requireEnd,
} from './copy-rows.ts';
import { centralRetry } from './limits.ts';
import { rowLogPart } from './log/open-row-log.ts';

/**
 * Rows that a follower may lack while it applies its feed, and about how many characters of one
 * transaction: it copies more in a thread of its own, because they would delay visitors.
 */
export const feedRowsMax = 1_000;
const feedCharactersMax = 4 * 2 ** 20;

interface FollowerParts extends CopyParts {
  readonly log: Log;
  /** Copies the rows that the store lacks. */
  readonly copy: (signal: AbortSignal) => Promise<void>;
  /** Called when the follower has connected, and when it has applied rows of hooks. */
  readonly changed?: () => void;
}

/**
 * Keeps the log of this node a copy of that of its centre (docs/design/nodes.md#following-the-log).
 */
export class Follower {
  readonly #parts: FollowerParts;
  #isConnected = false;

  constructor(parts: FollowerParts) {
    this.#parts = parts;
  }

  /** Whether the feed is open. */
  get isConnected(): boolean {
    return this.#isConnected;
  }

  /**
   * Follows until the signal aborts. Resolves to `other-log` when the log of the centre is no
   * longer the one that this is a copy of, and to `stopped` at a stop. Rejects when the centre is
   * lost; the next call goes on from there.
   */
  async run(signal: AbortSignal, connected: () => void): Promise<'other-log' | 'stopped'> {
    let min = feedRowsMax;
    try {
      while (!signal.aborted) {
        await this.#parts.central.readKey?.();
        await this.#catchUp(signal, min);
        const end = await this.#follow(signal, connected);
        min = end === 'behind' ? 1 : feedRowsMax;
        if (end === 'ended') await pause(centralRetry.minMs, signal);
      }
      return 'stopped';
    } catch (error) {
      if (error instanceof Failure && error.code === 'conflict') return 'other-log';
      throw error;
    } finally {
      this.#isConnected = false;
    }
  }

  async #catchUp(signal: AbortSignal, min: number): Promise<void> {
    const { copy } = this.#parts;
    await copyMissing(this.#parts, signal, { min, copy: () => copy(signal) });
  }

  /**
   * Follows the feed until it ends; resolves to `behind` if too many rows wait, which the caller
   * then copies.
   */
  async #follow(signal: AbortSignal, connected: () => void): Promise<'behind' | 'ended'> {
    const { store, central, node, changed, log } = this.#parts;
    const { apikey, client } = central;
    const v = { node: node.name, protocol: followProtocol, ...store.part(rowLogPart).end() };
    const transactions = new Transactions();
    let seq = store.seq();
    let isAnswered = false;
    for await (const data of client.packets('svc1.log.follow', { v, apikey }, signal)) {
      if (!isAnswered) {
        isAnswered = true;
        requireEnd(data);
        this.#isConnected = true;
        log.info({ seq }, `Connected to ${client.url}.`);
        connected();
        changed?.();
        continue;
      }
      const { rows, newest } = requireRows(data);
      seq += rows.length;
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
    await store.part(rowLogPart).append(rows);
    if (rows.some((row) => hookRow.test(row))) changed?.();
  }
}

const hookRow = /"family":"(?:webhook|secret)"/;

function requireRows(data: JsonObject): { readonly rows: string[]; readonly newest: number } {
  const { rows, newest } = data;
  if (Array.isArray(rows) && typeof newest === 'number') return { rows: rows as string[], newest };
  throw new Failure('bad_gateway', 'The centre sent a packet without rows.');
}
