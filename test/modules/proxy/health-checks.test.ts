import assert from 'node:assert/strict';
import { EventEmitter, once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { suite, test, type TestContext } from 'node:test';
import { startSite } from '../../harness.ts';
import { httpSource } from '../../core/outbound/sources.ts';

type Answer = (request: IncomingMessage, response: ServerResponse) => void;

/** An application with a health check, which tells its state truly or not. */
async function application(t: TestContext, name: string, { check, page }: Partial<Behaviour> = {}) {
  const behaviour: { check: Answer; page: Answer } = {
    check: check ?? ((_, response) => response.end('ok')),
    page: page ?? ((_, response) => response.end(name)),
  };
  const events = new EventEmitter();
  const { origin } = await httpSource(t, (request, response) => {
    const isCheck = request.url === '/healthz?full';
    behaviour[isCheck ? 'check' : 'page'](request, response);
    if (isCheck) events.emit('check', request);
  });
  return {
    ...{ origin, behaviour },
    /** Resolves when so many further checks have begun, and those before them have ended. */
    async checks(count = 3) {
      for (let at = 0; at < count; at += 1) await once(events, 'check');
    },
  };
}

interface Behaviour {
  readonly check: Answer;
  readonly page: Answer;
}

const failing: Answer = (_, response) => response.writeHead(503).end();

const iniOf = (origins: readonly string[], more = '') =>
  '[proxy.app]\nhealth = /healthz?full\nhealth_interval = 200ms\nbalance = turn\n' +
  `${more}${origins.map((origin) => `source[] = ${origin}\n`).join('')}`;

const pages = async (url: string, count = 4): Promise<string> => {
  let names = '';
  for (let at = 0; at < count; at += 1) names += await (await fetch(url)).text();
  return names;
};

suite('a health check', () => {
  test('keeps requests away from a source that fails it twice, until it passes', async (t) => {
    const [a, b] = [await application(t, 'a'), await application(t, 'b', { check: failing })];
    const site = await startSite(t, { ini: iniOf([a.origin, b.origin]) });
    await b.checks();
    assert.equal(await pages(site.url), 'aaaa');
    const { data } = await site.call('svc1.userinterface.explain', { path: '/' });
    const said = `${b.origin} fails its health check /healthz?full: it answers 503; other sources`;
    assert.ok(JSON.stringify(data).includes(said), JSON.stringify(data));
    const { rows } = (await site.call('svc1.source.list', {})).data;
    assert.deepEqual(
      rows.map((row: { origin: string; check_problem: string }) => [row.origin, row.check_problem]),
      [a, b].map(({ origin }) => [origin, origin === b.origin ? 'it answers 503' : null]).sort(),
    );
    const metrics = await (
      await fetch(`${site.url}/svc1/metrics`, { headers: { apikey: site.adminKey } })
    ).text();
    assert.ok(
      metrics.includes(
        `waymark_fetch_source_check{source="${b.origin}",check="/healthz?full"} 0\n`,
      ),
    );
    b.behaviour.check = (_, response) => response.writeHead(302, { location: '/' }).end();
    await b.checks();
    assert.match(await pages(site.url), /^(?:ab){2}$|^(?:ba){2}$/);
  });

  test('that never answers, or never ends, does no harm and does not pile up', async (t) => {
    let [open, most] = [0, 0];
    const silent: Answer = (request) => {
      most = Math.max(most, (open += 1));
      request.socket.once('close', () => (open -= 1));
    };
    const endless: Answer = (request, response) => {
      response.writeHead(200);
      const timer = setInterval(() => response.write('x'.repeat(65_536)), 1);
      request.socket.once('close', () => {
        clearInterval(timer);
      });
    };
    const a = await application(t, 'a', { check: silent });
    const b = await application(t, 'b', { check: endless });
    const site = await startSite(t, { ini: iniOf([a.origin, b.origin]) });
    await a.checks();
    assert.equal(await pages(site.url), 'bbbb');
    assert.ok(most <= 2, `${most} checks at the same time`);
    const { data } = await site.call('svc1.userinterface.explain', { path: '/' });
    assert.match(JSON.stringify(data), /it does not answer in time/);
  });

  test('that lies keeps no source from its requests if all fail it', async (t) => {
    const [a, b] = [
      await application(t, 'a', { check: failing }),
      await application(t, 'b', { check: failing }),
    ];
    const site = await startSite(t, { ini: iniOf([a.origin, b.origin]) });
    await Promise.all([a.checks(), b.checks()]);
    assert.match(await pages(site.url), /^(?:ab){2}$|^(?:ba){2}$/);
    const only = await startSite(t, { ini: iniOf([a.origin]) });
    await a.checks();
    assert.equal(await pages(only.url, 1), 'a');
  });

  test('that lies does not call back a source that breaks its connections', async (t) => {
    const a = await application(t, 'a');
    const b = await application(t, 'b', { page: ({ socket }) => socket.destroy() });
    const site = await startSite(t, { ini: iniOf([a.origin, b.origin]) });
    await b.checks();
    assert.equal(await pages(site.url), 'aaaa');
    await b.checks(1);
    const { data } = await site.call('svc1.userinterface.explain', { path: '/' });
    assert.match(JSON.stringify(data), /has failed and is set aside/);
  });

  test('sends the named Host, and belongs to page rules with its first request', async (t) => {
    const a = await application(t, 'a');
    const seen: (string | undefined)[] = [];
    a.behaviour.check = ({ headers }, response) => {
      seen.push(headers.host);
      response.end();
    };
    const enginedata = {
      ...{ as: 'application', source: a.origin, host: 'app.example' },
      ...{ health: '/healthz?full', health_interval: '200ms' },
    };
    const site = await startSite(t, {
      ini: '[fetch]\nallow_private = 127.0.0.0/8\n',
      rules: [{ path: '/app/*', kind: 'content.fetch', enginedata }],
    });
    assert.deepEqual(seen, []);
    const checked = a.checks(2);
    await pages(`${site.url}/app/`, 1);
    await checked;
    assert.deepEqual(seen.slice(0, 2), ['app.example', 'app.example']);
    for (const wrong of [{ health: 'healthz' }, { health_interval: '10ms' }]) {
      const answer = await site.call('svc1.userinterface.insert', {
        ...{ path: '/b/*', kind: 'content.fetch' },
        enginedata: { ...enginedata, ...wrong },
      });
      assert.match(JSON.stringify(answer), new RegExp(`enginedata.${Object.keys(wrong)[0]}`));
    }
  });
});
