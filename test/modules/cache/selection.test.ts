import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import {
  selectingKey,
  withCanonicalLanguages,
  withCanonicalLists,
} from '../../../src/modules/cache/selection.ts';
import { startRig } from './rig.ts';

suite('a stored response is selected by the fields that its source got (RFC 9111 §4.1)', () => {
  /** The value that a source is sent, and the next one for which that answer is not used. */
  const others: readonly (readonly [name: string, first: string, next: string])[] = [
    ['accept', 'text/html, application/json;q=zz', 'text/html'],
    ['accept', 'text/html;Q=1', 'text/html'],
    ['accept', 'text/html;level=1', 'text/html;level=2'],
    ['accept', 'TEXT/HTML', 'text/html'],
    ['accept', 'text/html, text/css', 'text/css, text/html'],
    ['accept-encoding', 'gzip,br', 'br,gzip'],
    ['accept-encoding', 'gzip;q=x, br', 'br'],
    ['accept-language', 'de;q=zz', 'de'],
    ['accept-language', 'de;q=1;q=0', 'de'],
    ['accept-language', 'de, en;q=', 'de'],
    ['accept-language', 'de, <b>', 'de'],
    ['accept-language', 'en,,de', 'en,de'],
    ['accept-language', 'de', 'de;q=0'],
    ['accept-language', 'de,en;q=0.5', 'en,de;q=0.5'],
    ['accept-language', '', '*'],
    ['x-list', 'a b', 'ab'],
    ['x-list', '"a, b"', '"a,b"'],
    ['x-list', 'A', 'a'],
    ['x-list', 'a,,b', 'a,b'],
    ['origin', 'http://a.example', 'http://b.example'],
  ];
  for (const [name, first, next] of others) {
    test(`${name}: ${first} differs from ${next}`, async (t) => {
      const { ask } = await startRig(t, ({ headers }, response) => {
        response.writeHead(200, { 'Cache-Control': 'max-age=3600', Vary: name });
        response.end(String(headers[name]));
      });
      for (const value of [first, next, first, next]) {
        assert.equal((await ask({ fields: { [name]: value } })).text, value);
      }
    });
  }

  const same: readonly (readonly [name: string, sent: string, ...values: string[]])[] = [
    ['accept-language', 'en,de', 'en, de', 'de, en', 'DE ,EN', 'de;q=1.0,en;Q=1'],
    ['accept-language', 'de-AT,de;q=0.8,*;q=0.1', 'de-at, *;q=0.10 , de ; q=0.8'],
    ['accept-language', 'zh-Hant-TW', 'ZH-hant-tw'],
    ['x-list', '1,2', '1,2', '1, 2', ' 1 ,2'],
  ];
  for (const [name, sent, ...values] of same) {
    test(`${name}: ${values.join(' equals ')}, and the source gets ${sent}`, async (t) => {
      const { ask, requests } = await startRig(t, ({ headers }, response) => {
        response.writeHead(200, { 'Cache-Control': 'max-age=3600', Vary: name });
        response.end(String(headers[name]));
      });
      for (const value of values) {
        assert.equal((await ask({ fields: { [name]: value } })).text, sent);
      }
      assert.equal(requests.length, 1);
    });
  }

  test('a field that identifies the client is compared unchanged', async (t) => {
    const { ask } = await startRig(
      t,
      ({ headers }, response) => {
        response.writeHead(200, { 'Cache-Control': 'public, max-age=3600', Vary: 'X-Roles' });
        response.end(String(headers['x-roles']));
      },
      { identityFields: ['x-roles'] },
    );
    for (const roles of ['a,b', 'a, b']) {
      assert.equal((await ask({ fields: { 'x-roles': roles } })).text, roles);
    }
  });

  test('a list is forwarded unchanged to a source whose Vary does not name it', async (t) => {
    const { ask } = await startRig(t, ({ headers }, response) => {
      response.writeHead(200, { 'Cache-Control': 'no-store' });
      response.end(String(headers['x-list']));
    });
    assert.equal((await ask({ fields: { 'x-list': '1 , 2' } })).text, '1 , 2');
  });
});

suite('the secondary cache key', () => {
  test('differs for an absent field and an empty one', () => {
    assert.notEqual(
      selectingKey(['a'], () => undefined),
      selectingKey(['a'], () => ''),
    );
  });

  test('is short, also for long fields', () => {
    const key = (value: string) => selectingKey(['origin'], () => value);
    const [one, other] = [key('a,'.repeat(15_000)), key('a, '.repeat(15_000))];
    assert.ok(one.length < 100);
    assert.notEqual(one, other);
    assert.equal(one, key('a,'.repeat(15_000)));
  });

  test('fields that are normalized already stay the same object', () => {
    const fields = { 'accept-language': 'de-DE,de;q=0.9,en;q=0.8', 'x-list': 'a,b' };
    assert.equal(withCanonicalLanguages(fields), fields);
    assert.equal(withCanonicalLists(fields, ['x-list', 'none']), fields);
    const many = { 'accept-language': 'de, '.repeat(100), 'x-list': 'a , '.repeat(100) };
    assert.equal(withCanonicalLanguages(many), many);
    assert.equal(withCanonicalLists(many, ['x-list']), many);
  });
});
