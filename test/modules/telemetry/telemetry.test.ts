import assert from 'node:assert/strict';
import { appendFile, writeFile } from 'node:fs/promises';
import { suite, test, type TestContext } from 'node:test';
import { readTestConfig, startSite, type TestSite } from '../../harness.ts';
import { httpSource } from '../../core/outbound/sources.ts';
import { startReceiver } from '../webhooks/receiver.ts';
import { startCollector, type Collector, type Received } from './collector.ts';

const traceId = '0af7651916cd43dd8448eb211c80319c';
const sentSpan = 'b7ad6b7169203331';
const sampled = { traceparent: `00-${traceId}-${sentSpan}-01`, tracestate: 'rojo=1,congo=t61' };
const unsampled = { traceparent: `00-${traceId}-${sentSpan}-00` };

/** A source that records the fields of its requests. */
async function tracedSource(t: TestContext, status = 200) {
  const heads: NodeJS.Dict<string | string[]>[] = [];
  const { origin } = await httpSource(t, ({ headers }, response) => {
    heads.push(headers);
    response.writeHead(status).end('from afar');
  });
  return { origin, heads };
}

/** The parts of the traceparent that a source has got. */
function partsOf(headers: NodeJS.Dict<string | string[]> | undefined): readonly string[] {
  return String(headers?.traceparent).split('-');
}

function farRule(...origins: readonly string[]): object {
  return {
    path: '/far/*',
    kind: 'content.fetch',
    enginedata: { source: origins.map((origin) => `${origin}/*`) },
  };
}

const fetchIni = '[fetch]\nallow_private = 127.0.0.0/8\ncache = 0\n';

/** Stops a server, which sends all of its spans. */
async function spansAtEnd(site: TestSite, collector: Collector): Promise<readonly Received[]> {
  await site.waymark.stop(1_000);
  return collector.spans;
}

function named(spans: readonly Received[], name: string): Received {
  const found = spans.find((one) => one.name === name);
  assert.ok(found, `no span ${name}: ${spans.map((one) => one.name).join(', ')}`);
  return found;
}

