import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type TestContext, suite, test } from 'node:test';
import type { Store } from '../../../src/core/log/store.ts';
import { silentLog } from '../../../src/core/report/log.ts';
import { AcmeFolder } from '../../../src/modules/acme/folder.ts';
import { Renewals, acmeTurnPollMs, acmeYieldMs } from '../../../src/modules/acme/renewals.ts';
import { acmeRetryMs } from '../../../src/modules/acme/schedule.ts';
import { openSharedAcme } from '../../../src/modules/acme/shared-acme.ts';
import { createAuthority } from '../../certificates.ts';
import { testTasks } from '../../core/background/test-tasks.ts';
import { MemoryLog } from '../../core/log/shared/memory-log.ts';
import { openNode } from '../../core/log/shared/open-node.ts';
import { temporaryFolder } from '../../folder.ts';
import { noDns, notOnDemand } from './no-dns.ts';

const authority = createAuthority();
const key = randomBytes(32).toString('base64');
const startMs = Date.now();
const hourMs = 3_600_000;
/** How long after its begin an order of a killed node is repeated. */
const repeatMs = 1.2 * (acmeRetryMs[0] ?? 0);

/** A clock that runs only while all nodes wait. */
class Clock {
  nowMs = startMs;
  readonly #waiting = new Set<{ readonly atMs: number; readonly resolve: () => void }>();
  #running = 0;
  #arrived = Promise.withResolvers<undefined>();

  /** Counts a node that waits or works. */
  enter(): void {
    this.#running += 1;
  }

  leave(): void {
    this.#running -= 1;
    this.#arrived.resolve(undefined);
  }

  async wait(ms: number, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    return new Promise((resolve, reject) => {
      const one = { atMs: this.nowMs + ms, resolve };
      this.#waiting.add(one);
      this.#arrived.resolve(undefined);
      signal.addEventListener('abort', () => {
        this.#waiting.delete(one);
        reject(signal.reason as Error);
      });
    });
  }

