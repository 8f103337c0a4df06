import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import type { AccessEntry } from '../../../src/core/report/access-entry.ts';
import { accessFields } from '../../../src/modules/logs/access-fields.ts';
import {
  type AccessFormat,
  type AccessLineSettings,
  accessFlushMs,
  createAccessLog,
  withoutKeys,
} from '../../../src/modules/logs/access-log.ts';
import { startSite } from '../../harness.ts';

const entry: AccessEntry = {
  address: '192.0.2.7',
  method: 'GET',
  target: '/a?b=c',
  host: 'shop.example:8080',
  httpVersion: '1.1',
  userAgent: '',
  referer: '',
  accept: '*/*',
  acceptLanguage: '',
  purpose: '',
  status: 200,
  bytes: 1234,
  durationMs: 5.678,
  source: 'disk:site',
  keyId: undefined,
  cut: false,
};

function accessLog(
  settings: AccessFormat | AccessLineSettings,
  now: () => number = () => 1_735_787_045_678,
) {
  const written: string[] = [];
  const sink = { write: (text: string) => written.push(text) };
  const given = typeof settings === 'string' ? { format: settings } : settings;
  return { log: createAccessLog({ ...given, sink, now }), written };
}

/** The lines of entries. */
function linesOf(
  settings: AccessFormat | AccessLineSettings,
  ...entries: readonly AccessEntry[]
): readonly string[] {
  const { log, written } = accessLog(settings);
  entries.forEach((one) => {
    log.add(one);
  });
  log.flush();
  const text = written.join('');
  assert.ok(text === '' || text.endsWith('\n'));
  return text.split('\n').slice(0, -1);
}

test('the access log writes its lines shortly after the first one', (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const { log, written } = accessLog('pretty');
  for (let round = 1; round <= 2; round += 1) {
    log.add(entry);
    log.add(entry);
    assert.equal(written.length, round - 1);
    t.mock.timers.tick(accessFlushMs);
    assert.equal(written.length, round);
  }
});

suite('a line of the access log', () => {
  test('is readable in the format pretty', () => {
    assert.deepEqual(linesOf('pretty', entry, { ...entry, cut: true, durationMs: 0 }), [
      '03:04:05.678 200 GET shop.example:8080/a?b=c 1234 B 5.7 ms disk:site 192.0.2.7',
      '03:04:05.678 200 GET shop.example:8080/a?b=c 1234 B 0.0 ms disk:site 192.0.2.7 (cut off)',
    ]);
  });

  test('is an object in the format json, with the id of the key, if any', () => {
    const [plain = '', full = ''] = linesOf('json', entry, { ...entry, cut: true, keyId: 'k1' });
    const fields = {
      ...{ level: 30, time: '2025-01-02T03:04:05.678Z', msg: 'request', address: '192.0.2.7' },
      ...{ method: 'GET', host: 'shop.example:8080', target: '/a?b=c', status: 200, bytes: 1234 },
      ...{ ms: 5.68, source: 'disk:site' },
    };
    assert.deepEqual(JSON.parse(plain), fields);
    assert.deepEqual(JSON.parse(full), { ...fields, key: 'k1', cut: true });
  });

  test('in the format json has User-Agent and Referer, if they were sent', () => {
    const [line = ''] = linesOf('json', {
      ...entry,
      userAgent: 'curl/8.5 "x"',
      referer: 'https://a.example/',
      accept: '*/*',
      acceptLanguage: '',
      purpose: '',
    });
    const { user_agent: agent, referer } = JSON.parse(line);
    assert.deepEqual([agent, referer], ['curl/8.5 "x"', 'https://a.example/']);
  });

  test('is that of Apache and nginx in the format combined', () => {
    const agent = 'Mozilla/5.0 (X11; Linux x86_64)';
    assert.deepEqual(
      linesOf(
        'combined',
        entry,
        {
          ...entry,
          keyId: 'k1',
          userAgent: agent,
          referer: 'http://a.example/b',
          accept: '*/*',
          acceptLanguage: '',
          purpose: '',
          httpVersion: '2.0',
        },
        // A malformed request line.
        { ...entry, method: '-', target: '\x16\x03\x01', httpVersion: '', status: 400 },
        { ...entry, userAgent: '"\\\n\x7f\xe9\u20ac', referer: 'x" 200 "' },
      ),
      [
        '192.0.2.7 - - [02/Jan/2025:03:04:05 +0000] "GET /a?b=c HTTP/1.1" 200 1234 "-" "-"',
        '192.0.2.7 - k1 [02/Jan/2025:03:04:05 +0000] "GET /a?b=c HTTP/2.0" 200 1234 ' +
          `"http://a.example/b" "${agent}"`,
        '192.0.2.7 - - [02/Jan/2025:03:04:05 +0000] "\\x16\\x03\\x01" 400 1234 "-" "-"',
        '192.0.2.7 - - [02/Jan/2025:03:04:05 +0000] "GET /a?b=c HTTP/1.1" 200 1234 ' +
          '"x\\x22 200 \\x22" "\\x22\\x5C\\x0A\\x7F\\xE9\\xE2\\x82\\xAC"',
      ],
    );
  });

  test('has the time of the response', () => {
    let nowMs = 999;
    const { log, written } = accessLog('pretty', () => nowMs);
    for (const next of [1_000, 1_007.9, 59_999, 3_600_000]) {
      log.add(entry);
      nowMs = next;
    }
    log.add(entry);
    log.flush();
    assert.deepEqual(written.join('').match(/^\S+/gm), [
      '00:00:00.999',
      '00:00:01.000',
      '00:00:01.007',
      '00:00:59.999',
      '01:00:00.000',
    ]);
  });

  const hostile: readonly string[] = [
    '/a\n03:04:05.678 200 GET shop.example/forged 1 B',
    '/a\r\nforged',
    '/\x1b[2J\x1b[31mred',
    '/\x9b31mred',
    '/\x85next',
    '/\x00\x07\x08\x7f',
    '/\u2028\u2029',
    '/","status":200,"forged":"',
    '/\\',
    '/\\u000a',
    '/caf\xe9',
    '/\ud800',
  ];
  test('has no line breaks and no control sequences of terminals', () => {
    for (const text of hostile) {
      for (const format of ['pretty', 'json'] as const) {
        for (const name of ['target', 'host', 'method'] as const) {
          const lines = linesOf(format, { ...entry, [name]: text });
          assert.equal(lines.length, 1, JSON.stringify(text));
          const [line = ''] = lines;
          assert.doesNotMatch(line, /[\p{Cc}\p{Zl}\p{Zp}]/u, JSON.stringify(text));
          if (format === 'json') {
            assert.deepEqual(JSON.parse(line), {
              ...(JSON.parse(linesOf('json', entry)[0] ?? '') as object),
              [name]: text,
            });
          }
        }
      }
    }
  });
});