// Each test has its own server.
suite('[telemetry]', { concurrency: 4 }, () => {
  test('continues the trace of a request, and passes it on to the source', async (t) => {
    const collector = await startCollector(t);
    const { origin, heads } = await tracedSource(t);
    const ini = `${collector.ini}service = shop\nheaders = X-Key=a%20b\n${fetchIni}`;
    const site = await startSite(t, { ini, rules: [farRule(origin)] });
    const reply = await fetch(`${site.url}/far/a?b=c`, { headers: sampled });
    assert.equal(await reply.text(), 'from afar');
    const spans = await spansAtEnd(site, collector);
    const client = named(spans, 'GET');
    const server = spans.find(({ kind }) => kind === 2);
    assert.ok(server);
    assert.deepEqual([server.traceId, server.parentId], [traceId, sentSpan]);
    assert.match(server.name, /^GET rule:/);
    const { port } = new URL(site.url);
    const expected = {
      'http.request.method': 'GET',
      'url.scheme': 'http',
      'url.path': '/far/a',
      'url.query': 'b=c',
      'server.address': 'localhost',
      'server.port': Number(port),
      'network.protocol.version': '1.1',
      'http.response.status_code': 200,
      'http.response.body.size': 9,
    };
    assert.deepEqual({ ...server.attributes, ...expected }, server.attributes);
    assert.deepEqual([client.traceId, client.parentId], [traceId, server.spanId]);
    assert.equal(client.attributes['url.full'], `${origin}/a`);
    assert.equal(client.attributes['http.response.status_code'], 200);
    assert.deepEqual(partsOf(heads[0]), ['00', traceId, client.spanId, '01']);
    assert.equal(heads[0]?.tracestate, sampled.tracestate);
    assert.equal(collector.heads[0]?.['x-key'], 'a b');
    assert.match(collector.texts.join(), /"service.name","value":\{"stringValue":"shop"/);
  });

  test('begins a trace without a valid one, and passes on whether it is recorded', async (t) => {
    const collector = await startCollector(t);
    const { origin, heads } = await tracedSource(t);
    const ini = `${collector.ini}sample = 0\ntrust = 127.0.0.2\n${fetchIni}`;
    const site = await startSite(t, { ini, rules: [farRule(origin)] });
    await fetch(`${site.url}/far/a`, { headers: { traceparent: 'x', tracestate: 'a=1' } });
    await fetch(`${site.url}/far/a`, { headers: sampled });
    assert.deepEqual(await spansAtEnd(site, collector), []);
    const [[, id, , flags] = [], [, sameId, span, noFlags] = []] = heads.map(partsOf);
    assert.match(String(id), /^[\da-f]{32}$/);
    assert.equal(heads[0]?.tracestate, undefined);
    assert.deepEqual([sameId, flags, noFlags], [traceId, '00', '00']);
    assert.notEqual(span, sentSpan);
  });

  test('lets only trusted servers decide about what is recorded', async (t) => {
    const collector = await startCollector(t);
    const ini = `${collector.ini}sample = 0\ntrust = 127.0.0.0/8, ::1\n[disk.site]\nroot = site\n`;
    const site = await startSite(t, { ini, files: { 'site/a.txt': 'a' } });
    await fetch(`${site.url}/a.txt`, { headers: sampled });
    await fetch(`${site.url}/a.txt`, { headers: unsampled });
    await fetch(`${site.url}/a.txt`);
    const spans = await spansAtEnd(site, collector);
    assert.deepEqual(
      spans.map((one) => [one.name, one.traceId]),
      [['GET disk:site', traceId]],
    );
  });

  test('has a span for each source that is tried', async (t) => {
    const collector = await startCollector(t);
    const [bad, good] = [await tracedSource(t, 503), await tracedSource(t)];
    const ini = collector.ini + fetchIni;
    const site = await startSite(t, { ini, rules: [farRule(bad.origin, good.origin)] });
    // The sources take turns.
    for (const path of ['/far/a', '/far/a']) await (await fetch(site.url + path)).text();
    const spans = (await spansAtEnd(site, collector)).filter(({ name }) => name === 'GET');
    const failed = spans.filter(({ isError }) => isError);
    assert.ok(failed.length > 0);
    for (const { attributes } of failed) assert.equal(attributes['error.type'], '503');
    const again = spans.filter(({ attributes }) => attributes['http.request.resend_count'] === 1);
    assert.equal(again.length, failed.length);
    assert.equal(new Set(spans.map(({ traceId: id }) => id)).size, 2);
  });

  test('has spans for operations, commits, rendering and deliveries', async (t) => {
    const collector = await startCollector(t);
    const receiver = await startReceiver(t);
    const page = {
      ...{ path: '/page', kind: 'content', engine: 'template' },
      enginedata: { render: 'server', template: '<h1>a page</h1>' },
    };
    const ini = `${collector.ini}[webhook]\nallow_private = 127.0.0.0/8\n`;
    const site = await startSite(t, { ini, rules: [page] });
    assert.match(await (await fetch(`${site.url}/page`)).text(), /a page/);
    const hook = { event: ['sale.completed'], url: `${receiver.url}secret?key=secret` };
    await site.call('svc1.webhook.insert', hook);
    const socket = await site.socket(site.adminKey);
    await socket.call('svc1.event.insert', { type: 'sale.completed', data: {} });
    const [got] = await receiver.until(1);
    const spans = await spansAtEnd(site, collector);
    const delivery = named(spans, 'POST webhook');
    assert.deepEqual([delivery.kind, delivery.parentId], [3, '']);
    assert.deepEqual(partsOf(got?.headers), ['00', delivery.traceId, delivery.spanId, '01']);
    assert.equal(delivery.attributes['waymark.message'], got?.headers['webhook-id']);
    const parents = (name: string) => {
      const { parentId } = named(spans, name);
      return spans.find(({ spanId }) => spanId === parentId)?.name;
    };
    assert.match(parents('render') ?? '', /^GET rule:/);
    assert.equal(parents('svc1.webhook.insert'), 'POST svc1');
    assert.equal(parents('commit'), 'svc1.webhook.insert');
    // An operation over a websocket is a trace of its own.
    const insert = named(spans, 'svc1.event.insert');
    assert.deepEqual([insert.kind, insert.parentId], [2, '']);
    assert.ok(spans.some(({ parentId, name }) => name === 'commit' && parentId === insert.spanId));
    assert.doesNotMatch(collector.texts.join(), /secret/);
    assert.ok(!collector.texts.join().includes(site.adminKey));
  });

  test('shows no address, credentials or redacted parameters', async (t) => {
    const collector = await startCollector(t);
    const ini = `${collector.ini}[log]\nredact = email\n`;
    const site = await startSite(t, { ini, server: 'trust_proxy = 127.0.0.0/8, ::1' });
    const query = `email=ann%40x&Signature=s3cret&a=1&b=${site.adminKey}&t=wmb_of-anna`;
    const headers = {
      ...{ 'x-forwarded-for': '203.0.113.77', authorization: 'Bearer s3cret' },
      ...{ cookie: 'session=s3cret', apikey: site.adminKey },
    };
    await fetch(`${site.url}/none?${query}`, { headers });
    await fetch(`${site.url}/svc1/preview/${'t0ken_'.repeat(8)}`, { headers });
    const spans = await spansAtEnd(site, collector);
    const sent = collector.texts.join();
    assert.match(sent, /email=redacted&Signature=redacted&a=1&b=wmk_…&t=wmb_…/);
    for (const secret of ['ann', 's3cret', '203.0.113', '127.0.0', 't0ken_', site.adminKey]) {
      assert.ok(!sent.includes(secret), secret);
    }
    assert.equal(spans.length, 2);
  });

  test('cuts what a client sends', async (t) => {
    const collector = await startCollector(t);
    const site = await startSite(t, { ini: collector.ini });
    await fetch(`${site.url}/${'a'.repeat(8_000)}`, {
      headers: { 'user-agent': 'u'.repeat(8_000) },
    });
    const [span] = await spansAtEnd(site, collector);
    const { 'url.path': path, 'user_agent.original': agent } = span?.attributes ?? {};
    assert.deepEqual([path, agent], [`/${'a'.repeat(1_023)}`, 'u'.repeat(1_024)]);
  });

  test('is passed on to a forward server', async (t) => {
    const collector = await startCollector(t);
    const [decider, { origin, heads }] = [await tracedSource(t), await tracedSource(t)];
    const ini = `${collector.ini}[access.a]\npath = /far/*\nforward = ${decider.origin}/ask\n${fetchIni}`;
    const site = await startSite(t, { ini, rules: [farRule(origin)] });
    const { status } = await fetch(`${site.url}/far/a`, { headers: sampled });
    assert.equal(status, 200);
    const spans = await spansAtEnd(site, collector);
    for (const [url, head] of [
      [`${decider.origin}/ask`, decider.heads[0]],
      [`${origin}/a`, heads[0]],
    ] as const) {
      const span = spans.find(({ attributes }) => attributes['url.full'] === url);
      assert.deepEqual(partsOf(head), ['00', traceId, span?.spanId, '01']);
    }
  });

  test('puts the id of the trace into the access log, also of prepared answers', async (t) => {
    const collector = await startCollector(t);
    const ini = `${collector.ini}[log]\nline = {trace} {path}\n[disk.site]\nroot = site\n`;
    const site = await startSite(t, { ini, files: { 'site/a.txt': 'a' } });
    for (let turn = 0; turn < 3; turn += 1) {
      await (await fetch(`${site.url}/a.txt`, { headers: sampled })).text();
    }
    const lines = site.logged().match(new RegExp(`^${traceId} /a.txt$`, 'gm'));
    assert.equal(lines?.length, 3);
    assert.equal((await spansAtEnd(site, collector)).length, 3);
  });

  test('follows the ini file: off, on, and off again', async (t) => {
    const collector = await startCollector(t);
    const site = await startSite(t, {});
    const reload = async (): Promise<void> => {
      site.waymark.reload({ ok: true, config: await readTestConfig(site.iniFile) });
    };
    await fetch(`${site.url}/before`);
    const text = `[server]\nlisten = 127.0.0.1:0\ndata = data\nimport = rules.ndjson\n`;
    await writeFile(site.iniFile, text + collector.ini);
    await reload();
    await fetch(`${site.url}/during`);
    await writeFile(site.iniFile, text);
    await reload();
    // The former configuration sends its spans when it ends.
    const [span] = await collector.until(1);
    assert.equal(span?.attributes['url.path'], '/during');
    await fetch(`${site.url}/after`);
    await appendFile(site.iniFile, collector.ini);
    await reload();
    assert.equal((await spansAtEnd(site, collector)).length, 1);
  });

  test('counts the spans that a failing collector does not take, and says so once', async (t) => {
    const collector = await startCollector(t);
    collector.answer = (_, response) => response.writeHead(400).end();
    const site = await startSite(t, { ini: collector.ini });
    for (let turn = 0; turn < 600; turn += 1) await fetch(`${site.url}/none`);
    await site.untilLogged(/The collector of \[telemetry\] misses spans/);
    const metrics = await (await fetch(`${site.url}/svc1/metrics`)).text();
    const [, dropped] =
      /^waymark_telemetry_spans_total\{outcome="dropped"\} (\d+)$/m.exec(metrics) ?? [];
    assert.ok(Number(dropped) > 0);
    await site.waymark.stop(1_000);
    assert.equal(site.logged().match(/misses spans/g)?.length, 1);
  });
});
