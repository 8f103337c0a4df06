import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readFile, writeFile } from 'node:fs/promises';
import { suite, test } from 'node:test';
import { readTestConfig, startSite, type Answer, type TestSite } from '../../harness.ts';

const rule = 'svc1.userinterface';

/** The HTTP response to a request with the admin key. */
async function ask(
  { url, adminKey }: TestSite,
  target: string,
  {
    headers = {},
    ...init
  }: Omit<RequestInit, 'headers'> & { readonly headers?: Readonly<Record<string, string>> } = {},
) {
  const reply = await fetch(`${url}/svc1/${target}`, {
    ...init,
    headers: { apikey: adminKey, ...headers },
  });
  const text = await reply.text();
  const answer = (text === '' ? {} : JSON.parse(text)) as Answer;
  return { ...answer, status: reply.status, etag: reply.headers.get('etag') ?? '' };
}

suite('validators of operations', () => {
  test('a record whose links a reload has changed gets a new ETag', async (t) => {
    const engine = '[engine.globe]\nreference = /docs/one\n';
    const site = await startSite(t, { ini: engine });
    const page = { path: '/a', kind: 'content', engine: 'globe' };
    const { data } = await site.call(`${rule}.insert`, page);
    const read = (etag: string) =>
      ask(site, `userinterface/read?_v.id=${data.id}`, { headers: { 'If-None-Match': etag } });
    const before = await read('"none"');
    assert.equal((await read(before.etag)).status, 304);

    const ini = await readFile(site.iniFile, 'utf8');
    await writeFile(site.iniFile, ini.replace('/docs/one', '/docs/two'));
    site.waymark.reload({ ok: true, config: await readTestConfig(site.iniFile) });
    const after = await read(before.etag);
    assert.equal(after.status, 200);
    assert.match(after.data.enginereference, /\/docs\/two$/);

    // The record itself has not changed: one edit with its old ETag succeeds.
    const edit = (content: string) =>
      site.call(
        `${rule}.edit`,
        { id: data.id, enginecomments: content },
        { headers: { 'If-Match': before.etag } },
      );
    assert.equal((await edit('one')).status, 200);
    assert.equal((await edit('two')).error?.code, 'precondition_failed');
  });

  test('a POST gets its response also if If-None-Match names it', async (t) => {
    const site = await startSite(t);
    const { data } = await site.call(`${rule}.insert`, { path: '/a', content: 'x' });
    const { etag } = await ask(site, `userinterface/read?_v.id=${data.id}`);
    const posted = await ask(site, 'userinterface/read', {
      method: 'POST',
      headers: { 'If-None-Match': etag },
      body: JSON.stringify({ v: { id: data.id } }),
    });
    assert.deepEqual([posted.status, posted.data?.id], [200, data.id]);
  });
});

suite('empty fields of a form', () => {
  test('do not restrict a query', async (t) => {
    const site = await startSite(t);
    const { data } = await site.call(`${rule}.insert`, { path: '/a', content: 'x' });
    for (const [name, query] of [
      ['read', `_v.id=${data.id}&_v.as_of=&_qk=`],
      ['list', '_v.kind=&_v.origin=&_v.table=&_v.engine=&_v.path=&_v.after=&_v.limit=&_v.as_of='],
      ['explain', '_v.path=/a&_v.url=&_v.k=&_v.country=&_v.device=&_v.ip=&_v.at=&_v.as_of='],
    ] as const) {
      const form = new URLSearchParams(query);
      const got = await ask(site, `userinterface/${name}?${query}`);
      const posted = await ask(site, `userinterface/${name}`, { method: 'POST', body: form });
      for (const { error, data: answered } of [got, posted]) {
        assert.equal(error, undefined, name);
        assert.ok(JSON.stringify(answered).includes(data.id), name);
      }
    }
  });

  test('are stored as empty texts', async (t) => {
    const site = await startSite(t);
    const body = new URLSearchParams({ '_v.path': '/a', '_v.kind': 'content', '_v.content': '' });
    const { data } = await ask(site, 'userinterface/insert', { method: 'POST', body });
    assert.equal(data.content, '');
  });

  test('are refused where an edit would lose its guard', async (t) => {
    const site = await startSite(t);
    const { data } = await site.call(`${rule}.insert`, { path: '/a', content: 'x' });
    const body = new URLSearchParams({ '_v.id': data.id, '_v.if_seq': '', '_v.content': 'y' });
    const { error } = await ask(site, 'userinterface/edit', { method: 'POST', body });
    assert.deepEqual([error?.code, error?.field], ['invalid', 'if_seq']);
  });
});

