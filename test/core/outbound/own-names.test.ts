import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createDialler } from '../../../src/core/outbound/dialler.ts';
import { ownNamesOf } from '../../../src/core/outbound/own-names.ts';
import { parseCidr } from '../../../src/core/values/network/cidr.ts';
import { createAsk } from '../../../src/modules/acme/permissions.ts';
import { httpSource } from './sources.ts';

const rule = '0193d8c1-0000-7000-8000-000000000001';
const names = ownNamesOf({ log: 'l', node: 'web-1' });
const { ofNode, ofLog } = names;
const elsewhere = ownNamesOf({ log: 'l', node: 'web-2' });

for (const [via, isOwn] of [
  ['', false],
  ['1.1 fred', false],
  [`1.1 ${ofLog}`, true],
  [`1.1 ${ofNode}`, true],
  [`2 ${ofNode}-proxy-app`, true],
  [`1.1 ${ofNode}-proxy-app, 1.1 apache (a proxy behind it)`, true],
  [`1.1 ${ofLog}-${rule}`, true],
  [`1.1 ${ofLog}x`, false],
  // Every visitor knows the ids of page rules.
  [`1.1 waymark-${rule}`, false],
  [`1.1 ${elsewhere.ofLog}`, true],
  [`1.1 ${elsewhere.ofNode}`, false],
  [`1.1 ${elsewhere.ofNode}-proxy-app`, false],
  ['1.1 waymark-proxy-app', false],
  [Array.from({ length: 1_000 }, (_, at) => `1.1 waymark-${at}`).join(), false],
  [`${'1.1 waymark-x, '.repeat(1_000)}1.1 ${ofLog}`, true],
] as const) {
  test(`a request with Via: ${via.slice(0, 60)} is ${isOwn ? 'its own' : 'of another server'}`, () => {
    assert.equal(names.isIn(via), isOwn);
  });
}

test('each request of a dialler names the server, also beside a Via of a hook', async (t) => {
  const seen: (string | undefined)[] = [];
  const { origin } = await httpSource(t, ({ headers }, response) => {
    seen.push(headers.via);
    response.end();
  });
  const allowPrivate = parseCidr('127.0.0.0/8') ?? assert.fail();
  const times = { connectTimeoutMs: 5_000, timeoutMs: 5_000 };
  const dialler = createDialler({ ...times, allowPrivate: [allowPrivate].flat(), via: ofLog });
  t.after(() => dialler.close());
  const request = { origin, target: '/', method: 'GET', fields: [] };
  const { signal } = new AbortController();
  const fields = ['Via', '1.1 fred'];
  await dialler.exchange({ ...request, fields, body: Buffer.alloc(0) });
  (await dialler.send({ ...request, body: undefined, signal })).discard();
  (await dialler.send({ ...request, fields, body: undefined, signal })).discard();
  const { ask, close } = createAsk(`${origin}/`, ofNode);
  t.after(close);
  await ask('shop.example');
  const own = `1.1 ${ofLog}`;
  assert.deepEqual(seen, [`1.1 fred, ${own}`, own, '1.1 fred', `1.1 ${ofNode}`]);
});
