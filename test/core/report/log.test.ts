import assert from 'node:assert/strict';
import { Writable } from 'node:stream';
import { setImmediate } from 'node:timers/promises';
import { suite, test } from 'node:test';
import { createLogs, type LogSettings, type Logs } from '../../../src/core/report/log.ts';
import { Failure } from '../../../src/core/values/failure.ts';
import { freePort } from '../../free-port.ts';
import { startSite } from '../../harness.ts';

/** Logs and their output; a pretty line takes a turn of the event loop. */
function scratchLogs(settings: LogSettings, colour = false) {
  const written: string[] = [];
  const destination = new Writable({
    write(chunk: Buffer, _encoding, done) {
      written.push(chunk.toString());
      done();
    },
  });
  const logs = createLogs({ settings, destination, colour, now: () => 0 });
  const text = async () => {
    await setImmediate();
    return written.join('');
  };
  return { ...logs, destination, text };
}

function sayAll({ log }: Pick<Logs, 'log'>): void {
  for (const level of ['debug', 'info', 'warn', 'error'] as const) log[level]({}, `at ${level}`);
}

suite('the level of the log', () => {
  const levels: readonly (readonly [level: string, lines: number])[] = [
    ['trace', 4],
    ['debug', 4],
    ['info', 3],
    ['warn', 2],
    ['error', 1],
    ['fatal', 0],
    ['silent', 0],
  ];
  for (const format of ['json', 'pretty'] as const) {
    test(`selects lines in the format ${format}`, async () => {
      for (const [level, lines] of levels) {
        const logs = scratchLogs({ level, format });
        sayAll(logs);
        const said = (await logs.text()).match(/at \w+/g) ?? [];
        assert.deepEqual(
          said,
          ['at debug', 'at info', 'at warn', 'at error'].slice(4 - lines),
          level,
        );
      }
    });
  }
});

