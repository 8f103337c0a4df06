import assert from 'node:assert/strict';
import dgram from 'node:dgram';
import { once } from 'node:events';
import { type TestContext, suite, test } from 'node:test';
import type { ResolvedAddress } from '../../../src/core/outbound/dns-lookup.ts';
import { fetchPlan } from '../../../src/modules/proxy/fetch-plan.ts';
import {
  type ServiceServer,
  SourceNames,
  createServiceLookup,
} from '../../../src/modules/proxy/source-names.ts';
import { httpSource } from '../../core/outbound/sources.ts';
import { fetchRule, replyText, testFetch, visit } from './fetch-rig.ts';

/** A name whose addresses the test changes. */
function changingName(...first: readonly string[]) {
  const name: { addresses: readonly string[] | undefined } = { addresses: first };
  const lookup = (): Promise<readonly ResolvedAddress[]> =>
    name.addresses === undefined
      ? Promise.reject(new Error('DNS does not answer'))
      : Promise.resolve(name.addresses.map((address) => ({ address, family: 4 })));
  return { name, lookup };
}

/** Servers on one port of several loopback addresses, which answer with address and Host. */
async function servers(t: TestContext) {
  const { port } = await httpSource(
    t,
    ({ socket, headers, url }, response) => {
      if (url === '/moved') response.writeHead(302, { location: `http://${headers.host}/to` });
      response.end(`${socket.localAddress} ${headers.host}`);
    },
    '0.0.0.0',
  );
  return { port };
}

const noService = () => Promise.reject(new Error('no service'));

suite('a name with several addresses', () => {
  test('is several servers, which take turns and fail alone', async (t) => {
    const { port } = await servers(t);
    const { name, lookup } = changingName('127.0.0.2', '127.0.0.3');
    const fetch = testFetch(t, { lookup });
    const rule = fetchRule({
      ...{ source: `http://app.test:${port}/*`, resolve: true, balance: 'turn' },
    });
    const ask = async () => replyText(await fetch.respond(rule, visit()));
    const host = `app.test:${port}`;
    assert.deepEqual(
      [await ask(), await ask(), await ask()],
      [`127.0.0.2 ${host}`, `127.0.0.3 ${host}`, `127.0.0.2 ${host}`],
    );
    // The records have changed: 240.0.0.1 is an address that nothing can connect to.
    name.addresses = ['127.0.0.4', '240.0.0.1'];
    for (let turn = 0; turn < 4; turn += 1) assert.equal(await ask(), `127.0.0.4 ${host}`);
    assert.match(fetch.explain(rule, visit()).notes?.join() ?? '', /http:\/\/240\.0\.0\.1:\d+ has/);
  });

  test('keeps its last addresses while DNS does not answer', async (t) => {
    const { port } = await servers(t);
    const { name, lookup } = changingName('127.0.0.2');
    const fetch = testFetch(t, { lookup });
    const rule = fetchRule({ source: `http://app.test:${port}/*`, resolve: true });
    const ask = async () => replyText(await fetch.respond(rule, visit()));
    assert.match(await ask(), /^127\.0\.0\.2/);
    name.addresses = undefined;
    assert.match(await ask(), /^127\.0\.0\.2/);
    const unknown = fetchRule({ source: `http://other.test:${port}/*`, resolve: true });
    await assert.rejects(fetch.respond(unknown, visit()), { code: 'bad_gateway' });
  });

  test('is the host of links, Host and certificates, and no address is', async (t) => {
    const { port } = await servers(t);
    const { lookup } = changingName('127.0.0.2');
    const rule = fetchRule({ source: `http://app.test:${port}/*`, resolve: true });
    const reply = await testFetch(t, { lookup }).respond(rule, visit({ path: '/shop/moved' }));
    assert.equal(await replyText(reply), `127.0.0.2 app.test:${port}`);
    assert.equal(
      reply.fields[reply.fields.indexOf('location') + 1],
      'http://visible.example/shop/to',
    );
  });

  test('stays one server without `resolve`; an address is never looked up', async () => {
    const lookup = () => Promise.reject(new Error('not needed'));
    const names = new SourceNames({ lookup, lookUpService: noService });
    for (const enginedata of [
      { source: 'http://app.test/*' },
      { source: ['http://127.0.0.1:81/*', 'http://[::1]:82/*'], resolve: true },
    ]) {
      const plan = fetchPlan(fetchRule(enginedata));
      assert.deepEqual(await names.serversOf(plan), plan.sources);
    }
  });

  test('has at most 64 servers', async () => {
    const addresses = Array.from({ length: 200 }, (_, at) => `192.0.2.${at}`);
    const { lookup } = changingName(...addresses);
    const names = new SourceNames({ lookup, lookUpService: noService });
    const plan = fetchPlan(fetchRule({ source: 'http://app.test/*', resolve: true }));
    assert.equal((await names.serversOf(plan)).length, 64);
  });
});