  /** Runs until a condition holds. */
  async runUntil(isOver: () => boolean): Promise<void> {
    while (!isOver()) {
      this.#arrived = Promise.withResolvers<undefined>();
      if (this.#waiting.size < this.#running) await this.#arrived.promise;
      else this.#advance();
    }
  }

  #advance(): void {
    const [next] = [...this.#waiting].toSorted((one, other) => one.atMs - other.atMs);
    if (next === undefined) throw new Error('nobody waits');
    this.#waiting.delete(next);
    this.nowMs = Math.max(this.nowMs, next.atMs);
    next.resolve();
  }
}

interface Order {
  readonly node: string;
  readonly host: string;
  readonly afterMs: number;
}

interface Rig {
  readonly clock: Clock;
  readonly orders: readonly Order[];
  readonly log: MemoryLog;
  /** Starts a node, or another process in the data folder of a store. */
  readonly start: (name: string, options?: NodeOptions) => Promise<StartedNode>;
}

interface NodeOptions {
  readonly hosts?: readonly string[];
  readonly store?: Store;
  /** The number of the orders that fail; the node is killed in one of Infinity. */
  readonly fails?: number;
  readonly keys?: string;
  /** How long certificates are valid, besides the day before. */
  readonly days?: number;
}

interface StartedNode {
  readonly store: Store;
  readonly lines: readonly string[];
}

function rig(t: TestContext): Rig {
  const [clock, log] = [new Clock(), new MemoryLog()];
  const orders: Order[] = [];
  const started: Renewals[] = [];
  // node:test runs these in order: nothing may read a store that is closed.
  t.after(() => Promise.all(started.map((one) => one.stop())));
  const start: Rig['start'] = async (name, options = {}) => {
    const { hosts = ['a.example'], fails = 0, keys = key, days = 90 } = options;
    const store = options.store ?? (await openNode(t, log));
    const acme = {
      ...{
        hosts,
        directory: 'https://ca.example/dir',
        allowPrivate: [],
        email: undefined,
        ...noDns,
        ...notOnDemand,
      },
      ...{ eabKid: undefined, eabKeyFile: undefined, profile: undefined, caFile: undefined },
    };
    const folder = new AcmeFolder(await temporaryFolder(t), acme);
    const keyFile = join(await temporaryFolder(t), 'cluster.key');
    await writeFile(keyFile, keys);
    const shared = openSharedAcme(store.shared ?? assert.fail(), { acme, keyFile, folder });
    const lines: string[] = [];
    const write = (_fields: object, message: string) => lines.push(message);
    let failed = 0;
    const renewals = new Renewals({
      ...{ acme, store: shared, challenges: ['http-01'], now: () => clock.nowMs },
      log: { ...silentLog, info: write, warn: write, error: write },
      tasks: testTasks(),
      cluster: {
        node: name,
        take: (lost) => shared.take(lost),
        release: () => shared.release(),
        encryptAgain: () => shared.encryptAgain(),
      },
      random: () => 0.5,
      async order({ host }, { signal }) {
        orders.push({ node: name, host, afterMs: clock.nowMs - startMs });
        if (fails === Infinity) {
          clock.leave();
          await once(signal, 'abort');
          clock.enter();
        }
        failed += 1;
        if (failed <= fails) throw new Error('refused');
        return (await authority).issue([host], { days });
      },
      renewalInfo: () => Promise.resolve(undefined),
      wait: (ms, signal) => clock.wait(ms, signal),
    });
    clock.enter();
    renewals.start();
    started.push(renewals);
    return { store, lines };
  };
  return { clock, orders, log, start };
}

suite('renewals in a cluster', () => {
  test('are made by one node, and the others use the certificate', async (t) => {
    const { clock, orders, start } = rig(t);
    await Promise.all(['one', 'other', 'third'].map((name) => start(name, { days: 1 })));
    // A third of two days before the end, and a little more.
    await clock.runUntil(() => clock.nowMs > startMs + 6 * hourMs);
    assert.equal(orders.length, 1);
    await clock.runUntil(() => clock.nowMs > startMs + 8 * hourMs);
    assert.equal(orders.length, 2);
  });

  test('are of the hosts in the ini file of each node', async (t) => {
    const { clock, orders, start } = rig(t);
    await start('one', { hosts: ['a.example', 'b.example'] });
    await start('other', { hosts: ['b.example', 'c.example'] });
    await clock.runUntil(() => clock.nowMs > startMs + hourMs);
    const hosts = orders.map(({ host }) => host).toSorted();
    assert.deepEqual(hosts, ['a.example', 'b.example', 'c.example']);
    assert.equal(orders.find(({ host }) => host === 'c.example')?.node, 'other');
  });

  test('are repeated by another node first if an order fails', async (t) => {
    const { clock, orders, start } = rig(t);
    await start('one', { fails: 9 });
    await clock.runUntil(() => orders.length === 1);
    await start('other');
    await clock.runUntil(() => orders.length > 1);
    assert.deepEqual(
      orders.map(({ node }) => node),
      ['one', 'other'],
    );
    const [, { afterMs } = assert.fail()] = orders;
    const nextMs = acmeRetryMs[0] ?? 0;
    assert.ok(afterMs >= nextMs && afterMs < nextMs + acmeYieldMs, `after ${afterMs} ms`);
  });

  test('go on at another process if one is killed during an order', async (t) => {
    const { clock, orders, start } = rig(t);
    const { store } = await start('one', { fails: Infinity });
    await clock.runUntil(() => orders.length === 1);
    const { lines } = await start('other', { store });
    await clock.runUntil(() => lines.some((line) => line.includes('has issued')));
    assert.deepEqual(
      orders.map(({ node }) => node),
      ['one', 'other'],
    );
    const [, { afterMs } = assert.fail()] = orders;
    assert.ok(afterMs >= repeatMs && afterMs <= repeatMs + acmeTurnPollMs, `after ${afterMs} ms`);
  });

  test('are not made by a node that lacks the secrets key, which says so once', async (t) => {
    const { clock, orders, start } = rig(t);
    await start('one');
    await clock.runUntil(() => orders.length === 1);
    const other = Buffer.alloc(32, 1).toString('base64');
    const { lines } = await start('other', { keys: other, hosts: ['a.example', 'b.example'] });
    await clock.runUntil(() => clock.nowMs > startMs + hourMs);
    assert.equal(orders.length, 1);
    const [line = '', ...more] = lines;
    assert.match(line, /^This machine cannot order certificates: .* does not have: copy that file/);
    assert.deepEqual(more, []);
  });
});