const detailed: AccessEntry = {
  ...entry,
  details: { tls: 'TLSv1.3', bytesIn: 7, sourceMs: 1.239, user: 'ann b' },
  userAgent: 'curl/8.5',
  source: 'rule:r1',
  cache: 'hit',
};

suite('a line with chosen fields', () => {
  test('is an object with these in the format json, without empty ones', () => {
    const fields = ['time', 'user', 'tls', 'bytes_in', 'source_ms', 'rule', 'referer'] as const;
    const [line = ''] = linesOf({ format: 'json', fields }, detailed);
    assert.deepEqual(JSON.parse(line), {
      ...{ level: 30, msg: 'request', time: '2025-01-02T03:04:05.678Z', user: 'ann b' },
      ...{ tls: 'TLSv1.3', bytes_in: 7, source_ms: 1.24, rule: 'r1' },
    });
  });

  test('has them at its end in the formats combined and pretty', () => {
    const fields = ['protocol', 'cache', 'referer', 'bytes_in'] as const;
    const combined =
      '192.0.2.7 - ann\\x20b [02/Jan/2025:03:04:05 +0000] "GET /a?b=c HTTP/1.1" 200 1234 "-" ' +
      '"curl/8.5" "HTTP/1.1" "hit" "-" "7"';
    assert.deepEqual(linesOf({ format: 'combined', fields }, detailed), [combined]);
    assert.deepEqual(linesOf({ format: 'pretty', fields }, detailed), [
      '03:04:05.678 200 GET shop.example:8080/a?b=c 1234 B 5.7 ms rule:r1 (hit) 192.0.2.7 ' +
        'protocol=HTTP/1.1 cache=hit bytes_in=7',
    ]);
  });

  test('is that of a template', () => {
    const line = '{address} [{date}] "{request}" {path} {query} {status} {} {user} {cut} {ms}ms';
    assert.deepEqual(linesOf({ format: 'json', line }, { ...detailed, cut: true }), [
      '192.0.2.7 [02/Jan/2025:03:04:05 +0000] "GET /a?b=c HTTP/1.1" /a b=c 200 {} ann b cut 5.68ms',
    ]);
  });

  test('cannot be broken by a value of a client', () => {
    const hostile = '\n"\\\r\x1b[2J\x00\x85\u2028{status} $& \ud800" 200 "';
    const texts = { target: hostile, host: hostile, method: hostile, userAgent: hostile };
    const sent = { ...detailed, ...texts, referer: hostile };
    const details = { tls: hostile, bytesIn: 1, sourceMs: 1, user: hostile };
    const line = accessFields.map((name) => `"{${name}}"`).join(' ');
    for (const settings of [
      { format: 'json', line },
      ...(['json', 'combined', 'pretty'] as const).map((format) => ({
        format,
        fields: accessFields,
      })),
    ] as const) {
      const [whole = '', ...others] = linesOf(settings, { ...sent, details });
      assert.deepEqual(others, []);
      assert.doesNotMatch(whole, /[\p{Cc}\p{Zl}\p{Zp}]/u);
      if ('line' in settings) assert.equal(whole.split('"').length - 1, 2 * accessFields.length);
      else if (settings.format === 'json') assert.equal(JSON.parse(whole).user, hostile);
    }
  });
});

