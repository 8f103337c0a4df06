import assert from 'node:assert/strict';
import { test } from 'node:test';
import { operations } from '../../../src/modules.ts';
import { isFailureCode, problemReasons } from '../../../src/core/values/failure.ts';
import { limitMessages, type LimitName } from '../../../src/core/values/limit.ts';
import { meanings } from '../../../src/modules/docs/envelope.ts';
import { docsOf } from '../../../src/core/operations/http/failure-docs.ts';
import { builtDocs } from '../../docs/built-docs.ts';
import { startSite } from '../../harness.ts';

const { docs } = await builtDocs();

/** Whether the documentation has the page, and on it the fragment. */
function exists(link: string): boolean {
  const [path = '', fragment] = link.split('#');
  const html = docs.get(path)?.file.bytes.toString();
  return html !== undefined && (fragment === undefined || html.includes(` id="${fragment}"`));
}

test('every page that a failure names exists', () => {
  const codes = Object.keys(meanings).filter(isFailureCode);
  const insert = operations.find(({ name }) => name === 'svc1.event.insert');
  const failures = [
    ...operations.flatMap((operation) => codes.map((code) => ({ operation, code }))),
    ...(Object.keys(limitMessages) as LimitName[]).map((limit) => ({
      ...{ operation: insert, code: 'rate_limited' as const, limit },
    })),
    { operation: insert, code: 'invalid' as const, problems: [] },
    { operation: undefined, code: 'invalid' as const },
  ];
  const none = { limit: undefined, problems: undefined };
  const links = failures.map(({ operation, ...failure }) =>
    docsOf(operation, { ...none, ...failure }),
  );
  const named = new Set(links.filter((link) => link !== undefined));
  assert.ok(named.size > operations.length);
  assert.deepEqual(
    [...named].filter((link) => !exists(link)),
    [],
  );
  for (const reason of problemReasons) assert.ok(exists(`reference/errors.html#${reason}`), reason);
});

test('an answer names the page that helps, below the base', async (t) => {
  const site = await startSite(t, { server: 'base = /way' });
  const post = async (name: string, v: object, headers: Record<string, string>) => {
    const body = JSON.stringify({ v });
    const url = `${site.url}/way/svc1/${name}`;
    const answer = await fetch(url, { method: 'POST', body, headers });
    return ((await answer.json()) as { error?: { docs?: string } }).error?.docs;
  };
  const apikey = site.adminKey;
  const page = '/way/svc1/docs/reference/operations.html#svc1userinterfaceinsert';
  assert.equal(await post('userinterface/insert', { kind: 'content' }, { apikey }), page);
  const keys = '/way/svc1/docs/how-to/keys-and-scopes.html';
  assert.equal(await post('userinterface/insert', { path: '/a' }, {}), keys);
  assert.equal(await post('userinterface/read', { id: 'none' }, { apikey }), undefined);
  const wrong = { path: '/a', kind: 'content', colour: 'red' };
  assert.equal(
    await post('userinterface/insert', wrong, { apikey, prefer: 'handling=strict' }),
    '/way/svc1/docs/reference/errors.html#problems-of-a-write',
  );
});
