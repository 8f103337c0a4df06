import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { createAccessLog, type AccessEntry } from '../../src/observability/access.ts';
import { startSite } from '../harness.ts';

const entry: AccessEntry = {
  address: '192.0.2.7',
  method: 'GET',
  target: '/a?b=c',
  host: 'shop.example:8080',
  status: 200,
  bytes: 1234,
  durationMs: 5.678,
  source: 'disk:site',
  keyId: undefined,
  cut: false,
};

function accessLog(format: 'pretty' | 'json', now: () => number = () => 1_735_787_045_678) {
  const written: string[] = [];
  const sink = { write: (text: string) => written.push(text) };
  return { log: createAccessLog({ format, sink, now }), written };
}

/** The lines that entries come to. */
function linesOf(format: 'pretty' | 'json', ...entries: readonly AccessEntry[]): readonly string[] {
  const { log, written } = accessLog(format);
  entries.forEach((one) => {
    log.add(one);
  });
  log.flush();
  const text = written.join('');
  assert.ok(text === '' || text.endsWith('\n'));
  return text.split('\n').slice(0, -1);
}

suite('a line of the access log', () => {
  test('is one for a person', () => {
    assert.deepEqual(linesOf('pretty', entry, { ...entry, cut: true, durationMs: 0 }), [
      '03:04:05.678 200 GET shop.example:8080/a?b=c 1234 B 5.7 ms disk:site 192.0.2.7',
      '03:04:05.678 200 GET shop.example:8080/a?b=c 1234 B 0.0 ms disk:site 192.0.2.7 (cut off)',
    ]);
  });

  test('or one of JSON, with the id of the caller’s key where there is one', () => {
    const [plain = '', full = ''] = linesOf('json', entry, { ...entry, cut: true, keyId: 'k1' });
    const fields = {
      ...{ level: 30, time: '2025-01-02T03:04:05.678Z', msg: 'request', address: '192.0.2.7' },
      ...{ method: 'GET', host: 'shop.example:8080', target: '/a?b=c', status: 200, bytes: 1234 },
      ...{ ms: 5.68, source: 'disk:site' },
    };
    assert.deepEqual(JSON.parse(plain), fields);
    assert.deepEqual(JSON.parse(full), { ...fields, key: 'k1', cut: true });
  });

  test('has the time at which its answer was sent', () => {
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
  test('holds nothing that could start another one or command a terminal', () => {
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

suite('the access log', () => {
  test('hands nothing over before somebody asks', () => {
    const { log, written } = accessLog('pretty');
    log.flush();
    assert.deepEqual(written, []);
    log.add(entry);
    assert.deepEqual(written, []);
    log.flush();
    log.flush();
    assert.equal(written.length, 1);
  });

  test('hands over what has become much by itself', () => {
    const { log, written } = accessLog('pretty');
    for (let count = 0; count < 1_000; count += 1) log.add(entry);
    assert.ok(written.length > 1 && written.length < 10);
    log.flush();
    assert.equal(written.join('').split('\n').length - 1, 1_000);
  });

  test('has a line for every request, as it was sent, and none where it is off', async (t) => {
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
