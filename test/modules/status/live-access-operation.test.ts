import assert from 'node:assert/strict';
import { once } from 'node:events';
import { after, suite, test } from 'node:test';
import { startSite } from '../../harness.ts';

const started = startSite({ after }, { ini: '[log]\naccess = no\n' });

/** Lines of an HTTP answer without an end, one at a time. */
async function* linesOf(reply: Response): AsyncGenerator<Record<string, unknown>> {
  let rest = '';
  const decoder = new TextDecoder();
  for await (const chunk of reply.body ?? []) {
    const lines = (rest + decoder.decode(chunk as Uint8Array, { stream: true })).split('\n');
    rest = lines.pop() ?? '';
    for (const line of lines) yield JSON.parse(line) as Record<string, unknown>;
  }
}

suite('log.access', () => {
  test('streams matching requests as NDJSON over HTTP, with keys masked, until the client leaves', async () => {
    const { url, adminKey } = await started;
    const abort = new AbortController();
    const reply = await fetch(`${url}/svc1/log/access?_v.status=4xx&_v.path=/gone`, {
      headers: { apikey: adminKey },
      signal: abort.signal,
    });
    assert.equal(reply.headers.get('content-type'), 'application/x-ndjson');
    const lines = linesOf(reply);
    await (await fetch(`${url}/other`)).text();
    await (await fetch(`${url}/svc1/nothing`)).text();
    const headers = { 'user-agent': '<img src=x onerror=hit()>' };
    await (await fetch(`${url}/gone?apikey=wmk_secret`, { headers })).text();
    const { value } = await lines.next();
    assert.equal(value?.target, '/gone?apikey=wmk_…');
    assert.equal(value.status, 404);
    assert.equal(value.method, 'GET');
    assert.equal(value.user_agent, '<img src=x onerror=hit()>');
    abort.abort();
    await assert.rejects(lines.next());
  });

  test('streams over the websocket, filtered by method, cache and duration', async () => {
    const { url, ...site } = await started;
    const socket = await site.socket(site.adminKey);
    const { data } = await socket.call('svc1.log.access', { method: 'post', ms_min: 0 });
    assert.ok(Date.parse(data.from) > 0);
    await (await fetch(`${url}/a`)).text();
    const coming = once(socket.websocket, 'message') as Promise<[Buffer]>;
    await (await fetch(`${url}/b`, { method: 'POST' })).text();
    const [text] = await coming;
    const packet = JSON.parse(text.toString()) as {
      r: string;
      data: { rows: { target: string }[] };
    };
    assert.equal(packet.r, 'svc1.log.accessed');
    assert.deepEqual(
      packet.data.rows.map(({ target }) => target),
      ['/b'],
    );
  });

  test('is for admins, and refuses a filter that is none', async () => {
    const site = await started;
    const { key } = (await site.call('svc1.key.insert', { name: 'r', scopes: ['read'] })).data;
    assert.equal(
      (await site.call('svc1.log.access', {}, { apikey: key })).error?.code,
      'forbidden',
    );
    const wrong = await site.call('svc1.log.access', { status: '9xx' });
    assert.equal(wrong.error?.field, 'status');
  });
});
