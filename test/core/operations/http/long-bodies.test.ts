import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import type { WorkTurns } from '../../../../src/core/fair/turns.ts';
import { envelopeInTurns, isLongJson } from '../../../../src/core/operations/http/envelope.ts';
import { readBodyBytesMax } from '../../../../src/core/operations/limits.ts';
import type { Operation } from '../../../../src/core/operations/operation.ts';
import { WebSocketMessage } from '../../../../src/core/server/websocket/message.ts';
import type { Caller } from '../../../../src/core/values/key.ts';
import { batch } from '../../../../src/modules/batch/batch.ts';

const operations = Array.from({ length: 20_000 }, (_, at) => ({
  a: 'svc1.record.insert',
  v: { table: 'points', data: { x: at, name: `Point ${at}` } },
}));
const long = JSON.stringify({ v: { operations }, vk: 'all' });

/** Turns that end with each step. */
function shortTurns(): WorkTurns & { taken: number } {
  const turns = {
    taken: 0,
    isOver: () => true,
    next: () => {
      turns.taken += 1;
      return Promise.resolve();
    },
  };
  return turns;
}

suite('a long JSON', () => {
  test('of HTTP is parsed in turns', async () => {
    const turns = shortTurns();
    const envelope = await envelopeInTurns(batch, Buffer.from(long), turns);
    assert.deepEqual(envelope.v, { operations });
    assert.equal(envelope.vk, 'all');
    assert.ok(turns.taken > 10, `${turns.taken} turns`);
  });

  test('of a websocket is parsed in turns', async () => {
    const message = new WebSocketMessage(Buffer.from(`{"a":"svc1.batch",${long.slice(1)}`));
    const scopes: Caller['scopes'] = new Set(['design']);
    const caller: Caller = { keyId: 'k', scopes, address: '192.0.2.1', rate: undefined };
    const { signal } = new AbortController();
    const operation = batch as unknown as Operation;
    const read = message.parse({ find: () => operation }, { caller, signal: () => signal });
    assert.ok(read instanceof Promise);
    assert.deepEqual((await read).v, { operations });
  });

  test('begins with an array or object, behind blanks and a byte order mark', () => {
    const rest = 'x'.repeat(readBodyBytesMax);
    const starts = ['{', '[', ' \n\t\r{', '\ufeff[', '\ufeff  {', '_v.path=', '"', '', '\u00a0{'];
    assert.deepEqual(
      starts.map((start) => isLongJson(Buffer.from(start + rest))),
      [true, true, true, true, true, false, false, false, false],
    );
    assert.equal(isLongJson(Buffer.from('{"a": 1}')), false);
    assert.equal(isLongJson(Buffer.from(' '.repeat(readBodyBytesMax + 1))), false);
  });

  for (const [name, body, reason] of [
    ['is no JSON', long.slice(0, -1), /^The body is not JSON: Expected ',' or '}' after .*/],
    ['nests too deeply', `{"v":${'['.repeat(200)}${' '.repeat(readBodyBytesMax)}`, /nests deeper/],
    [
      'is one array',
      `[${operations.map(() => '"0123456789"').join(',')}${' '.repeat(readBodyBytesMax)}]`,
      /one JSON object/,
    ],
    [
      'has a number too long',
      long.replace('"x":7,', `"x":${'7'.repeat(500)},`),
      /operations\.7\.v\.data\.x has a number/,
    ],
  ] as const) {
    test(`is refused if it ${name}`, async () => {
      const read = envelopeInTurns(batch, Buffer.from(body), shortTurns());
      await assert.rejects(read, { name: 'Failure', message: reason });
    });
  }

  test('is refused if it is not UTF-8', async () => {
    const bytes = Buffer.from(long.replace('Point 9', 'Point \xff'), 'latin1');
    const read = envelopeInTurns(batch, bytes, shortTurns());
    await assert.rejects(read, { name: 'Failure', message: 'The body is not UTF-8.' });
  });
});
