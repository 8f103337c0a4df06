import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import type { AccessEntry } from '../../../src/core/report/access-entry.ts';
import { Failure } from '../../../src/core/values/failure.ts';
import {
  type AccessRows,
  LiveAccess,
  liveReadersMax,
  liveRowsMax,
} from '../../../src/modules/status/live-access.ts';

const entry = (target: string, more: Partial<AccessEntry> = {}): AccessEntry => ({
  address: '192.0.2.7',
  method: 'GET',
  target,
  host: 'shop.example',
  httpVersion: '1.1',
  userAgent: '',
  referer: '',
  accept: '*/*',
  acceptLanguage: '',
  purpose: '',
  status: 200,
  bytes: 5,
  durationMs: 1.234,
  source: 'disk:site',
  keyId: undefined,
  cut: false,
  ...more,
});

const all = (): boolean => true;

const client = { keyId: 'one', address: '192.0.2.1' };

suite('the live access log', () => {
  test('gives each reader the lines that match, with keys masked as in the access log', async () => {
    const live = new LiveAccess({ now: () => 0 });
    assert.equal(live.isWatched, false);
    const abort = new AbortController();
    const reader = live.read(({ status }) => status >= 400, client)(abort.signal);
    const coming = reader.next();
    assert.equal(live.isWatched, true);
    live.add(entry('/a'));
    live.add(entry('/b?apikey=wmk_secret', { status: 404, referer: 'http://x/?k=wmk_other' }));
    const { value } = await coming;
    const [row] = value?.rows ?? [];
    assert.equal(value?.rows.length, 1);
    assert.equal(row?.target, '/b?apikey=wmk_…');
    assert.equal(row.referer, 'http://x/?k=wmk_…');
    assert.equal(row.ms, 1.23);
    assert.equal('user_agent' in row, false);
    abort.abort();
    assert.equal((await reader.next()).done, true);
    assert.equal(live.isWatched, false);
  });

  test('drops the oldest lines of a slow reader, and says how many', async () => {
    const live = new LiveAccess({ now: () => 0 });
    const abort = new AbortController();
    const reader = live.read(all, client)(abort.signal);
    const first = reader.next();
    live.add(entry('/first'));
    await first;
    const count = 3 * liveRowsMax;
    for (let at = 0; at < count; at += 1) live.add(entry(`/${at}`));
    const { value } = await reader.next();
    const { rows = [], dropped = 0 } = value ?? {};
    assert.ok(rows.length <= liveRowsMax, String(rows.length));
    assert.equal(rows.length + dropped, count);
    assert.equal(rows.at(-1)?.target, `/${count - 1}`);
    abort.abort();
  });

  test('refuses more readers than its limit', async () => {
    const live = new LiveAccess({ now: () => 0 });
    const abort = new AbortController();
    for (let at = 0; at < liveReadersMax / 2; at += 1)
      void live.read(all, client)(abort.signal).next();
    assert.throws(
      () => live.read(all, client),
      (error) => error instanceof Failure && error.limit === 'live_access',
    );
    abort.abort();
    while (live.isWatched) await Promise.resolve();
    live.read(all, client);
  });

  test('tells other processes that it has readers, and exchanges lines with them', async () => {
    const told: boolean[] = [];
    const sent = Promise.withResolvers<AccessRows>();
    const peers = {
      watch: (isWatching: boolean) => told.push(isWatching),
      send: (lines: AccessRows) => {
        sent.resolve(lines);
      },
    };
    const live = new LiveAccess({ now: () => 0, peers });
    live.setWatchedElsewhere(true);
    live.add(entry('/mine'));
    assert.equal((await sent.promise).rows[0]?.target, '/mine');
    live.setWatchedElsewhere(false);
    assert.equal(live.isWatched, false);
    const abort = new AbortController();
    const reader = live.read(all, client)(abort.signal);
    const coming = reader.next();
    live.receive({ ...(await sent.promise), dropped: 2 });
    const { value } = await coming;
    assert.deepEqual([value?.rows[0]?.target, value?.dropped], ['/mine', 2]);
    abort.abort();
    await reader.next();
    assert.deepEqual(told, [true, false]);
  });
});
