import { setTimeout as delay } from 'node:timers/promises';
import { Failure } from '../model/failure.ts';
import { isJsonObject, type JsonObject } from '../model/json.ts';
import type { Log } from '../observability/log.ts';
import type { WaymarkClient } from '../outbound/waymark-client.ts';
import type { Store } from '../store/store.ts';
import { appliedCharactersMax, appliedRowsMax, reconnectMs, reconnectMsMax } from './limits.ts';
import { Transactions } from './transactions.ts';

/** A node that follows a centre, as its ini file describes it. */
interface FollowingNode {
  readonly name: string;
  readonly role: 'replica' | 'counter';
  readonly place: string | undefined;
}

/** The centre of a node, with the node's key for it. */
interface Central {
  readonly client: WaymarkClient;
  readonly apikey: string;
}

/** The version of the protocol that this node speaks (docs/design/nodes.md). */
export const followProtocol = 1;

/** The dependencies of a follower. */
export interface FollowerParts {
  readonly store: Store;
  readonly central: Central;
  readonly node: FollowingNode;
  readonly log: Log;
  /** Called when the follower has connected, and when it has applied rows of hooks. */
  readonly changed?: () => void;
  /** Called when the connection is made or lost. */
  readonly linked?: (connected: boolean, problem?: string) => void;
}

/** The log of the centre, at the moment of an answer. */
interface LogEnd {
  readonly log: string;
  readonly seq: number;
  readonly txn: string;
}

/** How many rows a follower lacks before it copies them over HTTP instead of its websocket. */
const copiedRowsMin = 5_000;

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

  #isStopped(): boolean {
    return this.#stopped.signal.aborted;
  }

  async #run(): Promise<'other-log' | 'stopped'> {
    const { signal } = this.#stopped;
    let waitMs = reconnectMs;
    while (!this.#isStopped()) {
      try {
        await this.catchUp(signal);
        await this.#follow(signal, () => {
          waitMs = reconnectMs;
        });
      } catch (error) {
        if (this.#isStopped()) break;
        if (error instanceof Failure && error.code === 'conflict') return 'other-log';
        this.#report(error);
      } finally {
        this.#isConnected = false;
      }
      // Nodes that were cut off together do not come back at the same moment.
      const jitterMs = waitMs * (0.5 + Math.random() / 2);
      await delay(jitterMs, undefined, { signal }).catch(() => undefined);
      waitMs = Math.min(2 * waitMs, reconnectMsMax);
    }
    return 'stopped';
  }

  /** Copies rows over HTTP until fewer than `min` are missing. Rejects with Failures. */
  async catchUp(signal: AbortSignal, min = copiedRowsMin): Promise<void> {
    const { store, central, node } = this.#parts;
    for (;;) {
      const end = await readCentralEnd(this.#parts);
      this.#newest = end.seq;
      if (store.rowLog.identity().id !== end.log) throw otherLog();
      if (end.seq - store.seq() < min || signal.aborted) return;
      const { log } = this.#parts;
      log.info({ rows: end.seq - store.seq() }, `Copying the log of ${central.client.url}.`);
      const { apikey, client } = central;
      const v = { node: node.name, protocol: followProtocol, ...store.rowLog.end() };
      await this.#apply(client.lines('svc1.log.rows', { v, apikey }, signal), signal);
    }
  }

  /** Applies rows whose last one ends the log. */
  async #apply(pieces: AsyncIterable<string[]>, signal: AbortSignal): Promise<void> {
    const transactions = new Transactions();
    for await (const rows of pieces) {
      if (signal.aborted) return;
      transactions.add(rows, false);
      if (transactions.exceeds(atOnce)) await this.#append(transactions.take());
    }
    if (signal.aborted) return;
    transactions.add([], true);
    await this.#append(transactions.take());
  }

  async #follow(signal: AbortSignal, connected: () => void): Promise<void> {
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
    }
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

const atOnce = { rows: appliedRowsMax, characters: appliedCharactersMax };
const hookRow = /"family":"(?:webhook|secret)"/;

/** The end of the log of the centre. Rejects as WaymarkClient.call does. */
export async function readCentralEnd({
  central: { client, apikey },
  node,
}: Pick<FollowerParts, 'central' | 'node'>): Promise<LogEnd> {
  const v = { node: node.name, protocol: followProtocol };
  const { data } = await client.call('svc1.log.end', { v, apikey });
  return requireEnd(data);
}

/** The failure of a request when the log of the centre is another one. */
function otherLog(): Failure {
  return new Failure('conflict', 'The centre has another log than the one that this node copies.');
}

function requireEnd(data: unknown): LogEnd {
  const { log, seq, txn } = isJsonObject(data) ? data : ({} as JsonObject);
  if (typeof log === 'string' && typeof seq === 'number' && typeof txn === 'string') {
    return { log, seq, txn };
  }
  throw new Failure('bad_gateway', 'The centre did not say where its log ends.');
}

function requireRows(data: JsonObject): { readonly rows: string[]; readonly newest: number } {
  const { rows, newest } = data;
  if (Array.isArray(rows) && typeof newest === 'number') return { rows: rows as string[], newest };
  throw new Failure('bad_gateway', 'The centre sent a packet without rows.');
}
