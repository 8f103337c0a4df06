import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdir, readFile, rm, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { type TestContext, suite, test } from 'node:test';
import type { AcmeConfig } from '../../../src/core/config/config.ts';
import { silentLog } from '../../../src/core/report/log.ts';
import { type AcmeOrder, OrderError } from '../../../src/modules/acme/acme-order.ts';
import { acmeServerName } from '../../../src/modules/acme/acme-store.ts';
import { AcmeFolder } from '../../../src/modules/acme/folder.ts';
import { acmeRestartMs } from '../../../src/modules/acme/limits.ts';
import {
  type RenewalParts,
  Renewals,
  acmeRetryAfterMsMax,
} from '../../../src/modules/acme/renewals.ts';
import { acmeRetryMs } from '../../../src/modules/acme/schedule.ts';
import { createAuthority } from '../../certificates.ts';
import { testTasks } from '../../core/background/test-tasks.ts';
import { temporaryFolder } from '../../folder.ts';
import { noDns, notOnDemand } from './no-dns.ts';

const authority = createAuthority();
const dayMs = 86_400_000;
const serverName = acmeServerName('https://ca.example/dir');

/**
 * The outcome of an order: the validity of the certificate in days, another host for which it is
 * issued, or an error.
 */
type Outcome = number | string | Error;

/** Starts Renewals with a clock that runs only while they wait, and a list of outcomes. */
async function startRenewals(
  t: TestContext,
  {
    dataFolder: before,
    hosts = ['shop.example'],
    outcomes,
    endAfterOrders,
    onOrder,
    onWait,
    renewalInfo = () => Promise.resolve(undefined),
    startMs = Date.now(),
  }: {
    readonly dataFolder?: string;
    readonly hosts?: readonly string[];
    readonly outcomes: readonly Outcome[];
    /** The number of the order during which the process ends. */
    readonly endAfterOrders?: number;
    /** Awaited before each order is answered. */
    readonly onOrder?: () => Promise<unknown>;
    /** Awaited while the clock runs. */
    readonly onWait?: (folder: AcmeFolder) => Promise<unknown>;
    readonly renewalInfo?: RenewalParts['renewalInfo'];
    readonly startMs?: number;
  },
) {
  const dataFolder = before ?? (await temporaryFolder(t));
  const acme: AcmeConfig = {
    hosts,
    directory: 'https://ca.example/dir',
    eabKid: undefined,
    eabKeyFile: undefined,
    profile: undefined,
    email: 'admin@example.com',
    caFile: undefined,
    allowPrivate: [],
    ...noDns,
    ...notOnDemand,
  };
  const folder = new AcmeFolder(dataFolder, acme);
  await folder.prepare();
  let nowMs = startMs;
  const orders: { readonly order: AcmeOrder; readonly atMs: number }[] = [];
  const lines: string[] = [];
  const write = (_fields: object, message: string) => lines.push(message);
  const { promise: ended, resolve: end } = Promise.withResolvers<undefined>();
  const parts: RenewalParts = {
    acme,
    store: folder,
    challenges: ['http-01', 'tls-alpn-01'],
    log: { ...silentLog, info: write, warn: write, error: write },
    tasks: testTasks(),
    now: () => nowMs,
    random: () => 0.5,
    async order(order, { saveChallenge, signal }) {
      orders.push({ order, atMs: nowMs });
      await saveChallenge({ type: 'http-01', token: 'a'.repeat(22), keyAuthorization: 'a.b' });
      assert.equal(await folder.keyAuthorization('a'.repeat(22)), 'a.b');
      await onOrder?.();
      const outcome = outcomes[orders.length - 1];
      if (orders.length === endAfterOrders) {
        end(undefined);
        await once(signal, 'abort');
        throw new Error('aborted');
      }
      if (outcome instanceof Error) throw outcome;
      if (typeof outcome === 'string') return (await authority).issue([outcome]);
      return (await authority).issue([order.host], { days: outcome ?? 90, keyId: 'a1b2' });
    },
    renewalInfo,
    async wait(ms, signal) {
      signal.throwIfAborted();
      if (orders.length >= outcomes.length) {
        end(undefined);
        await once(signal, 'abort');
        signal.throwIfAborted();
      }
      nowMs += ms;
      await onWait?.(folder);
      // Other tasks run meanwhile.
      await new Promise((resolve) => setImmediate(resolve));
    },
  };
  const renewals = new Renewals(parts);
  renewals.start();
  await ended;
  await renewals.stop();
  return { dataFolder, folder, orders, lines, startMs };
}

