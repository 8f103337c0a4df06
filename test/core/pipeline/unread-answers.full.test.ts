import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type TestContext, suite, test } from 'node:test';
import { SharedLimit } from '../../../src/core/fair/shared-limit.ts';
import { UnreadAnswers } from '../../../src/core/fair/shared-limits.ts';
import { Failure } from '../../../src/core/values/failure.ts';
import { type Answer, type TestSite, startSite } from '../../harness.ts';
import { openSocket } from './raw-client.ts';

const mib = 1 << 20;
/** The largest page that an insert can make. */
const pageBytes = 16 * mib - 1_000;
const caller = { keyId: undefined, address: '192.0.2.1' } as const;

function answersUpTo(perAddressMax: number) {
  const limit = new SharedLimit({
    what: 'answers',
    limit: 'unread_answers',
    held: 'long',
    max: 2 * perAddressMax,
    perAddressMax,
  });
  return { limit, unread: new UnreadAnswers(limit) };
}

suite('unread responses', () => {
  test('count shared content once, until the last of them is read', () => {
    const { limit, unread } = answersUpTo(3 * mib);
    const page = Buffer.alloc(2 * mib);
    const frees = [page, page, page.subarray(mib)].map((bytes) => unread.hold(caller, [bytes]));
    assert.equal(limit.size, 2 * mib);
    assert.throws(() => unread.hold(caller, [Buffer.alloc(2 * mib)]), Failure);
    for (const free of frees) {
      assert.equal(limit.size, 2 * mib);
      free();
      free();
    }
    assert.equal(limit.size, 0);
  });

  test('count each separately if encrypted, and not at all if small', () => {
    const { limit, unread } = answersUpTo(3 * mib);
    const page = Buffer.alloc(mib);
    const frees = [1, 2, 3].map(() => unread.hold(caller, [page], { encrypted: true }));
    assert.throws(() => unread.hold(caller, [page], { encrypted: true }), Failure);
    unread.hold(caller, [Buffer.alloc(1_000)]);
    assert.equal(limit.size, 3 * mib);
    for (const free of frees) free();
    assert.equal(limit.size, 0);
  });

  test('hold no memory if a part of them is refused', async () => {
    const { limit, unread } = answersUpTo(3 * mib);
    const freed = unread.freed();
    const pieces = [Buffer.alloc(2 * mib), Buffer.alloc(2 * mib)];
    assert.throws(() => unread.hold(caller, pieces), Failure);
    assert.equal(limit.size, 0);
    await freed;
  });
});

/** Of the page `/small`. */
const smallBytes = 200_000;

/** A site with a number of pages of 16 MiB, at `/0`, `/1` …, and a page `/small`. */
function startLarge(t: TestContext, pages: number, ini = ''): Promise<TestSite> {
  const content = (at: number): string => String(at).repeat(pageBytes);
  const rules = Array.from({ length: pages }, (_, at) => ({
    path: `/${at}`,
    content: content(at),
  }));
  return startSite(t, {
    ini,
    rules: [...rules, { path: '/small', content: 's'.repeat(smallBytes) }],
  });
}

/** A response that the client has not read. */
interface Unread {
  /** Reads the whole response. */
  readonly read: () => Promise<{ readonly status: string; readonly content: Buffer }>;
}

let asked = 0;

/** Requests a target; resolves once the log has the request. */
async function askUnread(t: TestContext, site: TestSite, path: string): Promise<Unread> {
  asked += 1;
  const target = `${path}${path.includes('?') ? '&' : '?'}n${asked}=`;
  const fields = `Host: localhost:${site.port}\r\nConnection: close\r\n`;
  const socket = await openSocket(t, site.port);
  socket.write(`GET ${target} HTTP/1.1\r\n${fields}\r\n`);
  await site.untilLogged(new RegExp(`[?&]n${asked}= `));
  return {
    async read() {
      const bytes = Buffer.concat((await socket.toArray()) as Buffer[]);
      const end = bytes.indexOf('\r\n\r\n');
      return { status: bytes.toString('latin1', 9, 12), content: bytes.subarray(end + 4) };
    },
  };
}

const heldBytes = (): number => process.memoryUsage().arrayBuffers;

