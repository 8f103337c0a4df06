import { pause } from '../../core/background/retry-loop.ts';
import type { BackgroundTasks, RunningTask, Task } from '../../core/background/tasks.ts';
import type { Emit } from '../../core/log/events/emit.ts';
import type { Store } from '../../core/log/store.ts';
import type { Log } from '../../core/report/log.ts';
import { newId } from '../../core/values/clock.ts';
import { Failure } from '../../core/values/failure.ts';
import { type JsonObject, isJsonObject } from '../../core/values/json/json.ts';
import { type CopyInThread, type CopyParts, followProtocol } from './copy-rows.ts';
import { copyAgain } from './copy.ts';
import { Follower } from './follower.ts';
import { centralRetry, reportMs } from './limits.ts';
import { OutboxSender } from './outbox-sender.ts';
import { deliveriesPart } from '../webhooks/log/delivery-log.ts';
import { nodesPart } from './log/node-states.ts';
import { outboxPart } from './log/outbox-entries.ts';
import { rowLogPart } from './log/open-row-log.ts';
import { storedHooks } from '../webhooks/log/family.ts';

/** The most hooks with a queue in the report of a node. */
const reportedQueuesMax = 200;

interface NodeServiceParts extends CopyParts {
  readonly log: Log;
  readonly tasks: Pick<BackgroundTasks, 'start'>;
  /** The data folder. */
  readonly folder: string;
  readonly openStore: (folder: string) => Promise<Store>;
  readonly copyInThread: CopyInThread;
  readonly version: string;
  readonly emit: Emit;
  /** Milliseconds since 1970. */
  readonly now: () => number;
}

/**
 * The background work of a node that follows a centre: it follows the log, gets the secrets of its
 * hooks, and reports to the centre (docs/design/nodes.md).
 */
export class NodeService {
  readonly #parts: NodeServiceParts;
  readonly #follower: Follower;
  /** Whether the log that it has copied cannot continue; a failure does not change that. */
  #hasToCopy = false;
  readonly #copied = Promise.withResolvers<undefined>();
  readonly #process = newId();
  #running: readonly RunningTask[] = [];
  #needsSecrets = false;
  /** Interrupts the wait for the next report. */
  #hurry = new AbortController();

  constructor(parts: NodeServiceParts) {
    this.#parts = parts;
    this.#follower = new Follower({
      ...parts,
      copy: (signal) => parts.copyInThread(parts, parts.folder, signal),
      changed: () => {
        this.#needsSecrets = true;
        this.#hurry.abort();
      },
    });
  }

  /**
   * Resolves when a new copy of the log waits for a restart, because the old one cannot continue.
   */
  get copied(): Promise<void> {
    return this.#copied.promise;
  }

  start(): void {
    const { tasks } = this.#parts;
    const following: Task = {
      name: 'centre_follower',
      title: 'The copying of the log of the centre',
      meanwhile: 'The node serves what it has.',
      // Nodes that were cut off together do not come back at the same moment.
      retryMs: centralRetry,
      run: (signal, well) => this.#follow(signal, well),
      failed: (error) => {
        this.#link(false, error instanceof Failure ? error.message : String(error));
      },
    };
    const reporting: Task = {
      name: 'centre_report',
      title: 'The report to the centre',
      retryMs: { minMs: 1_000, maxMs: reportMs },
      run: (signal, well) => this.#report(signal, well),
    };
    const sending = new OutboxSender(this.#parts).task;
    this.#running = [following, reporting, sending].map((task) => tasks.start(task));
  }

  async stop(): Promise<void> {
    await Promise.all(this.#running.map((one) => one.stop()));
  }

  async #follow(signal: AbortSignal, well: () => void): Promise<void> {
    if (!this.#hasToCopy && (await this.#followLog(signal, well)) === 'stopped') return;
    this.#hasToCopy = true;
    await this.#copyAgain(signal);
  }

  /** Follows the log of the centre until the node is stopped, or has to copy it again. */
  async #followLog(signal: AbortSignal, well: () => void): Promise<'stopped' | 'other'> {
    const { log, store } = this.#parts;
    const isOlder = store.part(rowLogPart).identity().follows?.isOlder === true;
    const connected = (): void => {
      well();
      this.#link(true);
    };
    if (!isOlder && (await this.#follower.run(signal, connected)) === 'stopped') return 'stopped';
    const reason = isOlder
      ? 'This version may know changes that the one before did not'
      : 'The log of the centre is not the one that this node has copied';
    log.warn(
      { seq: store.seq() },
      `${reason}: the node copies it again, and serves what it has until then.`,
    );
    this.#link(false, `${reason}: the node copies it again.`);
    return 'other';
  }

  /** Copies the log again; the call after a failure copies the rows that are missing. */
  async #copyAgain(signal: AbortSignal): Promise<void> {
    const { log, folder, central } = this.#parts;
    await central.readKey?.();
    await copyAgain(folder, this.#parts, signal);
    log.info({}, 'The new copy is complete. The server restarts with it.');
    this.#copied.resolve(undefined);
  }

  #link(connected: boolean, problem?: string): void {
    const { store, now, log } = this.#parts;
    const since = new Date(now()).toISOString();
    const link = { connected, since, ...(problem !== undefined && { problem }) };
    store
      .part(nodesPart)
      .setLink(link)
      .catch((error: unknown) => {
        log.error({ err: error }, 'Cannot record the connection to the centre.');
      });
  }

  async #report(signal: AbortSignal, well: () => void): Promise<void> {
    while (!signal.aborted) {
      this.#hurry = new AbortController();
      await this.#parts.central.readKey?.();
      if (this.#follower.isConnected) {
        if (this.#needsSecrets) await this.#getSecrets();
        await this.#sendReport();
        well();
      }
      await pause(reportMs, AbortSignal.any([signal, this.#hurry.signal]));
    }
  }

  async #getSecrets(): Promise<void> {
    const { central, node, store } = this.#parts;
    this.#needsSecrets = false;
    try {
      const v = { node: node.name, role: node.role, protocol: followProtocol };
      const { apikey, client } = central;
      const { data } = await client.call('svc1.node.secrets', { v, apikey });
      const rows = isJsonObject(data) && Array.isArray(data.rows) ? data.rows : [];
      await store.part(rowLogPart).reveal(rows as readonly string[]);
    } catch (error) {
      this.#needsSecrets = true;
      throw error;
    }
  }

  async #sendReport(): Promise<void> {
    const { central, node, store, version, now } = this.#parts;
    const { name, role, place } = node;
    const { waiting, refused } = store.part(outboxPart).counts();
    const v = {
      ...{ node: name, role, version, protocol: followProtocol, process: this.#process },
      ...(place !== undefined && { place }),
      ...{ seq: store.seq(), now: now(), waiting, refused },
      deliveries: queueStates(store),
    };
    await central.client.call('svc1.node.report', { v, apikey: central.apikey });
  }
}

/** The queues of hooks that have had events here, by the ids of the hooks. */
function queueStates(store: Store): JsonObject {
  const deliveries = store.part(deliveriesPart);
  const states: [string, JsonObject][] = [];
  for (const { hook, insertedSeq } of store.of(storedHooks).hooksAfter('')) {
    const newest = deliveries.newest(insertedSeq);
    if (newest === 0) continue;
    const [last] = deliveries.attempts(insertedSeq, undefined);
    const outcome = last === undefined ? {} : { outcome: last.outcome, at: last.at };
    states.push([hook.id, { newest, ...deliveries.depth(insertedSeq), ...outcome }]);
    if (states.length >= reportedQueuesMax) break;
  }
  return Object.fromEntries(states);
}