/** A name server (RFC 1035) that answers each query with these SRV records (RFC 2782). */
async function serviceNameServer(t: TestContext, records: readonly ServiceServer[]) {
  const counts = { queries: 0 };
  const socket = dgram.createSocket('udp4');
  socket.on('message', (query, { port, address }) => {
    counts.queries += 1;
    const header = Buffer.alloc(12);
    query.copy(header, 0, 0, 2);
    header.writeUInt16BE(0x8180, 2);
    header.writeUInt16BE(1, 4);
    header.writeUInt16BE(records.length, 6);
    const end = query.indexOf(0, 12) + 5;
    const answers = records.map(({ name, port: at, priority, weight }) => {
      const target = Buffer.concat([
        ...name.split('.').map((part) => Buffer.from([part.length, ...Buffer.from(part)])),
        Buffer.from([0]),
      ]);
      const fixed = Buffer.alloc(18);
      for (const [place, value] of [0xc00c, 33, 1, 0, 5, 6 + target.length].entries()) {
        fixed.writeUInt16BE(value, 2 * place);
      }
      for (const [place, value] of [priority, weight, at].entries()) {
        fixed.writeUInt16BE(value, 12 + 2 * place);
      }
      return Buffer.concat([fixed, target]);
    });
    socket.send(Buffer.concat([header, query.subarray(12, end), ...answers]), port, address);
  });
  socket.bind(0, '127.0.0.1');
  await once(socket, 'listening');
  t.after(() => socket.close());
  return { server: `127.0.0.1:${socket.address().port}`, counts };
}

suite('a service', () => {
  test('has the servers of its SRV records, by priority and weight', async (t) => {
    const { port } = await servers(t);
    const { server, counts } = await serviceNameServer(t, [
      { name: 'one.test', port, priority: 10, weight: 3 },
      { name: 'two.test', port, priority: 10, weight: 1 },
      { name: 'spare.test', port, priority: 20, weight: 100 },
      { name: 'gone.test', port, priority: 10, weight: 9 },
    ]);
    const clock = { ms: 0 };
    const addresses = new Map([
      ['one.test', '127.0.0.2'],
      ['two.test', '127.0.0.3'],
      ['spare.test', '127.0.0.4'],
    ]);
    const lookup = (name: string): Promise<readonly ResolvedAddress[]> => {
      const address = addresses.get(name);
      return address === undefined
        ? Promise.reject(new Error('unknown'))
        : Promise.resolve([{ address, family: 4 }]);
    };
    const lookUpService = createServiceLookup({ servers: [server], monotonicMs: () => clock.ms });
    const fetch = testFetch(t, { lookup, lookUpService });
    const source = 'srv+http://_app._tcp.test';
    const rule = fetchRule({ as: 'application', source, host: 'source', balance: 'turn' });
    const seen: string[] = [];
    for (let turn = 0; turn < 8; turn += 1) {
      seen.push(await replyText(await fetch.respond(rule, visit())));
    }
    const of = (text: string): number => seen.filter((one) => one === text).length;
    const counted = [of(`127.0.0.2 one.test:${port}`), of(`127.0.0.3 two.test:${port}`)];
    assert.deepEqual(counted, [6, 2]);
    assert.equal(counts.queries, 1);
    clock.ms = 10_001;
    await fetch.respond(rule, visit());
    assert.equal(counts.queries, 2);
  });

  test('has its port in DNS, and not in its URL', () => {
    for (const source of ['srv+http://_a._tcp.test:81/*', 'srv+http://_a._tcp.test:81']) {
      assert.throws(() => fetchPlan(fetchRule({ source })), { code: 'bad_gateway' });
    }
  });
});
