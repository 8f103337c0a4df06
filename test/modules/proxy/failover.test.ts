import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { type TestContext, suite, test } from 'node:test';
import { discard } from '../../../src/core/http/reply.ts';
import { Failure } from '../../../src/core/values/failure.ts';
import type { FetchRule } from '../../../src/modules/proxy/fetch-plan.ts';
import type { Fetcher } from '../../../src/modules/proxy/fetcher.ts';
import { sourcePauseMs } from '../../../src/modules/proxy/source-health.ts';
import { httpSource, rawSource } from '../../core/outbound/sources.ts';
import { withTimeout } from '../../timeouts.ts';
import { fetchRule, replyText, testFetch, visit } from './fetch-rig.ts';

/** A source that answers with its name, and counts its requests. */
async function named(t: TestContext, name: string, status = 200) {
  const received = { count: 0 };
  const { origin } = await httpSource(t, (request, response) => {
    received.count += 1;
    void text(request).then((body) => response.writeHead(status).end(name + body));
  });
  return { source: `${origin}/*`, received };
}

/** A source that ends the connection after it has received a request. */
async function breaking(t: TestContext) {
  const received = { count: 0 };
  const { origin } = await rawSource(t, (socket) => {
    received.count += 1;
    socket.destroy();
  });
  return { source: `${origin}/*`, received };
}

/** A source that is down. */
async function closed(): Promise<string> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return `http://127.0.0.1:${port}/*`;
}

/** The sentences of explain about the sources. */
function explainedSources(fetch: Fetcher, rule: FetchRule): readonly string[] {
  return fetch.explain(rule, visit()).notes?.slice(1) ?? [];
}

const post = () => {
  const fields = { 'content-length': '5' };
  return visit({ method: 'POST', fields, body: Readable.from(['hello']) });
};

suite('several sources', () => {
  test('answer in turn', async (t) => {
    const [one, two] = [await named(t, 'one'), await named(t, 'two')];
    const rule = fetchRule({ source: [one.source, two.source] });
    const fetch = testFetch(t);
    const seen: string[] = [];
    for (let turn = 0; turn < 4; turn += 1) {
      seen.push(await replyText(await fetch.respond(rule, visit())));
    }
    assert.deepEqual(seen, ['one', 'two', 'one', 'two']);
  });

  test('share slow requests: the one with the fewest open requests is next', async (t) => {
    const slow = await httpSource(t, (_, response) => void response.writeHead(200).write('slow'));
    const quick = await named(t, 'quick');
    const rule = fetchRule({ source: [`${slow.origin}/*`, quick.source] });
    const fetch = testFetch(t);
    const first = await fetch.respond(rule, visit());
    for (let turn = 0; turn < 4; turn += 1) {
      assert.equal(await replyText(await fetch.respond(rule, visit())), 'quick');
    }
    await discard(first);
  });

  test('each replace their own * by the capture', async (t) => {
    const { origin } = await httpSource(t, ({ url }, response) => response.end(url));
    const rule = fetchRule({ source: [`${origin}/a/*`, `${origin}/b/c*`] });
    const fetch = testFetch(t);
    const ask = async () => replyText(await fetch.respond(rule, visit({ path: '/shop/x' })));
    assert.deepEqual([await ask(), await ask()], ['/a/x', '/b/cx']);
  });
});

suite('a source that is down', () => {
  for (const [method, request] of [
    ['GET', visit],
    ['POST', post],
  ] as const) {
    test(`causes no failed page, as nothing was sent: ${method}`, async (t) => {
      const good = await named(t, 'good');
      const rule = fetchRule({ source: [await closed(), good.source], methods: ['GET', 'POST'] });
      const fetch = testFetch(t);
      for (let turn = 0; turn < 3; turn += 1) {
        const got = await replyText(await fetch.respond(rule, request()));
        assert.equal(got, method === 'POST' ? 'goodhello' : 'good');
      }
    });
  }

  test('is set aside, and tried again after a pause', async (t) => {
    const clock = { ms: 0 };
    const [bad, good] = [await breaking(t), await named(t, 'good')];
    const rule = fetchRule({ source: [bad.source, good.source] });
    const fetch = testFetch(t, { monotonicMs: () => (clock.ms += 1) });
    for (let turn = 0; turn < 6; turn += 1) await fetch.respond(rule, visit());
    assert.deepEqual([bad.received.count, good.received.count], [1, 6]);
    assert.match(explainedSources(fetch, rule).join(), /^http:\S+ has failed .*again in 1 s, or/);
    clock.ms += sourcePauseMs;
    assert.deepEqual(explainedSources(fetch, rule), []);
    for (let turn = 0; turn < 6; turn += 1) await fetch.respond(rule, visit());
    assert.deepEqual([bad.received.count, good.received.count], [2, 12]);
  });

  test('that breaks off its answers is set aside as well', async (t) => {
    for (const head of ['Content-Length: 9', 'Transfer-Encoding: chunked']) {
      const received = { count: 0 };
      const { origin } = await rawSource(t, (socket) => {
        received.count += 1;
        socket.write(`HTTP/1.1 200 OK\r\n${head}\r\n\r\n`);
        setTimeout(() => socket.destroy(), 10);
      });
      const good = await named(t, 'good');
      const rule = fetchRule({ source: [`${origin}/*`, good.source] });
      const fetch = testFetch(t);
      await assert.rejects(replyText(await fetch.respond(rule, visit())));
      assert.equal(explainedSources(fetch, rule).length, 1, head);
      for (let turn = 0; turn < 4; turn += 1) {
        assert.equal(await replyText(await fetch.respond(rule, visit())), 'good');
      }
      assert.equal(received.count, 1);
    }
  });

  test('is not assumed if clients leave before the end of its answer', async (t) => {
    const endless = await httpSource(t, (_, response) => void response.writeHead(200).write('a'));
    const good = await named(t, 'good');
    const rule = fetchRule({ source: [`${endless.origin}/*`, good.source] });
    const fetch = testFetch(t);
    const gone = new AbortController();
    const reply = await fetch.respond(rule, visit({ signal: gone.signal }));
    gone.abort();
    await assert.rejects(replyText(reply));
    await discard(await fetch.respond(rule, visit()));
    await discard(await fetch.respond(rule, visit()));
    assert.deepEqual(explainedSources(fetch, rule), []);
  });

  test('is tried if all are down', async (t) => {
    const one = { isUp: false };
    const { origin } = await rawSource(t, (socket) => {
      if (one.isUp) socket.end('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nup');
      else socket.destroy();
    });
    const rule = fetchRule({ source: [`${origin}/*`, await closed()] });
    const fetch = testFetch(t);
    await assert.rejects(fetch.respond(rule, visit()), { code: 'bad_gateway' });
    one.isUp = true;
    assert.equal(await replyText(await fetch.respond(rule, visit())), 'up');
  });

  test('takes up to three tries; the last one decides the reply', async (t) => {
    const bad = await Promise.all([1, 2, 3, 4].map(() => breaking(t)));
    const rule = fetchRule({ source: bad.map(({ source }) => source) });
    await assert.rejects(testFetch(t).respond(rule, visit()), { code: 'bad_gateway' });
    assert.deepEqual(
      bad.map(({ received }) => received.count),
      [1, 1, 1, 0],
    );
  });
});

