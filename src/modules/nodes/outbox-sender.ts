import { pause } from '../../core/background/retry-loop.ts';
import type { Task } from '../../core/background/tasks.ts';
import type { Emit } from '../../core/log/events/emit.ts';
import type { Log } from '../../core/report/log.ts';
import { Failure, isFailureCode } from '../../core/values/failure.ts';
import { type Json, isJsonObject } from '../../core/values/json/json.ts';
import { type CopyParts, followProtocol } from './copy-rows.ts';
import { centralRetry, centralTimeoutMs } from './limits.ts';
import type { OutboxEntry, Settled } from './log/outbox.ts';
import { outboxPart } from './log/outbox-entries.ts';
import { rowLogPart } from './log/open-row-log.ts';

/**
 * Entries of the outbox in one request, and about how many characters of them: many proxies take
 * no request of more than 1 MiB.
 */
const outboxSentAtOnce = 200;
const outboxSentCharactersMax = 2 ** 18;

/** The slowest connection, in characters a millisecond, over which a large entry gets through. */
const outboxCharactersPerMs = 4;

/** How often the node checks an empty outbox. */
const outboxPollMs = 50;

/** `now` in milliseconds since 1970. */
interface OutboxSenderParts extends CopyParts {
  readonly log: Log;
  readonly now: () => number;
  readonly emit: Emit;
}

/**
 * Sends the outbox of a node to its centre, in order (docs/design/nodes.md#outbox). After a lost
 * answer, the same entries are sent again; the centre recognises them by their ids.
 */
export class OutboxSender {
  readonly #parts: OutboxSenderParts;

  constructor(parts: OutboxSenderParts) {
    this.#parts = parts;
  }

  get task(): Task {
    return {
      name: 'outbox',
      title: 'The sending of the outbox to the centre',
      meanwhile: 'The entries wait.',
      retryMs: centralRetry,
      run: (signal, well) => this.#run(signal, well),
    };
  }

  async #run(signal: AbortSignal, well: () => void): Promise<void> {
    const { store } = this.#parts;
    while (!signal.aborted) {
      const entries = store.part(outboxPart).waiting(outboxSentAtOnce, outboxSentCharactersMax);
      if (entries.length > 0) await this.#send(entries);
      else await pause(outboxPollMs, signal);
      await store.part(outboxPart).tidy();
      well();
    }
  }

  async #send(entries: readonly OutboxEntry[]): Promise<void> {
    const { store, node, emit, log } = this.#parts;
    const settled = await this.#settle(entries);
    await store.part(outboxPart).settle(settled);
    for (const { n, refused } of settled) {
      if (refused === undefined) continue;
      const what = `entry ${n} of the outbox of ${node.name}`;
      const message = `The centre has refused ${what}: ${refused.message}`;
      log.warn({ n, code: refused.code }, message);
      await emit('error.detected', { code: 'outbox_refused', message, id: `${node.name}:${n}` });
    }
  }

  /**
   * What the centre did with the first ones of some entries: with all of them, unless it does not
   * take the request because of one of them, which nests too deeply, say.
   */
  async #settle(entries: readonly OutboxEntry[]): Promise<readonly Settled[]> {
    try {
      const results = await this.#ask(entries);
      return entries.map((entry, at) => this.#settledBy(entry, results[at]));
    } catch (error) {
      const [first] = entries;
      if (!(error instanceof Failure) || !aboutContent.has(error.code) || !first) throw error;
      if (entries.length > 1) return this.#settle(entries.slice(0, entries.length >> 1));
      // If the centre takes an empty request of this node, the entry is the reason.
      await this.#ask([]);
      return [{ n: first.n, refused: this.#refusal(error) }];
    }
  }

  async #ask(entries: readonly OutboxEntry[]): Promise<readonly Json[]> {
    const { store, central, node } = this.#parts;
    const v = {
      ...{ node: node.name, protocol: followProtocol, log: store.part(rowLogPart).identity().id },
      entries: entries.map(({ id, a, v: input, dtu_txn }) => ({ id, a, v: input, dtu_txn })),
    };
    const { client, apikey } = central;
    const characters = JSON.stringify(v).length;
    const timeoutMs = centralTimeoutMs + Math.ceil(characters / outboxCharactersPerMs);
    const { data } = await client.call('svc1.node.insert', { v, apikey, timeoutMs });
    return isJsonObject(data) && Array.isArray(data.results)
      ? (data.results as readonly Json[])
      : [];
  }

  #settledBy({ n, id }: OutboxEntry, result: Json | undefined): Settled {
    if (isJsonObject(result) && result.id === id) {
      const { seq, error } = result;
      if (typeof seq === 'number') return { n, seq };
      if (isJsonObject(error) && isFailureCode(error.code) && typeof error.message === 'string') {
        return { n, refused: this.#refusal({ code: error.code, message: error.message }) };
      }
    }
    throw new Failure('bad_gateway', 'The centre did not say what it did with an entry.');
  }

  #refusal({ code, message }: Pick<Failure, 'code' | 'message'>): NonNullable<Settled['refused']> {
    return { code, message, at: new Date(this.#parts.now()).toISOString() };
  }
}

/** Failures of a whole request that one of its entries can cause. */
const aboutContent: ReadonlySet<string> = new Set(['too_large', 'invalid']);