test('a query or form that is not UTF-8 is refused, as JSON is', async (t) => {
  const site = await startSite(t);
  const headers = { 'content-type': 'application/x-www-form-urlencoded' };
  const post = (name: string, body: string) =>
    ask(site, `userinterface/${name}`, { method: 'POST', headers, body });
  for (const wrong of ['%ff', 'a%C3', '%c3%28', '%ED%A0%80', '%C3+%A4']) {
    for (const { error } of [
      await post('insert', `_v.path=/a&_v.content=${wrong}`),
      await ask(site, `userinterface/list?_v.content=${wrong}`),
      await ask(site, `userinterface/list?%5Fv.content=${wrong}`),
    ]) {
      assert.deepEqual([error?.code, error?.field], ['invalid', 'content'], wrong);
      assert.match(error?.message ?? '', /not UTF-8/);
    }
  }
  const kept = 'ä 100% \ufffd %zz';
  const text = '%C3%A4+100%+%EF%BF%BD+%zz';
  assert.equal((await post('insert', `_v.path=/a&_v.content=${text}`)).data.content, kept);
  const unknown = await ask(site, 'userinterface/list?utm=%ff');
  assert.deepEqual([unknown.error?.code, unknown.error?.field], ['invalid', 'utm']);
});

test('a time with an offset is understood, also if a URL turned its + into a space', async (t) => {
  const site = await startSite(t);
  await site.call(`${rule}.insert`, { path: '/a', content: 'x' });
  for (const offset of ['+01:00', '%2B01:00', '-01:00']) {
    const asked = (year: number) =>
      ask(site, `userinterface/list?_v.as_of=${year}-01-01T00:00:00${offset}`);
    assert.deepEqual((await asked(2020)).data?.rows, [], offset);
    assert.equal((await asked(2999)).data?.rows.length, 1, offset);
  }
});

test('OPTIONS lists the methods of every path of Waymark itself', async (t) => {
  const site = await startSite(t);
  for (const [path, allow] of [
    ['health', 'GET, HEAD, OPTIONS'],
    ['metrics', 'GET, HEAD, OPTIONS'],
    ['ws', 'GET, HEAD, OPTIONS'],
    ['engine.js', 'GET, HEAD, OPTIONS'],
    ['engines/html', 'GET, HEAD, OPTIONS'],
    ['openapi.json', 'GET, HEAD, OPTIONS'],
    ['webhooks', 'GET, HEAD, OPTIONS'],
    ['userinterface/read', 'GET, HEAD, POST, OPTIONS'],
    ['userinterface/insert', 'POST, OPTIONS'],
  ] as const) {
    const reply = await fetch(`${site.url}/svc1/${path}`, { method: 'OPTIONS' });
    assert.deepEqual([reply.status, reply.headers.get('allow')], [204, allow], path);
    const put = await fetch(`${site.url}/svc1/${path}`, { method: 'PUT' });
    assert.deepEqual([put.status, put.headers.get('allow')], [405, allow], path);
  }
});

test('input outside v is refused with a hint where it belongs', async (t) => {
  const site = await startSite(t);
  const insert = (body: string, type: string) =>
    ask(site, 'userinterface/insert', {
      method: 'POST',
      body,
      headers: { 'content-type': type },
    });
  const form = 'application/x-www-form-urlencoded';
  for (const [body, message] of [
    ['{"path":"/a","content":"x"}', /^"path" is outside v\. Send the input in the member v: \{"v"/],
    ['[{"path":"/a","content":"x"}]', /^The body must be one JSON object\. Send the input/],
    ['path=/a&content=x', /^A form names its fields _v\.path and so on\./],
  ] as const) {
    const { status, error } = await insert(body, form);
    assert.equal(status, 400, body);
    assert.match(error?.message ?? '', message);
  }
  const socket = await site.socket();
  socket.websocket.send('{"a":"svc1.userinterface.get","path":"/a","id":1}');
  const [data] = (await once(socket.websocket, 'message')) as [Buffer];
  assert.match(data.toString(), /\\"path\\" is outside v\./);
});

test('an unknown operation gets the nearest name as a suggestion', async (t) => {
  const site = await startSite(t);
  const { status, error } = await ask(site, 'userinterface/lst');
  assert.equal(status, 404);
  assert.equal(
    error?.message,
    'There is no operation "svc1.userinterface.lst". Did you mean svc1.userinterface.list?',
  );
  const socket = await site.socket();
  const answer = await socket.call('svc1.webhook.instert', {});
  assert.match(answer.error?.message ?? '', /Did you mean svc1\.webhook\.insert\?$/);
  assert.doesNotMatch((await ask(site, 'x/y')).error?.message ?? '', /Did you mean/);
});