suite('the access log', () => {
  test('writes nothing before it is flushed', () => {
    const { log, written } = accessLog('pretty');
    log.flush();
    assert.deepEqual(written, []);
    log.add(entry);
    assert.deepEqual(written, []);
    log.flush();
    log.flush();
    assert.equal(written.length, 1);
  });

  test('writes a full buffer without a flush', () => {
    const { log, written } = accessLog('pretty');
    for (let count = 0; count < 1_000; count += 1) log.add(entry);
    assert.ok(written.length > 1 && written.length < 10);
    log.flush();
    assert.equal(written.join('').split('\n').length - 1, 1_000);
  });

  test('has a line for each request as it was sent, and none if it is off', async (t) => {
    const ini = '[disk.site]\nroot = site\n[log]\nformat = json\n';
    const files = { 'site/page.txt': 'a page' };
    const site = await startSite(t, { ini, files });
    await site.raw('GET /p%61ge.txt?x HTTP/1.1\r\nHost: LOCALHOST\r\nConnection: close\r\n\r\n');
    await site.raw('HEAD /none HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n');
    await site.raw('GET /a/../b HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n');
    await site.raw('GET / HTTP/1.1\r\nHost: a\x9bb\r\nConnection: close\r\n\r\n');
    await site.call('svc1.server.status', {});
    const lines = site
      .logged()
      .split('\n')
      .filter((line) => line.includes('"msg":"request"'))
      .map((line) => JSON.parse(line) as Record<string, unknown>);
    assert.deepEqual(
      lines.map(({ method, host, target, status, bytes, source }) => [
        ...[method, host, target, status],
        ...(status === 200 && source !== 'svc1' ? [bytes] : []),
        source,
      ]),
      [
        ['GET', 'LOCALHOST', '/p%61ge.txt?x', 200, 6, 'disk:site'],
        ['HEAD', 'localhost', '/none', 404, 'none'],
        ['GET', 'localhost', '/a/../b', 400, 'none'],
        ['GET', 'a\x9bb', '/', 400, 'none'],
        ['POST', `localhost:${site.port}`, '/svc1/server/status', 200, 'svc1'],
      ],
    );
    const [page, , , , status] = lines;
    assert.equal(page?.key, undefined);
    assert.match(String(status?.key), /^[0-9a-f-]{36}$/);

    const quiet = await startSite(t, { ini: `${ini}access = no\n`, files });
    await quiet.call('svc1.server.status', {});
    assert.ok(!quiet.logged().includes('"msg":"request"'));
  });
});

test('a request over HTTP has its version, User-Agent and Referer in the access log', async (t) => {
  const site = await startSite(t, {
    ini: '[log]\nformat = combined\n',
    rules: [{ path: '/a', content: 'x' }],
  });
  const headers = { 'User-Agent': 'Robot/1', Referer: 'https://a.example/?key=wmk_secret' };
  // The second response is the one that was prepared for the first.
  for (let time = 0; time < 3; time += 1) await (await fetch(`${site.url}/a`, { headers })).text();
  await site.raw('GET /b HTTP/1.1\r\nHost: x\r\nBad Field: 1\r\n\r\n');
  const lines = site
    .logged()
    .split('\n')
    .filter((line) => line.startsWith('127.0.0.1 - '));
  const fetched =
    / - - \[.* \+0000\] "GET \/a HTTP\/1\.1" 200 1 "https:\/\/a\.example\/\?key=wmk_.{3,12}" "Robot\/1"$/;
  assert.equal(lines.filter((line) => fetched.test(line)).length, 3, lines.join('\n'));
  assert.ok(
    lines.some((line) => / "GET \/b" 400 \d+ "-" "-"$/.test(line)),
    lines.join('\n'),
  );
  assert.ok(!site.logged().includes('wmk_secret'));
});

test('keys in URLs are masked as a whole, also percent-encoded', () => {
  const masked = (target: string): string =>
    withoutKeys({ target, referer: target } as AccessEntry).target;
  assert.equal(masked('/a?b=wmk_abc%64ef&c=%2F'), '/a?b=wmk_…&c=%2F');
  assert.equal(masked('/a?b=%77mk%5Fabc'), '/a?b=wmk_…');
  assert.equal(masked('/a?t=wmb_abc&u=%77m%2562%5Fabc'), '/a?t=wmb_…&u=wmb_…');
  assert.equal(
    masked('/a?b=%252Fx%253Fy%253Dwmk%25255Fabc%2526c'),
    '/a?b=%252Fx%253Fy%253Dwmk_…%2526c',
  );
  assert.equal(masked('/a?b=wm_abc'), '/a?b=wm_abc');
});
