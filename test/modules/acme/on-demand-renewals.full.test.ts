import assert from 'node:assert/strict';
import { once } from 'node:events';
import { suite, test, type TestContext } from 'node:test';
import { AcmeFolder } from '../../../src/modules/acme/folder.ts';
import { Renewals } from '../../../src/modules/acme/renewals.ts';
import type { AcmeConfig } from '../../../src/core/config/config.ts';
import { silentLog } from '../../../src/core/report/log.ts';
import { createAuthority } from '../../certificates.ts';
import { temporaryFolder } from '../../folder.ts';
import { noDns, notOnDemand } from './no-dns.ts';
import { testTasks } from '../../core/background/test-tasks.ts';

const authority = createAuthority();
const hourMs = 3_600_000;
const dayMs = 24 * hourMs;
const host = 'shop.example';

type Permission = 'allowed' | 'refused' | 'unknown';

/** Starts Renewals of names on demand with a clock that runs by six hours while they wait. */
async function startOnDemand(
  t: TestContext,
  {
    permission,
    used,
    fails = false,
    namesMax = 10,
    names = [host],
    until,
  }: {
    readonly permission: (questions: number) => Permission;
    /** Whether the certificate is in use all the time. */
    readonly used: boolean;
    readonly fails?: boolean;
    readonly namesMax?: number;
    readonly names?: readonly string[];
    /** When to stop, by the numbers of questions and orders, and what is left of the names. */
    readonly until: (questions: number, orders: number, left: number) => boolean;
  },
) {
  const acme: AcmeConfig = {
    ...{ hosts: [], directory: 'https://ca.example/dir', email: undefined, profile: undefined },
    ...{ eabKid: undefined, eabKeyFile: undefined, caFile: undefined, allowPrivate: [] },
    ...noDns,
    ...notOnDemand,
  };
  const folder = new AcmeFolder(await temporaryFolder(t), acme);
  await folder.prepare();
  const startMs = Date.now();
  let nowMs = startMs;
  for (const [at, name] of names.entries()) await folder.onDemand.use(name, startMs + at);
  let questions = 0;
  const orders: { readonly host: string; readonly atMs: number }[] = [];
  const lines: string[] = [];
  const write = (_fields: object, message: string) => lines.push(message);
  const { promise: ended, resolve: end } = Promise.withResolvers<undefined>();
  const renewals = new Renewals({
    acme,
    store: folder,
    challenges: ['http-01'],
    log: { ...silentLog, info: write, warn: write, error: write },
    tasks: testTasks(),
    now: () => nowMs,
    random: () => 0.5,
    async order(order) {
      orders.push({ host: order.host, atMs: nowMs });
      if (fails) throw new Error('refused');
      return (await authority).issue([order.host], { days: 90 });
    },
    renewalInfo: () => Promise.resolve(undefined),
    async wait(_ms, signal) {
      signal.throwIfAborted();
      const left = await folder.onDemand.hosts();
      if (until(questions, orders.length, left.size)) {
        end(undefined);
        await once(signal, 'abort');
        signal.throwIfAborted();
      }
      nowMs += 6 * hourMs;
      if (used && left.has(host)) await folder.onDemand.use(host, nowMs);
      await new Promise((resolve) => setImmediate(resolve));
    },
    onDemand: {
      permissions: {
        confirm: () => {
          questions += 1;
          return Promise.resolve(permission(questions));
        },
      },
      ...{ ordersPerMinute: 10, namesMax },
    },
  });
  renewals.start();
  await ended;
  await renewals.stop();
  const left = [...(await folder.onDemand.hosts()).keys()].toSorted();
  const pair = await folder.keyPair(host);
  return { left, pair, orders, lines, days: orders.map(({ atMs }) => (atMs - startMs) / dayMs) };
}

suite('renewals of certificates on demand', { concurrency: 4 }, () => {
  test('ask again, and go on as long as the name is allowed', async (t) => {
    const { left, days } = await startOnDemand(t, {
      permission: () => 'allowed',
      used: true,
      until: (_, orders) => orders === 3,
    });
    assert.deepEqual(left, [host]);
    assert.ok((days[1] ?? 0) > 55 && (days[1] ?? 0) < 65, String(days));
  });

  test('forget a name that is not allowed any more', async (t) => {
    const { left, pair, orders, lines } = await startOnDemand(t, {
      permission: (questions) => (questions === 1 ? 'allowed' : 'refused'),
      used: true,
      until: (questions) => questions === 2,
    });
    assert.deepEqual([left, pair, orders.length], [[], undefined, 1]);
    assert.match(lines.join('\n'), /for shop\.example: it is not allowed any more\./);
  });

  test('wait while nobody says whether a name is allowed', async (t) => {
    const { left, days } = await startOnDemand(t, {
      permission: (questions) => (questions > 1 && questions < 5 ? 'unknown' : 'allowed'),
      used: true,
      until: (_, orders) => orders === 2,
    });
    assert.deepEqual([left, days.length], [[host], 2]);
  });

  test('forget a name that nobody uses, without a question', async (t) => {
    let questions = 0;
    const { left, pair, lines } = await startOnDemand(t, {
      permission: (count) => {
        questions = count;
        return 'allowed';
      },
      used: false,
      until: (_, orders, names) => orders === 1 && names === 0,
    });
    assert.deepEqual([left, pair, questions], [[], undefined, 1]);
    assert.match(lines.join('\n'), /for shop\.example: nobody uses it\./);
  });

  test('forget a name whose orders fail', async (t) => {
    const { left, orders, lines } = await startOnDemand(t, {
      ...{ permission: () => 'allowed', used: true, fails: true },
      until: (_, _orders, names) => names === 0,
    });
    assert.deepEqual([left, orders.length], [[], 3]);
    assert.match(lines.join('\n'), /for shop\.example: its orders fail\./);
  });

  test('forget the names that were not used for the longest time', async (t) => {
    const { left, orders } = await startOnDemand(t, {
      ...{ permission: () => 'allowed', used: false, namesMax: 2 },
      names: ['a.example', 'b.example', 'c.example', 'd.example'],
      until: (_, count) => count === 2,
    });
    assert.deepEqual(left, ['c.example', 'd.example']);
    assert.deepEqual(orders.map((one) => one.host).toSorted(), left);
  });
});