suite('the format of the log', () => {
  test('json has an object a line, with time, level, message and fields', async () => {
    const logs = scratchLogs({ level: 'info', format: 'json' });
    logs.log.warn({ id: 'a1', line: 7 }, 'two\nlines');
    const lines = (await logs.text()).split('\n');
    assert.equal(lines.length, 2);
    const { time, ...others } = JSON.parse(lines[0] ?? '') as Record<string, unknown>;
    assert.match(String(time), /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
    assert.deepEqual(others, { level: 40, id: 'a1', line: 7, msg: 'two\nlines' });
  });

  test('pretty has readable lines, with colours on request only', async () => {
    for (const colour of [false, true]) {
      const logs = scratchLogs({ level: 'info', format: 'pretty' }, colour);
      logs.log.info({ port: 80 }, 'It serves.');
      const text = await logs.text();
      assert.equal(text.split('\n').length, 2);
      assert.equal(text.includes('\x1b['), colour);
      if (!colour) {
        assert.match(text, /^\[\d\d:\d\d:\d\d\.\d{3}\] INFO: It serves\. \{"port":80\}\n$/);
      }
    }
  });

  for (const format of ['json', 'pretty'] as const) {
    test(`${format} shows an error with its stack and its cause`, async () => {
      const logs = scratchLogs({ level: 'info', format });
      const cause = Object.assign(new Error('no room'), { code: 'ENOSPC' });
      const err = new Failure('storage_full', 'The disk is full.', { cause });
      logs.log.error({ err, id: 'a1' }, 'request failed');
      const text = await logs.text();
      for (const part of ['request failed', 'a1', 'The disk is full.', 'no room', 'log.test.ts']) {
        assert.ok(text.includes(part), part);
      }
    });
  }

  test('changes with the configuration, for both logs, and loses no line', async () => {
    const entry = {
      ...{
        address: '::1',
        method: 'GET',
        target: '/',
        host: 'a',
        httpVersion: '1.1',
        userAgent: '',
        referer: '',
        accept: '*/*',
        acceptLanguage: '',
        purpose: '',
        status: 200,
        bytes: 0,
      },
      ...{ durationMs: 0, source: 'none', keyId: undefined, cut: false },
    };
    const logs = scratchLogs({ level: 'error', format: 'pretty' });
    logs.access.add(entry);
    logs.configure({ level: 'debug', format: 'json' });
    sayAll(logs);
    logs.access.add(entry);
    logs.access.flush();
    const lines = (await logs.text()).trimEnd().split('\n');
    assert.equal(lines.length, 6, 'buffered lines are not lost');
    assert.match(lines[0] ?? '', /^00:00:00\.000 200 GET a\//);
    for (const line of lines.slice(1)) assert.equal(typeof JSON.parse(line), 'object');

    const warnings: Error[] = [];
    const warn = (warning: Error): unknown => warnings.push(warning);
    process.on('warning', warn);
    const listeners = () =>
      logs.destination.eventNames().map((name) => logs.destination.listenerCount(name));
    const before = listeners();
    for (let turn = 0; turn < 20; turn += 1) {
      logs.configure({ level: 'info', format: turn % 2 === 0 ? 'json' : 'pretty' });
    }
    await setImmediate();
    process.off('warning', warn);
    assert.deepEqual(warnings, []);
    assert.deepEqual(listeners(), before);
    logs.log.info({}, 'still here');
    assert.equal((await logs.text()).match(/still here/g)?.length, 1, 'said once');
  });
});

for (const format of ['json', 'pretty'] as const) {
  test(`the log has no secrets in the format ${format}`, async (t) => {
    const secrets = {
      cookie: 'session=cookie-secret',
      authorization: 'Bearer authorization-secret',
      sourceKey: 'source-secret',
      content: 'content-secret',
      wrongKey: 'wmk_wrong-secret',
    };
    const site = await startSite(t, {
      ini:
        '[disk.site]\nroot = site\n[fetch]\nallow_private = 127.0.0.0/8\n' +
        `[log]\nlevel = trace\nformat = ${format}\n`,
      files: { 'site/page.txt': 'a page' },
      rules: [
        {
          path: '/far/*',
          kind: 'content.fetch',
          // No server listens on this port, so the failure is logged.
          enginedata: {
            source: 'http://127.0.0.1:1/*',
            headers: { 'x-key': secrets.sourceKey },
            pass: ['cookie', 'authorization'],
          },
        },
      ],
    });
    const { cookie, authorization, wrongKey } = secrets;
    for (const path of ['/page.txt', '/none', '/far/x', '/svc1/server/status', '/svc1/x/y']) {
      for (const apikey of [site.adminKey, wrongKey]) {
        await fetch(site.url + path, { headers: { cookie, authorization, apikey } });
      }
    }
    await site.raw(
      `GET /a b HTTP/1.1\r\nHost: localhost\r\nCookie: ${cookie}\r\napikey: ${site.adminKey}\r\n\r\n`,
    );
    const { data } = await site.call('svc1.key.insert', { name: 'ci', scopes: ['read'] });
    const socket = await site.socket(data.key);
    await socket.call('svc1.session.authenticate', { apikey: site.adminKey });
    await socket.call('svc1.session.authenticate', { apikey: wrongKey });
    const page = { path: '/p', kind: 'content', content: secrets.content };
    await socket.call('svc1.userinterface.insert', page);
    await socket.call('svc1.userinterface.get_content', { origin: site.url, path: '/far/x' });
    await setImmediate();
    const logged = site.logged();
    assert.match(logged, /bad_gateway/);
    for (const secret of [...Object.values(secrets), site.adminKey, data.key as string]) {
      assert.ok(!logged.includes(secret), secret);
    }
  });
}

test('the line of a source that cannot be reached has the reason, and no stack', async (t) => {
  const port = await freePort();
  const site = await startSite(t, {
    ini: '[fetch]\nallow_private = 127.0.0.0/8\n[log]\nformat = json\n',
    rules: [
      {
        path: '/gone',
        kind: 'content.fetch',
        enginedata: { source: `http://127.0.0.1:${port}/x` },
      },
    ],
  });
  assert.equal((await fetch(`${site.url}/gone`)).status, 502);
  const lines = site.logged().trim().split('\n');
  const records = lines
    .map((line) => JSON.parse(line))
    .filter(({ code }) => code === 'bad_gateway');
  assert.equal(records.length, 1);
  assert.match(records[0].reason, new RegExp(`connect ECONNREFUSED 127\\.0\\.0\\.1:${port}`));
  assert.equal(records[0].err, undefined);
  assert.ok(!site.logged().includes('    at '));
});