suite('a source that received the request', () => {
  test('and breaks off leads to another source only for an idempotent request', async (t) => {
    const cases: readonly (readonly [string, Readable | undefined, boolean])[] = [
      ['GET', undefined, true],
      ['HEAD', undefined, true],
      ['DELETE', undefined, true],
      ['PUT', Readable.from(['a']), false],
      ['POST', undefined, false],
      ['PATCH', undefined, false],
    ];
    for (const [method, body, isRepeated] of cases) {
      const [bad, good] = [await breaking(t), await named(t, 'good')];
      const methods = ['GET', 'DELETE', 'PUT', 'POST', 'PATCH'];
      const rule = fetchRule({ source: [bad.source, good.source], methods });
      const answer = testFetch(t).respond(rule, visit({ method, body }));
      const outcome = await answer.then(
        ({ status }) => status,
        (thrown: unknown) => (thrown instanceof Failure ? thrown.code : thrown),
      );
      assert.equal(outcome, isRepeated ? 200 : 'bad_gateway', method);
      assert.deepEqual([bad.received.count, good.received.count], [1, isRepeated ? 1 : 0], method);
    }
  });

  test('and times out is set aside; no other source is tried', async (t) => {
    const silent = await httpSource(t, () => undefined);
    const good = await named(t, 'good');
    const rule = fetchRule({ source: [`${silent.origin}/*`, good.source] });
    // The other source has the same time for its answers.
    await withTimeout([50, 500, 5_000], async (timeoutMs) => {
      const fetch = testFetch(t, { timeoutMs });
      await assert.rejects(fetch.respond(rule, visit()), { code: 'gateway_timeout' });
      assert.equal(explainedSources(fetch, rule).length, 1);
      for (let turn = 0; turn < 3; turn += 1) {
        assert.equal(await replyText(await fetch.respond(rule, visit())), 'good');
      }
    });
  });

  test('is not set aside because the client went away', async (t) => {
    const gone = new AbortController();
    const slow = await httpSource(t, () => {
      gone.abort();
    });
    const good = await named(t, 'good');
    const rule = fetchRule({ source: [`${slow.origin}/*`, good.source] });
    const fetch = testFetch(t);
    await assert.rejects(fetch.respond(rule, visit({ signal: gone.signal })));
    assert.deepEqual(explainedSources(fetch, rule), []);
    assert.equal(good.received.count, 0);
  });

  for (const status of [502, 503, 504]) {
    test(`and answers ${status} to a safe method leads to another source, and is not set aside`, async (t) => {
      const [busy, good] = [await named(t, 'busy', status), await named(t, 'good')];
      const rule = fetchRule({ source: [busy.source, good.source], methods: ['GET', 'POST'] });
      const fetch = testFetch(t);
      assert.equal((await fetch.respond(rule, visit())).status, 200);
      await fetch.respond(rule, visit());
      assert.equal((await fetch.respond(rule, post())).status, status);
      assert.deepEqual(explainedSources(fetch, rule), []);
    });
  }

  test('passes on its 503 if all sources answer 503', async (t) => {
    const [one, two] = [await named(t, 'one', 503), await named(t, 'two', 503)];
    const rule = fetchRule({ source: [one.source, two.source] });
    const reply = await testFetch(t).respond(rule, visit());
    assert.deepEqual([reply.status, await replyText(reply)], [503, 'two']);
  });
});