suite('a page of 16 MiB that its clients do not read', () => {
  test('is in memory once for all get requests, whatever their query', async (t) => {
    const site = await startLarge(t, 1);
    const path = `/svc1/userinterface/get?_v.origin=${site.url}&_v.path=/0`;
    const first = await askUnread(t, site, path);
    const before = heldBytes();
    const others: Unread[] = [];
    for (let n = 0; n < 20; n += 1) others.push(await askUnread(t, site, path));
    const grown = heldBytes() - before;
    assert.ok(grown < 4 * pageBytes, `${grown} bytes for 20 answers`);
    for (const answer of [first, others.at(-1)]) {
      const { status, content } = (await answer?.read()) ?? {};
      assert.equal(status, '200');
      const { data } = JSON.parse(content?.toString() ?? '') as Answer;
      assert.equal(data.content.length, pageBytes);
    }
  });

  test('is in memory once for all websockets that request it', async (t) => {
    const site = await startLarge(t, 1);
    const v = { origin: site.url, path: '/0' };
    for (const a of ['svc1.userinterface.get', 'svc1.userinterface.get_content']) {
      const sockets = await Promise.all(Array.from({ length: 16 }, () => site.socket()));
      const before = heldBytes();
      for (const [id, { websocket }] of sockets.entries()) {
        websocket.pause();
        websocket.send(JSON.stringify({ a, v, id }));
      }
      const { websocket: last } = sockets.at(-1) ?? (await site.socket());
      const answer = once(last, 'message');
      last.resume();
      const [text] = (await answer) as [Buffer];
      const grown = heldBytes() - before;
      // The client in this process holds the last response twice: in pieces and joined.
      assert.ok(grown < 8 * pageBytes, `${grown} bytes for 16 answers of ${a}`);
      const { id, data } = JSON.parse(text.toString()) as Answer;
      assert.deepEqual([id, data.content.length], [15, pageBytes]);
      for (const { websocket } of sockets) websocket.terminate();
    }
  });
});

test('an address that has many large unread pages gets 429 for another one', async (t) => {
  const site = await startLarge(t, 7);
  const answers: Unread[] = [];
  for (let at = 0; at < 6; at += 1) answers.push(await askUnread(t, site, `/${at}`));
  const metrics = await (await fetch(`${site.url}/svc1/metrics`)).text();
  assert.match(metrics, new RegExp(`^waymark_unread_answers_bytes ${6 * pageBytes}$`, 'm'));
  const refused = await fetch(`${site.url}/6`);
  assert.deepEqual([refused.status, refused.headers.get('retry-after')], [429, '1']);
  assert.match(site.logged(), /unread_answers/);
  const place = `_v.origin=${site.url}&_v.path=/6`;
  const operation = await fetch(`${site.url}/svc1/userinterface/get?${place}`);
  assert.equal(operation.status, 429);
  assert.equal(((await operation.json()) as Answer).error?.code, 'rate_limited');
  const socket = await site.socket();
  const { error } = await socket.call('svc1.userinterface.get', { origin: site.url, path: '/6' });
  assert.equal(error?.code, 'rate_limited');
  // A page that is already in memory takes nothing, and a key has its own share.
  answers.push(await askUnread(t, site, '/5'));
  const keyed = await fetch(`${site.url}/6`, { headers: { apikey: site.adminKey } });
  assert.equal((await keyed.arrayBuffer()).byteLength, pageBytes);
  // A response that is read to its end frees its share.
  assert.equal((await answers[0]?.read())?.content.length, pageBytes);
  assert.equal((await fetch(`${site.url}/6`)).status, 200);
});

test('a prepared page that cannot be held counts once for the rate of its path', async (t) => {
  const rate = '[rate.small]\npath = /small\nrate = 1/h\nburst = 3\nstatus = 503\n';
  const site = await startLarge(t, 6, rate);
  const small = `${site.url}/small`;
  assert.equal((await (await fetch(small)).text()).length, smallBytes);
  const answers: Unread[] = [];
  for (let at = 0; at < 6; at += 1) answers.push(await askUnread(t, site, `/${at}`));
  const statuses: number[] = [];
  while (statuses.at(-1) !== 503) statuses.push((await fetch(small)).status);
  assert.equal(statuses[0], 429);
  assert.equal(statuses.length, 3, String(statuses));
});
