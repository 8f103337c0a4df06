import assert from 'node:assert/strict';
import { once } from 'node:events';
import { suite, test } from 'node:test';
import { startSite, type TestSite } from '../../../harness.ts';

/** The body of the answer to a body of an operation. */
async function post(
  { url, adminKey }: TestSite,
  operation: string,
  body: string,
  type = 'application/json',
): Promise<{ readonly text: string; readonly status: number }> {
  const answer = await fetch(`${url}/svc1/${operation}`, {
    ...{ method: 'POST', body, headers: { apikey: adminKey, 'content-type': type } },
  });
  return { status: answer.status, text: await answer.text() };
}

const fields = '{"kind":"content","path":"/a","content":"x","path":"/b"}';
const repeated = `{"v":${fields}}`;

suite('a member that is twice in one object', () => {
  test('is refused in the body of an operation, and nothing is written', async (t) => {
    const site = await startSite(t, {});
    const { status, text } = await post(site, 'userinterface/insert', repeated);
    assert.equal(status, 400);
    const { error } = JSON.parse(text) as { readonly error: Record<string, unknown> };
    assert.deepEqual([error.code, error.field], ['invalid', 'path']);
    assert.match(String(error.message), /^path is twice in one object/);
    const envelope = await post(site, 'userinterface/insert', `{"v":{},${repeated.slice(1)}`);
    assert.match(envelope.text, /v is twice/);
    for (const path of ['/a', '/b']) assert.equal((await fetch(site.url + path)).status, 404);
  });

  test('is refused in a message of a websocket', async (t) => {
    const site = await startSite(t, {});
    const { websocket } = await site.socket(site.adminKey);
    const answered = once(websocket, 'message');
    websocket.send(`{"a":"svc1.userinterface.insert","id":7,${repeated.slice(1)}`);
    const { id, error } = JSON.parse(String((await answered)[0])) as {
      readonly id: number;
      readonly error: Record<string, unknown>;
    };
    assert.deepEqual([id, error.code, error.field], [7, 'invalid', 'path']);
  });

  test('is refused in a line of an import, by its number', async (t) => {
    const site = await startSite(t, {});
    const lines = `{"path":"/c","kind":"content","content":"c"}\n${fields}\n`;
    const { text } = await post(site, 'userinterface/import', lines, 'application/x-ndjson');
    assert.match(text, /line 2: path is twice in one object/);
  });

  test('is refused in the JSON of a field of a form', async (t) => {
    const site = await startSite(t, {});
    const schema = '{"type":"object","properties":{},"type":"array"}';
    const form = new URLSearchParams({ '_v.name': 'shelf', '_v.schema': schema });
    const type = 'application/x-www-form-urlencoded';
    const { status, text } = await post(site, 'table/insert', form.toString(), type);
    assert.equal(status, 400);
    assert.match(text, /type is twice in one object/);
  });
});
