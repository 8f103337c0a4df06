import { setTimeout as delay } from 'node:timers/promises';
import { Failure, isFailureCode } from '../model/failure.ts';
import { isJsonObject, type Json } from '../model/json.ts';
import type { Log } from '../observability/log.ts';
import type { Emit } from '../store/emit.ts';
import type { OutboxEntry, Settled } from '../store/outbox.ts';
import { followProtocol, type CopyParts } from './copy-rows.ts';
import { outboxPollMs, outboxSentAtOnce, reconnectMs, reconnectMsMax } from './limits.ts';

/** The dependencies of an OutboxSender; `now` in milliseconds since 1970. */
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

  /** Sends until the signal aborts. */
  async run(signal: AbortSignal): Promise<void> {
    const { store, log } = this.#parts;
    let [waitMs, said] = [reconnectMs, ''];
    const pause = (ms: number) => delay(ms, undefined, { signal }).catch(() => undefined);
    while (!signal.aborted) {
      try {
        const entries = store.outbox.waiting(outboxSentAtOnce);
        if (entries.length > 0) await this.#send(entries);
        else await pause(outboxPollMs);
        await store.outbox.tidy();
        [waitMs, said] = [reconnectMs, ''];
      } catch (error) {
        const message = error instanceof Failure ? error.message : String(error);
        if (message !== said) log.warn({ err: error }, `The outbox waits: ${message}`);
        said = message;
        await pause(waitMs);
        waitMs = Math.min(2 * waitMs, reconnectMsMax);
      }
    }
  }

  async #send(entries: readonly OutboxEntry[]): Promise<void> {
    const { store, central, node, emit, log } = this.#parts;
    const v = {
      ...{ node: node.name, protocol: followProtocol, log: store.rowLog.identity().id },
      entries: entries.map(({ id, a, v: input, dtu_txn }) => ({ id, a, v: input, dtu_txn })),
    };
    const { client, apikey } = central;
    const { data } = await client.call('svc1.node.insert', { v, apikey });
    const results: readonly Json[] =
      isJsonObject(data) && Array.isArray(data.results) ? (data.results as readonly Json[]) : [];
    const settled = entries.map((entry, at) => this.#settledBy(entry, results[at]));
    await store.outbox.settle(settled);
    for (const { n, refused } of settled) {
      if (refused === undefined) continue;
      const what = `entry ${n} of the outbox of ${node.name}`;
      const message = `The centre has refused ${what}: ${refused.message}`;
      log.warn({ n, code: refused.code }, message);
      await emit('error.detected', { code: 'outbox_refused', message, id: `${node.name}:${n}` });
    }
  }

  #settledBy({ n, id }: OutboxEntry, result: Json | undefined): Settled {
    if (isJsonObject(result) && result.id === id) {
      const { seq, error } = result;
      if (typeof seq === 'number') return { n, seq };
      if (isJsonObject(error) && isFailureCode(error.code) && typeof error.message === 'string') {
        const at = new Date(this.#parts.now()).toISOString();
        return { n, refused: { code: error.code, message: error.message, at } };
      }
    }
    throw new Failure('bad_gateway', 'The centre did not say what it did with an entry.');
  }
}
