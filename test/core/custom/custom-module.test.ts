import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { suite, test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { runHere } from '../../cli/here.ts';
import { serverFolder, startServed } from '../../process.ts';
import { startSite } from '../../harness.ts';

/** A module with one operation for each thing that may go wrong. */
const misbehaved = `
import { Failure } from 'waymark/module';
const inputs = {
  throws() { throw new Error('a secret reason'); },
  rejects: async () => { throw new Error('a secret reason'); },
  fails() { throw new Failure('conflict', 'Not today.'); },
  number: () => 7,
  huge: () => ({ n: 1n }),
  async later() {
    setTimeout(() => { throw new Error('from a timer'); }, 1);
    void Promise.reject(new Error('from a promise'));
    return 'well';
  },
  blocks() {
    const endMs = performance.now() + 150;
    while (performance.now() < endMs);
    return 'done';
  },
};
export default {
  operations: [{
    name: 'do', effect: 'reads', summary: 'Does it.',
    input: { type: 'object', required: ['what'], properties: { what: { type: 'string' } } },
    output: {},
    run: ({ what }) => inputs[what](),
  }],
  provision: () => ({
    paths: {
      page: (request, { address }) => new Response(
        \`\${request.method} \${new URL(request.url).pathname} \${address}\`,
        { status: 201, headers: { 'x-mine': '1', 'content-type': 'text/plain' } },
      ),
      echo: async (request) => new Response(await request.text()),
      text: () => 'no response',
      cut: () => new Response(new ReadableStream({ start: (c) => c.error(new Error('cut')) })),
    },
  }),
};`;

const ini = '[module.bad]\nfrom = ./bad.js\n';

suite('[module.<name>]', () => {
  test('an operation answers over HTTP and websocket, and is in the documents', async (t) => {
    const site = await startSite(t, { ini, files: { 'bad.js': misbehaved } });
    const reply = await fetch(`${site.url}/svc1/bad/do?_v.what=number`);
    assert.deepEqual(await reply.json(), { r: 'svc1.bad.do', data: 7 });
    const socket = await site.socket();
    const answer = await socket.call('svc1.bad.do', { what: 'number' });
    assert.equal(answer.data, 7);
    const documents = await fetch(`${site.url}/svc1/openapi.json`);
    const { paths } = (await documents.json()) as { paths: Record<string, unknown> };
    assert.ok(paths['/svc1/bad/do']);
    const { data } = await site.call('svc1.server.configuration', {});
    const { sections } = data as { sections: { section: string; line: number }[] };
    assert.ok(sections.some(({ section, line }) => section === 'module.bad' && line > 1));
  });

  test('an operation is a command, and a tool', async (t) => {
    const files = { 'bad.js': misbehaved };
    const site = await startSite(t, { ini, files });
    const words = ['bad', 'do', 'number', '--url', site.url, '--config', site.iniFile];
    const { code, out, err } = await runHere(words);
    assert.deepEqual([code, out.trim()], [0, '7'], err);
    const reply = await fetch(`${site.url}/svc1/mcp`, {
      method: 'POST',
      headers: {
        apikey: site.adminKey,
        'content-type': 'application/json',
        accept: 'application/json, text/event-stream',
      },
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/list', params: {} }),
    });
    assert.match(await reply.text(), /"bad_do"/);
  });

  test('what an operation throws ends its own answer', async (t) => {
    const site = await startSite(t, { ini, files: { 'bad.js': misbehaved } });
    const codeOf = async (what: string) => (await site.call('svc1.bad.do', { what })).error;
    for (const what of ['throws', 'rejects', 'huge']) {
      const error = await codeOf(what);
      assert.equal(error?.code, 'internal', what);
      assert.doesNotMatch(error.message, /secret/);
    }
    assert.match(site.logged(), /module:bad.*\n.*the module bad failed: operation do/);
    assert.match(site.logged(), /caused by: Error: a secret reason/);
    const failure = await codeOf('fails');
    assert.deepEqual([failure?.code, failure?.message], ['conflict', 'Not today.']);
    assert.equal((await site.call('svc1.bad.do', { what: 'number' })).data, 7);
  });

  test('a path answers with a Response; all else is a 500 that the log names', async (t) => {
    const site = await startSite(t, { ini, files: { 'bad.js': misbehaved } });
    const reply = await fetch(`${site.url}/svc1/bad/page/more?x=1`);
    assert.equal(reply.status, 201);
    assert.equal(reply.headers.get('x-mine'), '1');
    assert.equal(await reply.text(), 'GET /svc1/bad/page/more 127.0.0.1');
    const sent = await fetch(`${site.url}/svc1/bad/echo`, { method: 'POST', body: 'a b' });
    assert.equal(await sent.text(), 'a b');
    assert.equal((await fetch(`${site.url}/svc1/bad/text`)).status, 500);
    assert.match(site.logged(), /the module bad failed: path text/);
    assert.match(site.logged(), /the answer is no Response: no response/);
    await assert.rejects(fetch(`${site.url}/svc1/bad/cut`).then((cut) => cut.text()));
    assert.equal((await fetch(`${site.url}/svc1/bad/none`)).status, 404);
    assert.equal((await fetch(`${site.url}/svc1/health`)).status, 200);
  });

  test('the log names a module that blocks all other requests', async (t) => {
    const site = await startSite(t, { ini, files: { 'bad.js': misbehaved } });
    await site.call('svc1.bad.do', { what: 'blocks' });
    assert.match(site.logged(), /The module bad has blocked all .* for \d+ ms: operation do\./);
  });

  test('what it throws behind an answer is logged, and the server lives', async (t) => {
    const { iniFile } = await serverFolder(t, ini, { 'bad.js': misbehaved });
    const { url, out, child, closed } = await startServed(t, iniFile);
    const reply = await fetch(`${url}/svc1/bad/do?_v.what=later`);
    assert.equal(((await reply.json()) as { data: string }).data, 'well');
    while (!['a timer', 'a promise'].every((one) => out().includes(`from ${one}`))) {
      assert.equal((await fetch(`${url}/svc1/health`)).status, 200);
    }
    assert.match(out(), /The module bad has thrown outside of an answer\./);
    child.kill('SIGTERM');
    assert.equal((await closed).code, 0);
  });

  test('a reload gives it new settings; another file needs a restart', async (t) => {
    const module = `
      import { anyText, single } from 'waymark/module';
      export default {
        keys: { word: single(anyText, 'one') },
        operations: [{ name: 'word', effect: 'reads', summary: 'The word.',
          input: { type: 'object' }, output: {}, run: (_v, { word }) => word }],
        provision: ({ settings: { word } }) => ({ parts: { word } }),
      };`;
    const text = '[module.words]\nfrom = ./words.js\n';
    const { iniFile, ini: before } = await serverFolder(t, text, {
      'words.js': module,
      'others.js': module,
    });
    const { url, out } = await startServed(t, iniFile);
    const word = async () =>
      ((await (await fetch(`${url}/svc1/words/word`)).json()) as { data: string }).data;
    assert.equal(await word(), 'one');
    await writeFile(iniFile, `${before}word = two\n`);
    while ((await word()) !== 'two');
    await writeFile(iniFile, before.replace('words.js', 'others.js'));
    while (!out().includes('[module.words] from has changed: restart the server to use it.')) {
      await fetch(`${url}/svc1/health`);
    }
    assert.equal(await word(), 'two');
  });
});

/** A module with a step of each place. */
const stepping = `
export default {
  provision: () => ({
    steps: [
      { name: 'notice', at: 'response', about: 'Shows a notice on pages.',
        async handle(request, next) {
          if (request.headers.has('x-throw')) throw new Error('no');
          const response = await next();
          if (request.headers.has('x-text')) return 'text';
          if (!(response.headers.get('content-type') ?? '').startsWith('text/html')) return response;
          const { status, headers } = response;
          return new Response('<p>Notice</p>' + await response.text(), { status, headers });
        } },
      { name: 'own', at: 'source', about: 'Answers /own.',
        handle: (request, next) => new URL(request.url).pathname === '/own'
          ? new Response('mine', { headers: { 'content-type': 'text/plain' } })
          : next() },
      { name: 'last', at: 'fallback', about: 'Answers what nothing else has.',
        async handle(request, next) {
          return new URL(request.url).pathname === '/nothing' ? new Response('last') : next();
        } },
    ],
  }),
};`;

suite('the steps of a module', () => {
  const given = {
    ini: '[disk.main]\nroot = site\n[module.steps]\nfrom = ./steps.js\n',
    files: {
      'steps.js': stepping,
      'site/index.html': '<h1>Home</h1>',
      'site/page.html': '<h1>Page</h1>',
      'site/page.html.gz': gzipSync('<h1>Compressed</h1>'),
      'site/a.txt': 'plain',
      'site/own': 'of the disk',
    },
    rules: [{ path: '/rule', content: '<h1>Rule</h1>', contenttype: 'text/html' }],
  };

  test('change answers of every source, and stand before and behind all others', async (t) => {
    const site = await startSite(t, given);
    const textOf = async (path: string, headers = {}) =>
      (await fetch(`${site.url}${path}`, { headers })).text();
    assert.equal(await textOf('/'), '<p>Notice</p><h1>Home</h1>');
    assert.equal(await textOf('/'), '<p>Notice</p><h1>Home</h1>');
    assert.equal(await textOf('/rule'), '<p>Notice</p><h1>Rule</h1>');
    assert.equal(await textOf('/page.html'), '<p>Notice</p><h1>Compressed</h1>');
    assert.equal(await textOf('/a.txt'), 'plain');
    assert.equal(await textOf('/own'), 'mine');
    assert.equal(await textOf('/nothing'), 'last');
    assert.equal((await fetch(`${site.url}/missing`)).status, 404);
    const [home, text] = [await fetch(site.url), await fetch(`${site.url}/a.txt`)];
    assert.equal(home.headers.get('etag'), null);
    assert.notEqual(text.headers.get('etag'), null);
    const { status, headers } = await fetch(`${site.url}/`, { method: 'HEAD' });
    assert.deepEqual([status, headers.get('content-type')], [200, 'text/html; charset=utf-8']);
    const etag = text.headers.get('etag') ?? '';
    const again = await fetch(`${site.url}/a.txt`, { headers: { 'if-none-match': etag } });
    assert.equal(again.status, 304);
  });

  test('that fail end their own answers, and the log has the id', async (t) => {
    const site = await startSite(t, given);
    for (const name of ['x-throw', 'x-text']) {
      const reply = await fetch(site.url, { headers: { [name]: '1', accept: 'text/plain' } });
      assert.equal(reply.status, 500);
      const [, id = ''] = /\(([\da-f-]{36})\)/.exec(await reply.text()) ?? [];
      assert.match(site.logged(), new RegExp(`${id}.*module:steps`));
      assert.match(site.logged(), /the module steps failed: step notice/);
    }
    assert.equal((await fetch(site.url)).status, 200);
  });

  test('are in explain', async (t) => {
    const site = await startSite(t, given);
    const { data } = await site.call('svc1.userinterface.explain', { path: '/' });
    const { winner, notes } = data as { winner: { source: string }; notes: readonly string[] };
    assert.equal(winner.source, 'disk');
    assert.ok(notes.includes('The module steps has a step here, which may answer: Answers /own.'));
  });
});

suite('waymark check', () => {
  test('names the line of a module that cannot be used, and why', async (t) => {
    const {
      iniFile,
      folder,
      ini: base,
    } = await serverFolder(t, '', {
      'none.js': 'export const x = 1;',
      'wrong.js': 'export default { stepz: [] };',
      'broken.js': 'export default {',
      'throws.js': "throw new Error('at once'); ",
      'fine.js': `import { single, wholeNumber } from 'waymark/module';
        export default { keys: { days: single(wholeNumber(1, 9), '3') } };`,
    });
    for (const [lines, expected] of [
      [
        '[module.a]\nfrom = ./none.js',
        /:5: cannot load .*`\.\/none\.js`: it has no default export/,
      ],
      ['[module.a]\nfrom = ./gone.js', /:5: cannot load .*there is no module/],
      ['[module.a]\nfrom = no-such-package', /:5: cannot load .*there is no package 'no-such-pack/],
      ['[module.a]\nfrom = ./wrong.js', /:5: .*unknown member `stepz`/],
      ['[module.a]\nfrom = ./broken.js', /:5: .*SyntaxError/],
      ['[module.a]\nfrom = ./throws.js', /:5: .*Error: at once \(.*throws\.js:1/],
      ['[module.a]', /:4: \[module\.a\] needs `from`/],
      ['[module]\nfrom = ./fine.js', /:4: \[module\] needs a name/],
      ['[module.key]\nfrom = ./fine.js', /:4: Waymark itself has `key`/],
      ['[module.tables]\nfrom = ./fine.js', /:4: Waymark itself has `tables`/],
      ['[module.a]\nfrom = ./fine.js\ndasy = 3', /:6: unknown key `dasy` .*mean `days`\?/],
      ['[module.a]\nfrom = ./fine.js\ndays = 30', /:6: `days` cannot be `30`: write a whole/],
    ] as const) {
      await writeFile(iniFile, `${base}${lines}\n`);
      const { code, err } = await runHere(['check', '--config', iniFile]);
      assert.equal(code, 1, lines);
      assert.match(err, expected);
    }
    await writeFile(iniFile, `${base}[module.a]\nfrom = ./fine.js\n`);
    const { code, out } = await runHere(['check', '--config', iniFile]);
    assert.equal(code, 0);
    assert.ok(out.includes(`[module.a]\nfrom = ${join(folder, 'fine.js')}\ndays = 3\n`), out);
  });
});
