import assert from 'node:assert/strict';
import { readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { suite, test, type TestContext } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { startWaymark } from '../../../src/main.ts';
import { createLogs, silentLog } from '../../../src/core/report/log.ts';
import type { StoredResponse } from '../../../src/modules/cache/cached-response.ts';
import type { CacheStore } from '../../../src/modules/cache/cache-store.ts';
import { freshnessOf } from '../../../src/modules/cache/freshness.ts';
import { openCacheStore, prepareCacheStore } from '../../../src/modules/cache/open-cache-store.ts';
import { temporaryFolder } from '../../folder.ts';
import { rawExchange, readTestConfig, startSite } from '../../harness.ts';
import { httpSource } from '../../core/outbound/sources.ts';

const url = 'http://visible.example/shop/a';
const nowMs = Date.UTC(2026, 0, 2);
const large = Buffer.alloc(200_000, 'large');

function answer(id: string, more: Partial<StoredResponse> = {}): StoredResponse {
  const received = { status: 200, fields: [], requestMs: nowMs, responseMs: nowMs };
  return {
    id,
    url,
    rule: 'r1',
    plan: 'p1',
    status: 200,
    shownStatus: 200,
    fields: ['ETag', `"${id}"`],
    freshness: freshnessOf(received),
    varyNames: [],
    selecting: [''],
    range: undefined,
    bytesLength: 4,
    ...more,
  };
}

function open(t: TestContext, data: string): CacheStore {
  const answers = openCacheStore(
    { server: { data, workers: 1 }, fetch: { cacheBytesMax: 1e9 } },
    { now: () => nowMs, uptimeMs: () => 0, log: silentLog },
  );
  t.after(() => answers.close());
  return answers;
}

async function start(
  t: TestContext,
): Promise<{ readonly data: string; readonly answers: CacheStore }> {
  const data = await temporaryFolder(t);
  await prepareCacheStore(data);
  return { data, answers: open(t, data) };
}

const ids = (answers: CacheStore): readonly string[] =>
  answers.find(url).map((held) => held.answer.id);

suite('stored responses', () => {
  test('are found at once, and by another process as soon as they are written', async (t) => {
    const { data, answers } = await start(t);
    const held = answers.put(answer('a'), Buffer.from('text'), 0);
    assert.deepEqual(answers.find(url), [held]);
    await answers.settled();
    assert.deepEqual(answers.find(url), [held]);
    const [other] = open(t, data).find(url);
    assert.equal(JSON.stringify(other?.answer), JSON.stringify(held.answer));
  });

  test('hold no memory besides their content', async (t) => {
    const { answers } = await start(t);
    const { page } = answers.put(answer('a'), Buffer.from('text'), 0);
    assert.equal(page?.bytes.buffer.byteLength, 4);
  });

  for (const content of [Buffer.from('text'), large]) {
    test(`of ${content.length} bytes are loaded by a process that has not stored them`, async (t) => {
      const { data, answers } = await start(t);
      answers.put(answer('a', { bytesLength: content.length }), content, 0);
      await answers.settled();
      const another = open(t, data);
      const [held] = another.find(url);
      assert.ok(held !== undefined);
      assert.equal(await another.ready(held), true);
      const bytes = another.find(url)[0]?.page?.bytes;
      assert.ok(bytes?.equals(content));
    });
  }

  test('are replaced by newer ones with the same values of Vary, and no others are', async (t) => {
    const { answers } = await start(t);
    const german = { varyNames: ['accept-language'], selecting: ['=de;1'] };
    const english = { varyNames: ['accept-language'], selecting: ['=en;1'] };
    answers.put(answer('de', german), large, 0);
    answers.put(answer('en', english), large, 0);
    answers.put(answer('de2', german), large, 0);
    answers.put(answer('other', { rule: 'r2' }), large, 0);
    assert.deepEqual(ids(answers), ['other', 'de2', 'en']);
    await answers.settled();
    assert.deepEqual(ids(answers), ['other', 'de2', 'en']);
    answers.put(answer('edited', { plan: 'p2', ...german }), large, 0);
    assert.deepEqual(ids(answers), ['edited', 'other']);
  });

  test('are the same in all processes', async (t) => {
    const { data, answers } = await start(t);
    const another = open(t, data);
    answers.put(answer('a'), large, 0);
    await answers.settled();
    await turn();
    assert.deepEqual(ids(another), ['a']);
    another.put(answer('b'), large, 0);
    await another.settled();
    await turn();
    assert.deepEqual(ids(answers), ['b']);
    await answers.purge({ kind: 'rule', rule: 'r1' });
    await turn();
    assert.deepEqual([ids(answers), ids(another)], [[], []]);
  });

  test('are not stored if they were requested before a purge', async (t) => {
    const { data, answers } = await start(t);
    const another = open(t, data);
    const since = answers.epoch();
    await another.invalidate([url]);
    await turn();
    answers.put(answer('a'), large, since);
    await answers.settled();
    await turn();
    assert.deepEqual([ids(answers), ids(another)], [[], []]);
  });

  test('are removed if their file is corrupt', async (t) => {
    const { data, answers } = await start(t);
    answers.put(answer('aa', { bytesLength: large.length }), large, 0);
    await answers.settled();
    const folder = join(data, 'cache', 'content', 'aa');
    assert.deepEqual(await readdir(folder), ['aa']);
    await writeFile(join(folder, 'aa'), Buffer.alloc(large.length));
    const another = open(t, data);
    const [held] = another.find(url);
    assert.equal(held && (await another.ready(held)), false);
    await turn();
    assert.deepEqual([ids(another), ids(answers)], [[], []]);
  });
});

test('stored responses survive a restart of the server', async (t) => {
  const { origin } = await httpSource(t, (_, response) => {
    response.writeHead(200, { 'Cache-Control': 'max-age=3600' }).end(new Date().toISOString());
  });
  const source = { source: `${origin}/*` };
  const given = {
    ini: '[fetch]\nallow_private = 127.0.0.0/8\n',
    rules: [{ path: '/far/*', kind: 'content.fetch', enginedata: source }],
  };
  const first = await startSite(t, given);
  const request = 'GET /far/x HTTP/1.1\r\nHost: a.example\r\nConnection: close\r\n\r\n';
  const [, text] = (await first.raw(request)).split('\r\n\r\n');
  await first.waymark.stop(0);
  const config = await readTestConfig(first.iniFile);
  const destination = new PassThrough().resume();
  const logs = createLogs({ settings: config.log, destination, colour: false, now: Date.now });
  const second = await startWaymark(config, logs);
  t.after(() => second.stop(0));
  const answer = await rawExchange(Number(new URL(second.addresses[0] ?? '').port), request);
  assert.match(answer, /^Cache-Status: waymark; hit/m);
  assert.equal(answer.split('\r\n\r\n')[1], text);
});
