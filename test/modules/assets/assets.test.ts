import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { readdir, readFile, stat, utimes, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { join } from 'node:path';
import { suite, test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { assetSafetyFields } from '../../../src/modules/assets/asset-type.ts';
import { startSite, type Answer, type TestSite } from '../../harness.ts';

const png = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
  'base64',
);

function sha256(bytes: Buffer): string {
  return createHash('sha256').update(bytes).digest('hex');
}

interface PutOptions {
  readonly headers?: Readonly<Record<string, string>>;
  readonly query?: string;
  readonly key?: string | undefined;
}

/** Uploads a file as `curl -T` does; returns the status and the envelope of the answer. */
async function put(
  { url, adminKey }: TestSite,
  name: string,
  content: Buffer | string,
  { headers = {}, query = '', key = adminKey }: PutOptions = {},
) {
  const reply = await fetch(`${url}/svc1/asset/${name}${query}`, {
    method: 'PUT',
    body: new Uint8Array(Buffer.from(content)),
    headers: { ...(key !== '' && { apikey: key }), ...headers },
  });
  const answer = reply.headers.get('content-type') === 'application/json' ? await reply.json() : {};
  const { data } = answer as Pick<Answer, 'data'>;
  return { status: reply.status, offset: reply.headers.get('upload-offset'), data };
}

/** Asks how much of an upload the server has. */
async function offsetOf(site: TestSite, name: string, total: number) {
  const headers = { 'content-range': `bytes */${total}` };
  return (await put(site, name, '', { headers })).data?.received;
}

/** The names of the files in the folder of the assets. */
async function files({ folder }: TestSite): Promise<readonly string[]> {
  const names = await readdir(join(folder, 'data/assets')).catch(() => []);
  return names.filter((name) => name !== '.incoming');
}

async function incomplete({ folder }: TestSite): Promise<readonly string[]> {
  return readdir(join(folder, 'data/assets/.incoming')).catch(() => []);
}

/** Sends a part of a PUT with a Content-Length, then closes the connection. */
async function cutUpload(site: TestSite, name: string, content: Buffer, at: number) {
  const socket = connect(site.port, '127.0.0.1');
  await once(socket, 'connect');
  const head =
    `PUT /svc1/asset/${name} HTTP/1.1\r\nHost: a\r\napikey: ${site.adminKey}\r\n` +
    `Content-Length: ${content.length}\r\n\r\n`;
  socket.write(head);
  socket.write(content.subarray(0, at));
  const folder = join(site.folder, 'data/assets/.incoming');
  const written = async () => {
    const names = await incomplete(site);
    const sizes = names.map((one) =>
      stat(join(folder, one)).then(
        ({ size }) => size,
        () => 0,
      ),
    );
    return (await Promise.all(sizes)).includes(at);
  };
  while (!(await written())) await setImmediate();
  socket.destroy();
}

suite('an upload', () => {
  test('of a part may not be longer than its Content-Range', async (t) => {
    const site = await startSite(t);
    const content = new ReadableStream({
      start(controller) {
        controller.enqueue(Buffer.alloc(100));
        controller.close();
      },
    });
    const reply = await fetch(`${site.url}/svc1/asset/long.txt`, {
      ...{ method: 'PUT', body: content, duplex: 'half' },
      headers: { apikey: site.adminKey, 'content-range': 'bytes 0-9/10' },
    });
    assert.equal(reply.status, 400);
    assert.deepEqual(await files(site), []);
  });

  test('is stored under its hash, with a row in the log', async (t) => {
    const site = await startSite(t);
    const { status, data } = await put(site, 'logo.png', png);
    assert.equal(status, 200);
    const { sha256: hash, bytes, contenttype } = data;
    assert.deepEqual([hash, bytes, contenttype], [sha256(png), png.length, 'image/png']);
    assert.deepEqual(await files(site), [sha256(png)]);
    assert.deepEqual(await incomplete(site), []);
    const list = await site.call('svc1.record.list', { table: 'asset' });
    assert.deepEqual(
      list.data.rows.map(({ name }: { readonly name: string }) => name),
      ['logo.png'],
    );
    const got = await fetch(`${site.url}/svc1/asset/logo.png`, {
      headers: { apikey: site.adminKey },
    });
    assert.deepEqual(Buffer.from(await got.arrayBuffer()), png);
  });

  test('replaces the asset of the same name, and an undo brings the former one back', async (t) => {
    const site = await startSite(t, { rules: [{ path: '/a.txt', asset: 'a.txt' }] });
    const page = async () => (await fetch(`${site.url}/a.txt`)).text();
    const { data } = await put(site, 'a.txt', 'one');
    assert.equal(await page(), 'one');
    const before = new Date().toISOString();
    assert.equal((await put(site, 'a.txt', 'two')).data.id, data.id);
    assert.equal(await page(), 'two');
    const history = await site.call(
      'svc1.record.read',
      { table: 'asset', name: 'a.txt' },
      {
        qk: 'history',
      },
    );
    const [{ txn }] = history.data.rows;
    const input = { table: 'asset', txn };
    const plan = await site.call('svc1.record.invalidate', input);
    const undo = { ...input, confirm: plan.data.digest };
    assert.equal((await site.call('svc1.record.invalidate', undo)).status, 200);
    assert.equal(await page(), 'one');
    assert.ok(before.length > 0);
  });

  test('of 0 bytes is a file', async (t) => {
    const site = await startSite(t, { rules: [{ path: '/empty', asset: 'empty.txt' }] });
    assert.equal((await put(site, 'empty.txt', '')).data.bytes, 0);
    const page = await fetch(`${site.url}/empty`);
    assert.deepEqual([page.status, await page.text()], [200, '']);
  });

  test('needs the scope design, before its content is read', async (t) => {
    const site = await startSite(t);
    const key = await site.call('svc1.key.insert', { name: 'reader', scopes: ['read'] });
    assert.equal((await put(site, 'a.png', png, { key: key.data.key })).status, 403);
    assert.equal((await put(site, 'a.png', png, { key: '' })).status, 401);
    assert.deepEqual(await files(site), []);
  });

  for (const [name, why] of [
    ['noextension', 'no extension'],
    ['..%2Fescape.png', 'a parent folder'],
    ['.hidden.png', 'a hidden file'],
    ['a%2F%2Fb.png', 'an empty part'],
    ['a%00.png', 'a control character'],
    [`${'x'.repeat(300)}.png`, 'a long name'],
  ] as const) {
    test(`has no name with ${why}`, async (t) => {
      const site = await startSite(t);
      assert.equal((await put(site, name, png)).status, 400);
      assert.deepEqual(await files(site), []);
    });
  }

  test('is no longer than [asset] max, announced or not', async (t) => {
    const site = await startSite(t, { ini: '[asset]\nmax = 10KiB\n' });
    assert.equal((await put(site, 'a.bin', randomBytes(10_241))).status, 413);
    const chunked = await site.raw(
      `PUT /svc1/asset/b.bin HTTP/1.1\r\nHost: a\r\napikey: ${site.adminKey}\r\n` +
        `Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n` +
        `2801\r\n${'x'.repeat(10_241)}\r\n0\r\n\r\n`,
    );
    assert.match(chunked, /^HTTP\/1\.1 413 /);
    assert.equal((await put(site, 'c.bin', randomBytes(10_240))).status, 200);
    assert.equal((await files(site)).length, 1);
    assert.deepEqual(await incomplete(site), []);
  });

  test('of 10 GB is refused before its content', async (t) => {
    const site = await startSite(t);
    const socket = connect(site.port, '127.0.0.1');
    t.after(() => socket.destroy());
    const length = 10 * 2 ** 30;
    const fields = `Host: a\r\napikey: ${site.adminKey}\r\nContent-Length: ${length}\r\n`;
    socket.write(`PUT /svc1/asset/long.bin HTTP/1.1\r\n${fields}\r\n`);
    const [answer] = (await once(socket, 'data')) as [Buffer];
    assert.match(answer.toString(), /^HTTP\/1\.1 413 /);
    assert.deepEqual([await files(site), await incomplete(site)], [[], []]);
  });

  test('is refused if its digest is another one', async (t) => {
    const site = await startSite(t);
    const digest = (bytes: Buffer) =>
      `sha-256=:${createHash('sha256').update(bytes).digest('base64')}:`;
    const wrong = { 'repr-digest': digest(Buffer.from('other')) };
    assert.equal((await put(site, 'a.png', png, { headers: wrong })).status, 422);
    assert.deepEqual([await files(site), await incomplete(site)], [[], []]);
    const right = { 'repr-digest': `md5=:AAAA:, ${digest(png)}` };
    assert.equal((await put(site, 'a.png', png, { headers: right })).status, 200);
    const broken = { 'repr-digest': 'sha-256=nothing' };
    assert.equal((await put(site, 'b.png', png, { headers: broken })).status, 400);
  });

  test('in parts is refused where a part has another digest, and continues before that', async (t) => {
    const site = await startSite(t);
    const content = randomBytes(30_000);
    const part = (first: number, last: number, signed = content.subarray(first, last + 1)) =>
      put(site, 'signed.bin', content.subarray(first, last + 1), {
        headers: {
          'content-range': `bytes ${first}-${last}/30000`,
          'content-digest': `sha-256=:${createHash('sha256').update(signed).digest('base64')}:`,
        },
      });
    assert.equal((await part(0, 9_999, content)).status, 422);
    assert.equal(await offsetOf(site, 'signed.bin', 30_000), 0);
    assert.equal((await part(0, 9_999)).status, 202);
    assert.equal((await part(10_000, 19_999, content)).status, 422);
    assert.equal(await offsetOf(site, 'signed.bin', 30_000), 10_000);
    assert.equal((await part(10_000, 29_999)).data.sha256, sha256(content));
  });

  test('that is cut at any place is kept, and continues there', async (t) => {
    const site = await startSite(t);
    const content = randomBytes(100_000);
    for (let tenth = 1; tenth < 10; tenth += 1) {
      const name = `cut${tenth}.bin`;
      const at = tenth * 10_000;
      await cutUpload(site, name, content, at);
      let offset = 0;
      // The server ends the interrupted request on its own.
      while (offset === 0) offset = await offsetOf(site, name, content.length);
      assert.equal(offset, at);
      const headers = { 'content-range': `bytes ${at}-${content.length - 1}/${content.length}` };
      const { status, data } = await put(site, name, content.subarray(at), { headers });
      assert.deepEqual([status, data.sha256], [200, sha256(content)]);
    }
    assert.deepEqual([await files(site), await incomplete(site)], [[sha256(content)], []]);
  });

  test('in parts is whole after the last one', async (t) => {
    const site = await startSite(t);
    const content = randomBytes(30_000);
    const part = (first: number, last: number) =>
      put(site, 'parts.bin', content.subarray(first, last + 1), {
        headers: { 'content-range': `bytes ${first}-${last}/30000` },
      });
    assert.equal((await part(10_000, 19_999)).status, 409);
    assert.deepEqual([(await part(0, 9_999)).status, await files(site)], [202, []]);
    assert.equal((await part(9_000, 19_999)).offset, '20000');
    assert.equal((await part(20_001, 29_999)).status, 409);
    assert.equal((await part(20_000, 29_999)).data.sha256, sha256(content));
    for (const range of ['bytes 5-4/10', 'bytes 0-10/10', 'bytes 0-3/10', 'pages 0-1/2']) {
      const headers = { 'content-range': range };
      assert.equal((await put(site, 'parts.bin', 'xx', { headers })).status, 400, range);
    }
  });

  test('goes to a draft, which shows it before the site does', async (t) => {
    const site = await startSite(t, { rules: [{ path: '/a.txt', asset: 'a.txt' }] });
    await put(site, 'a.txt', 'live');
    await site.call('svc1.draft.insert', { name: 'spring' });
    const drafted = await put(site, 'a.txt', 'drafted', { query: '?draft=spring' });
    assert.equal(drafted.status, 200);
    assert.equal(await (await fetch(`${site.url}/a.txt`)).text(), 'live');
    const seen = await fetch(`${site.url}/svc1/userinterface/get_content`, {
      method: 'POST',
      headers: { apikey: site.adminKey, 'content-type': 'application/json' },
      body: JSON.stringify({ v: { origin: site.url, path: '/a.txt' }, draft: 'spring' }),
    });
    assert.equal(await seen.text(), 'drafted');
  });

  test('to a draft that takes no changes is refused before its content is read', async (t) => {
    const site = await startSite(t);
    await site.call('svc1.draft.insert', { name: 'gone' });
    await site.call('svc1.draft.invalidate', { draft: 'gone' });
    const unread = async (query: string, headers = `apikey: ${site.adminKey}\r\n`) => {
      const line = `PUT /svc1/asset/a.txt${query} HTTP/1.1\r\nHost: a\r\n${headers}`;
      return (await site.raw(`${line}Content-Length: 100000\r\n\r\n`)).slice(9, 12);
    };
    assert.equal(await unread('?draft=none'), '404');
    assert.match(await unread('?draft=gone'), /404|409/);
    assert.equal(await unread('?draft=', ''), '401');
    assert.deepEqual([await files(site), await incomplete(site)], [[], []]);
  });
});

suite('the type of an asset', () => {
  for (const type of ['multipart/x-mixed-replace; boundary=a', 'Multipart/Mixed']) {
    test(`in parts is a download in a sandbox: ${type}`, () => {
      const [, policy = '', , disposition] = assetSafetyFields(type);
      assert.match(policy, /^sandbox;/);
      assert.equal(disposition, 'attachment');
    });
  }

  const html = '<script>alert(1)</script>';
  for (const [name, content, contenttype] of [
    ['photo.txt', png, 'image/png'],
    ['photo.png', Buffer.from(html), 'application/octet-stream'],
    ['photo.gif', Buffer.from(`GIF89a${html}`), 'image/gif'],
    ['page.html', Buffer.from(html), 'text/html; charset=utf-8'],
    ['saved.mhtml', Buffer.from(html), 'message/rfc822'],
    ['drawing.svg', Buffer.from('<svg/>'), 'image/svg+xml'],
    ['notes.pdf', Buffer.from('%PDF'), 'application/pdf'],
    ['unknown.qqq', Buffer.from(html), 'application/octet-stream'],
  ] as const) {
    test(`of ${name} is ${contenttype}`, async (t) => {
      const site = await startSite(t, { rules: [{ path: '/a', asset: name }] });
      assert.equal((await put(site, name, content)).data.contenttype, contenttype);
      const { headers } = await fetch(`${site.url}/a`);
      assert.equal(headers.get('content-type'), contenttype);
      assert.equal(headers.get('x-content-type-options'), 'nosniff');
      const isActive = /html|svg|pdf|rfc822/.test(contenttype);
      assert.equal(
        headers.get('content-security-policy')?.startsWith('sandbox') ?? false,
        isActive,
      );
      assert.equal(
        headers.get('content-disposition'),
        /html|rfc822/.test(contenttype) ? 'attachment' : null,
      );
    });
  }

  test('stays safe when its page has another one', async (t) => {
    const rule = { path: '/a', asset: 'photo.png', contenttype: 'text/html' };
    const site = await startSite(t, { rules: [rule] });
    await put(site, 'photo.png', html);
    const { headers } = await fetch(`${site.url}/a`);
    assert.equal(headers.get('content-type'), 'text/html');
    assert.match(headers.get('content-security-policy') ?? '', /^sandbox/);
  });

  const policy = "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:";
  const weak = {
    'Content-Security-Policy': "script-src 'unsafe-inline'",
    'Content-Disposition': 'inline',
    'X-Content-Type-Options': 'none',
  };
  const changed = (suffix: string, value?: string) =>
    Object.entries(weak).map(([name, weakest]) => [name + suffix, value ?? weakest] as const);
  const strict = /^default-src 'self'; .*, $/;
  const inline = /^script-src 'unsafe-inline', $/;
  for (const [what, given, before] of [
    ['security = strict', 'security = strict', strict],
    ['lines of [headers]', changed(''), inline],
    ['added lines of [headers]', changed('[]'), undefined],
    ['empty lines of [headers]', changed('', ''), /^$/],
    ['fields of its rule', Object.fromEntries(changed('')), inline],
    ['added fields of its rule', Object.fromEntries(changed('[]')), undefined],
    ['empty fields of its rule', Object.fromEntries(changed('', '')), /^$/],
  ] as const) {
    test(`stays safe with ${what}`, async (t) => {
      const lines = Array.isArray(given)
        ? given.map(([name, value]) => `${name} = "${value}"`)
        : [];
      if (typeof given === 'string') lines.push(given);
      const headers = lines.length > 0 ? {} : { headers: given };
      const names = ['page.html', 'drawing.svg', 'feed.xml', 'notes.pdf', 'plain.txt'];
      const site = await startSite(t, {
        ini: lines.length > 0 ? `[headers.all]\n${lines.join('\n')}\n` : '',
        rules: names.map((asset) => ({ path: `/${asset}`, asset, ...headers })),
      });
      for (const name of names) {
        await put(site, name, html);
        const { headers: first } = await fetch(`${site.url}/${name}`);
        const known = { 'if-none-match': first.get('etag') ?? '' };
        // The second answer is a prepared one; a 304 changes the fields of what a browser keeps.
        for (const more of [{}, { method: 'HEAD' }, { headers: known }]) {
          const { headers: sent } = await fetch(`${site.url}/${name}`, more);
          assert.equal(sent.get('x-content-type-options'), 'nosniff', name);
          if (name === 'plain.txt') continue;
          const policies = sent.get('content-security-policy') ?? '';
          if (more.headers !== undefined && policies === '') continue;
          assert.ok(policies.includes('sandbox; default'), `${name}: ${policies}`);
          if (before !== undefined) assert.match(policies.slice(0, -policy.length), before, name);
          const disposition = sent.get('content-disposition');
          if (/html|xml/.test(name)) assert.equal(disposition, 'attachment', name);
        }
      }
    });
  }

  test('may have another name as a download', async (t) => {
    const headers = { 'Content-Disposition': 'attachment; filename="a.html"' };
    const site = await startSite(t, { rules: [{ path: '/a', asset: 'page.html', headers }] });
    await put(site, 'page.html', html);
    const reply = await fetch(`${site.url}/a`);
    assert.equal(reply.headers.get('content-disposition'), headers['Content-Disposition']);
  });

  test('stays safe when its row has another one', async (t) => {
    const site = await startSite(t, { rules: [{ path: '/a', asset: 'photo.txt' }] });
    await put(site, 'photo.txt', html);
    const { data } = await site.call('svc1.asset.read', { name: 'photo.txt' });
    const unknown = 'application/octet-stream';
    for (const [contenttype, sent] of [
      ['text/html; charset=utf-8', 'text/html; charset=utf-8'],
      // Browsers take the last type of a list.
      ...['text/plain, text/html', 'text/plain;a=",", text/html'].map((one) => [one, unknown]),
      [' text/html ', 'text/html'],
      ...['a b', 'ü/ü', 'a/b;c="\u0100"', 'a/b\r\nx-more: 1', ''].map((one) => [one, unknown]),
    ] as const) {
      const edit = { table: 'asset', id: data.id, contenttype };
      assert.equal((await site.call('svc1.record.edit', edit)).error, undefined);
      // The second answer is a prepared one.
      for (let time = 0; time < 2; time += 1) {
        const { headers } = await fetch(`${site.url}/a`);
        assert.equal(headers.get('content-type'), sent, contenttype);
        assert.equal(headers.get('x-content-type-options'), 'nosniff');
        const isActive = sent !== unknown;
        assert.equal(headers.get('content-disposition'), isActive ? 'attachment' : null);
      }
    }
  });
});

suite('a page with an asset', () => {
  test('answers ranges and preconditions, small or large', async (t) => {
    const site = await startSite(t, { rules: [{ path: '/f', asset: 'f.bin' }] });
    for (const size of [1_000, 3_000_000]) {
      const content = randomBytes(size);
      await put(site, 'f.bin', content);
      const whole = await fetch(`${site.url}/f`);
      assert.deepEqual(Buffer.from(await whole.arrayBuffer()), content);
      const etag = whole.headers.get('etag') ?? '';
      const again = await fetch(`${site.url}/f`, { headers: { 'if-none-match': etag } });
      assert.equal(again.status, 304);
      const part = await fetch(`${site.url}/f`, { headers: { range: 'bytes=10-19' } });
      assert.equal(part.status, 206);
      assert.deepEqual(Buffer.from(await part.arrayBuffer()), content.subarray(10, 20));
      const head = await fetch(`${site.url}/f`, { method: 'HEAD' });
      assert.equal(head.headers.get('content-length'), String(size));
    }
  });

  test('is compressed if that makes it smaller', async (t) => {
    const rules = [{ path: '/f', asset: 'f.csv' }];
    const site = await startSite(t, { rules });
    const content = 'a,b,c\n'.repeat(500_000);
    await put(site, 'f.csv', content);
    const answer = await fetch(`${site.url}/f`, { headers: { 'accept-encoding': 'gzip' } });
    assert.equal(answer.headers.get('content-encoding'), 'gzip');
    assert.equal(await answer.text(), content);
  });

  test('is a 404 without its asset, and explain says why', async (t) => {
    const site = await startSite(t, { rules: [{ path: '/a', asset: 'gone.png' }] });
    assert.equal((await fetch(`${site.url}/a`)).status, 404);
    const { data } = await site.call('svc1.userinterface.explain', { url: `${site.url}/a` });
    assert.equal(data.winner.status, 404);
  });

  test('shows the file of a moment', async (t) => {
    const site = await startSite(t, { rules: [{ path: '/a.txt', asset: 'a.txt' }] });
    const { data } = await put(site, 'a.txt', 'then');
    await put(site, 'a.txt', 'now');
    const get = new URLSearchParams({
      ...{ '_v.origin': site.url, '_v.path': '/a.txt', '_v.as_of': String(data.seq) },
    });
    const past = await fetch(`${site.url}/svc1/userinterface/get_content?${get.toString()}`, {
      headers: { apikey: site.adminKey },
    });
    assert.equal(await past.text(), 'then');
  });

  test('says that its file is missing or damaged, and serves the next upload', async (t) => {
    const site = await startSite(t, { rules: [{ path: '/a', asset: 'a.bin' }] });
    const content = randomBytes(300_000);
    await put(site, 'a.bin', content);
    const path = join(site.folder, 'data/assets', sha256(content));
    await writeFile(path, 'short');
    assert.equal((await fetch(`${site.url}/a`)).status, 503);
    await put(site, 'a.bin', content);
    assert.equal((await fetch(`${site.url}/a`)).status, 200);
    assert.equal((await readFile(path)).length, content.length);
    assert.ok((await stat(path)).mtimeMs > 0);
    await utimes(path, 1, 1);
  });
});

test('an upload and a download each count as one operation of their key', async (t) => {
  const site = await startSite(t, {});
  const v = { name: 'slow', scopes: ['read', 'design', 'record.write'], rate: 1 };
  const keys = await Promise.all([0, 1].map(() => site.call('svc1.key.insert', v)));
  const [uploader, reader] = keys.map(({ data }) => data.key as string);
  // Two at once: one after the other, the second may begin when its second has come.
  const twice = async (send: () => Promise<{ readonly status: number }>) =>
    (await Promise.all([send(), send()])).map(({ status }) => status).sort();
  assert.deepEqual(await twice(() => put(site, 'a.txt', 'a', { key: uploader })), [200, 429]);
  const headers = { apikey: reader ?? '' };
  const get = () => fetch(`${site.url}/svc1/asset/a.txt`, { headers });
  assert.deepEqual(await twice(get), [200, 429]);
});