suite('renewals', () => {
  test('of one host wait while its state cannot be read, and those of others do not', async (t) => {
    const dataFolder = await temporaryFolder(t);
    // As after EMFILE or EIO: reading fails, and then it does not.
    const state = join(dataFolder, 'acme', serverName, 'broken.example.json');
    await mkdir(state, { recursive: true });
    const { orders, lines } = await startRenewals(t, {
      ...{ dataFolder, hosts: ['broken.example', 'shop.example'], outcomes: [90, 90] },
      onWait: () => rm(state, { recursive: true, force: true }),
    });
    assert.deepEqual(
      orders.map(({ order }) => order.host),
      ['shop.example', 'broken.example'],
    );
    const waits = lines.filter((line) => line.includes('broken.example waits: EISDIR'));
    assert.equal(waits.length, 1);
  });

  test('order no certificate anew that is there and cannot be read', async (t) => {
    const dataFolder = await temporaryFolder(t);
    const folder = join(dataFolder, 'acme', serverName);
    const file = join(folder, 'shop.example.pem');
    await mkdir(folder, { recursive: true });
    await symlink(file, file);
    let waits = 0;
    const { orders, lines } = await startRenewals(t, {
      ...{ dataFolder, outcomes: [90] },
      onWait: async () => {
        waits += 1;
        if (waits === 3) await rm(file);
      },
    });
    assert.equal(waits >= 3, true);
    assert.equal(orders.length, 1);
    assert.match(lines[0] ?? '', /The renewal of the certificate of shop\.example waits: .*shop/);
  });

  test('order a certificate at once, and the next one when a third of its validity is left', async (t) => {
    const { orders, folder, lines, startMs } = await startRenewals(t, { outcomes: [90, 90] });
    assert.equal(orders.length, 2);
    assert.equal(orders[0]?.atMs, startMs);
    // 91 days from yesterday on, two thirds of it less a fortieth.
    const dueMs = startMs - dayMs + 91 * dayMs * (2 / 3 - 1 / 40);
    assert.ok(Math.abs((orders[1]?.atMs ?? 0) - dueMs) < 60_000);
    const [certificate] = folder.certificates;
    const pem = await readFile(certificate?.certFile ?? '', 'utf8');
    assert.match(pem, /PRIVATE KEY[^]+BEGIN CERTIFICATE/);
    assert.equal((await folder.state('shop.example'))?.state, 'valid');
    assert.match(
      lines.join('\n'),
      /ca\.example has issued a certificate for shop\.example, valid until 20/,
    );
    assert.equal(await folder.keyAuthorization('a'.repeat(22)), undefined);
  });

  test('follow the window that the ACME server suggests, and name what they replace', async (t) => {
    const questions: string[] = [];
    const { orders, lines, startMs } = await startRenewals(t, {
      outcomes: [90, 90, 90],
      renewalInfo: ({ certificateId, nowMs }) => {
        questions.push(certificateId);
        // The second certificate has to be revoked, the first may stay for a while.
        const [from, to] = new Set(questions).size === 1 ? [70, 74] : [-3, -2];
        const [startsMs, endsMs] = [nowMs + from * dayMs, nowMs + to * dayMs];
        return Promise.resolve({
          ...{ startMs: startsMs, endMs: endsMs, holdsMs: 400 * dayMs },
          why: 'https://ca.example/why',
        });
      },
    });
    const days = orders.map(({ atMs }) => (atMs - startMs) / dayMs);
    assert.ok(Math.abs((days[1] ?? 0) - 72) < 0.01, `${days[1]}`);
    assert.ok(Math.abs((days[2] ?? 0) - 73) < 0.01, `${days[2]}`);
    const named = orders.map(({ order }) => order.replaces);
    assert.deepEqual(named, [undefined, ...new Set(questions)].slice(0, 3));
    assert.match(
      lines.join('\n'),
      /suggests to renew the certificate of shop\.example at 20\S+Z\. .*https:\/\/ca\.example\/why/,
    );
  });

  test('go on without an answer of the ACME server about them', async (t) => {
    const { orders, lines, startMs } = await startRenewals(t, {
      outcomes: [90, 90],
      renewalInfo: () => Promise.reject(new Error('connect ECONNREFUSED')),
    });
    const dueMs = startMs - dayMs + 91 * dayMs * (2 / 3 - 1 / 40);
    assert.ok(Math.abs((orders[1]?.atMs ?? 0) - dueMs) < 60_000);
    assert.equal(orders[1]?.order.replaces, undefined);
    assert.match(
      lines.join('\n'),
      /ca\.example does not say when to renew the certificate of shop\.example: connect ECONNREFUSED\. /,
    );
  });

  test('retry at growing intervals, with each challenge in turn', async (t) => {
    const failed = new Error('urn:ietf:params:acme:error:connection\n  refused');
    const { orders, lines } = await startRenewals(t, {
      outcomes: [failed, failed, failed, failed, 90],
    });
    const gaps = orders.slice(1).map(({ atMs }, at) => atMs - (orders[at]?.atMs ?? 0));
    assert.deepEqual(gaps.map(Math.round), acmeRetryMs.slice(0, 4));
    assert.deepEqual(
      orders.map(({ order }) => order.challenges[0]),
      ['http-01', 'tls-alpn-01', 'http-01', 'tls-alpn-01', 'http-01'],
    );
    assert.equal(new Set(orders.map(({ order }) => order.accountKey)).size, 1);
    assert.match(
      lines.find((line) => line.startsWith('No certificate')) ?? '',
      /^No certificate for shop\.example: urn:\S+ refused\. Retrying at 20\S+Z\.$/,
    );
  });

  test('obey the Retry-After of the ACME server', async (t) => {
    const hour = 3_600_000;
    const { orders } = await startRenewals(t, {
      outcomes: [
        new OrderError('no', String((2 * hour) / 1_000)),
        new OrderError('no', '0'),
        new OrderError('no', '99999999999'),
        90,
      ],
    });
    const gaps = orders.slice(1).map(({ atMs }, at) => Math.round(atMs - (orders[at]?.atMs ?? 0)));
    assert.deepEqual(gaps, [2 * hour, acmeRetryMs[1], acmeRetryAfterMsMax]);
  });

  test('are few if each certificate has expired by a wrong clock', async (t) => {
    const yearAheadMs = Date.now() + 365 * dayMs;
    const first = await startRenewals(t, { outcomes: [90, 90], startMs: yearAheadMs });
    const gap = (first.orders[1]?.atMs ?? 0) - yearAheadMs;
    assert.ok(gap > 9 * dayMs, `${gap} ms`);
    const { orders } = await startRenewals(t, {
      dataFolder: first.dataFolder,
      outcomes: [90],
      startMs: yearAheadMs + gap + dayMs,
    });
    assert.ok((orders[0]?.atMs ?? 0) > yearAheadMs + gap + 9 * dayMs);
  });

  test('continue after the disk was full', async (t) => {
    const dataFolder = await temporaryFolder(t);
    const { orders, lines } = await startRenewals(t, {
      dataFolder,
      outcomes: [90, 90],
      onOrder: () => rm(join(dataFolder, 'acme'), { recursive: true, force: true }),
      onWait: (folder) => folder.prepare(),
    });
    assert.equal(orders.length, 2);
    assert.match(lines.join('\n'), /Cannot store the state of the order for shop\.example\./);
  });

  test('of one host do not wait for another host whose orders fail', async (t) => {
    const { orders } = await startRenewals(t, {
      hosts: ['broken.example', 'shop.example'],
      outcomes: [new Error('no'), 90, new Error('no'), new Error('no')],
    });
    assert.deepEqual(
      orders.map(({ order }) => order.host),
      ['broken.example', 'shop.example', 'broken.example', 'broken.example'],
    );
  });

  test('repeat the order if the issued certificate is for another host', async (t) => {
    const { folder, lines } = await startRenewals(t, { outcomes: ['other.example', 90] });
    assert.match(lines[1] ?? '', /The issued certificate is not for shop\.example\. Retrying at/);
    assert.equal((await folder.state('shop.example'))?.failures, 0);
  });

  test('keep their schedule after a restart', async (t) => {
    const first = await startRenewals(t, { outcomes: [90] });
    const { orders } = await startRenewals(t, {
      dataFolder: first.dataFolder,
      outcomes: [90],
      startMs: first.startMs + dayMs,
    });
    assert.ok((orders[0]?.atMs ?? 0) > first.startMs + 50 * dayMs);
  });

  test('do not order at each start of a server that restarts again and again', async (t) => {
    const failed = new Error('no');
    const outcomes = [failed, failed, failed, failed, failed];
    const first = await startRenewals(t, { outcomes });
    const atMs = first.orders.at(-1)?.atMs ?? 0;
    const { orders } = await startRenewals(t, {
      dataFolder: first.dataFolder,
      outcomes: [failed],
      startMs: atMs + 1_000,
    });
    assert.equal(orders[0]?.atMs, atMs + acmeRestartMs);
  });

  test('repeat an order at once after the server was stopped during it', async (t) => {
    const first = await startRenewals(t, { outcomes: [90], endAfterOrders: 1 });
    assert.equal(
      (await first.folder.state('shop.example'))?.error,
      'The server stopped during the order.',
    );
    assert.equal(await first.folder.keyAuthorization('a'.repeat(22)), undefined);
    const startMs = first.startMs + 1_000;
    const { orders } = await startRenewals(t, {
      dataFolder: first.dataFolder,
      outcomes: [90],
      startMs,
    });
    assert.equal(orders[0]?.atMs, startMs);
  });

  test('wait before they repeat an order during which the server was killed', async (t) => {
    const { dataFolder, folder, startMs } = await startRenewals(t, {
      outcomes: [90],
      endAfterOrders: 1,
    });
    const since = new Date(startMs).toISOString();
    const state = { state: 'obtaining', since, failures: 0, next: null, error: null } as const;
    await folder.saveState('shop.example', state);
    const { orders } = await startRenewals(t, {
      dataFolder,
      outcomes: [90],
      startMs: startMs + 1_000,
    });
    assert.equal(orders[0]?.atMs, Date.parse(since) + acmeRestartMs);
  });
});
