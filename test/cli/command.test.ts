import assert from 'node:assert/strict';
import { test } from 'node:test';
import { table } from '../../src/cli/remote/client-command.ts';
import { startClient } from './here.ts';

/** CSI of C1, ESC, an override of the direction, marks of it, DEL, a line separator. */
const hostile = 'a\x9b31m\x1b[2J\u202eb\u2066\u2069\u200e\u200f\u061c\x7f\x85\u2028c\r\n\td';
const control = /(?!\n)[\p{Cc}\p{Bidi_Control}\u2028\u2029]/u;

test('no command prints control characters of visitors', async (t) => {
  const { site, out, waymark } = await startClient(t);
  const notes = { name: 'notes', schema: { properties: { text: { type: 'string' } } } };
  await out('table', 'insert', JSON.stringify(notes));
  const { data } = await site.call('svc1.record.insert', { table: 'notes', text: hostile });
  const id = data.id as string;
  const event = { type: 'order.sent', data: { text: hostile } };
  assert.equal((await site.call('svc1.event.insert', event)).error, undefined);
  for (const words of [
    ['record', 'list', 'notes'],
    ['record', 'read', 'notes', id],
    ['record', 'history', 'notes', id],
    ['event', 'list'],
  ]) {
    const shown = await out(...words);
    assert.doesNotMatch(shown, control, words.join(' '));
    const json = await out(...words, '--json');
    assert.doesNotMatch(json, control, `${words.join(' ')} --json`);
    assert.match(shown, /a\\u009b31m\\u001b\[2J\\u202eb/, words.join(' '));
    const texts: unknown[] = [];
    JSON.parse(json, (key, value: unknown) => {
      if (key === 'text') texts.push(value);
      return value;
    });
    assert.ok(texts.includes(hostile), words.join(' '));
  }
  const refused = await waymark('record', 'read', hostile, id);
  assert.equal(refused.code, 1);
  assert.doesNotMatch(refused.err, control);
});

test('the name of a draft is printed without control characters', async (t) => {
  const { site, out } = await startClient(t);
  const name = 'spring\x9b2J\u202e';
  assert.equal((await site.call('svc1.draft.insert', { name })).error, undefined);
  const listed = await out('draft', 'list');
  assert.doesNotMatch(listed, control);
  assert.match(listed, /spring\\u009b2J\\u202e/);
});

test('a line break in a cell begins no row', () => {
  assert.deepEqual(table(['A', 'B'], [['a\nb', 'c\r\td']]), [
    'A         B',
    'a\\u000ab  c\\u000d\\u0009d',
  ]);
});
