import assert from 'node:assert/strict';
import dgram from 'node:dgram';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { suite, test, type TestContext } from 'node:test';
import {
  createLookup,
  type ResolvedAddress,
  type NameSources,
} from '../../../src/core/outbound/dns-lookup.ts';
import { temporaryFolder } from '../../folder.ts';

const typeA = 1;

/** The addresses of a name as bytes; or that the name server stays silent. */
type Zone = Readonly<
  Record<string, 'silent' | { readonly ttl: number; readonly a?: string; readonly aaaa?: string }>
>;

/** A name server (RFC 1035) on the loopback; resolves to its address and its queries. */
async function nameServer(t: TestContext, zone: Zone) {
  const asked: string[] = [];
  const socket = dgram.createSocket('udp4');
  socket.on('message', (query, { port, address }) => {
    const { name, type, end } = question(query);
    asked.push(`${name} ${type === typeA ? 'A' : 'AAAA'}`);
    const known = zone[name];
    if (known === 'silent' || (type !== typeA && known?.aaaa === 'silent')) return;
    const data = type === typeA ? bytesOf4(known?.a) : bytesOf6(known?.aaaa);
    const header: Buffer = Buffer.alloc(12);
    query.copy(header, 0, 0, 2);
    header.writeUInt16BE(known === undefined ? 0x8183 : 0x8180, 2);
    header.writeUInt16BE(1, 4);
    header.writeUInt16BE(data === undefined ? 0 : 1, 6);
    const parts: Buffer[] = [header, query.subarray(12, end)];
    if (data !== undefined && known !== undefined) {
      const record = Buffer.alloc(12);
      record.writeUInt16BE(0xc00c, 0);
      record.writeUInt16BE(type, 2);
      record.writeUInt16BE(1, 4);
      record.writeUInt32BE(known.ttl, 6);
      record.writeUInt16BE(data.length, 10);
      parts.push(record, data);
    }
    socket.send(Buffer.concat(parts), port, address);
  });
  socket.bind(0, '127.0.0.1');
  await once(socket, 'listening');
  t.after(() => socket.close());
  return { server: `127.0.0.1:${socket.address().port}`, asked };
}

function question(query: Buffer) {
  const labels: string[] = [];
  let at = 12;
  for (let length = query[at] ?? 0; length > 0; length = query[at] ?? 0) {
    labels.push(query.toString('latin1', at + 1, at + 1 + length));
    at += length + 1;
  }
  return { name: labels.join('.').toLowerCase(), type: query.readUInt16BE(at + 1), end: at + 5 };
}

function bytesOf4(address: string | undefined): Buffer | undefined {
  return address === undefined ? undefined : Buffer.from(address.split('.').map(Number));
}

function bytesOf6(address: string | undefined): Buffer | undefined {
  return address === undefined ? undefined : Buffer.from(address.replaceAll(':', ''), 'hex');
}

const notAsked = (): Promise<readonly ResolvedAddress[]> => {
  throw new Error('the system is not to be asked');
};

function lookupWith(server: string, more: NameSources = {}) {
  return createLookup({
    hostsFile: '/nowhere',
    servers: [server],
    systemLookup: notAsked,
    ...more,
  });
}

const wide = '2001:0db8:0000:0000:0000:0000:0000:0001';

suite('a lookup of a name', () => {
  test('returns all its addresses, of both families', async (t) => {
    const { server } = await nameServer(t, {
      'a.example': { ttl: 60, a: '192.0.2.1', aaaa: wide },
    });
    assert.deepEqual(await lookupWith(server)('A.Example.'), [
      { address: '192.0.2.1', family: 4 },
      { address: '2001:db8::1', family: 6 },
    ]);
  });

  test('succeeds with one family', async (t) => {
    const { server } = await nameServer(t, { 'a.example': { ttl: 60, a: '192.0.2.1' } });
    assert.deepEqual(await lookupWith(server)('a.example'), [{ address: '192.0.2.1', family: 4 }]);
  });

  test('does not wait long for the other family if its server is silent', async (t) => {
    const { server } = await nameServer(t, {
      'a.example': { ttl: 60, a: '192.0.2.1', aaaa: 'silent' },
      'silent.example': 'silent',
    });
    const resolver = lookupWith(server);
    const silence = resolver('silent.example').catch(() => 'later');
    const found = await Promise.race([resolver('a.example'), silence]);
    assert.deepEqual(found, [{ address: '192.0.2.1', family: 4 }]);
  });

  test('does not wait for other names, however many servers are silent', async (t) => {
    const silent = Array.from({ length: 50 }, (_, at) => `silent-${at}.example`);
    const { server, asked } = await nameServer(t, {
      ...Object.fromEntries(silent.map((name) => [name, 'silent' as const])),
      'a.example': { ttl: 60, a: '192.0.2.1' },
    });
    const lookup = lookupWith(server);
    const failing = silent.map((name) =>
      lookup(name).then(
        () => 'found',
        (error: unknown) => (error as { readonly code?: unknown }).code,
      ),
    );
    const open = new Set(failing);
    for (const one of failing) void one.then(() => open.delete(one));
    assert.equal((await lookup('a.example')).length, 1);
    assert.equal(open.size, silent.length);
    assert.ok(asked.length > 0);
    assert.deepEqual(new Set(await Promise.all(failing)), new Set(['EAI_AGAIN']));
  });

  test('is shared by concurrent callers, and cached for its TTL', async (t) => {
    const { server, asked } = await nameServer(t, { 'a.example': { ttl: 30, a: '192.0.2.1' } });
    let nowMs = 0;
    const lookup = lookupWith(server, { monotonicMs: () => nowMs });
    await Promise.all([1, 2, 3].map(() => lookup('a.example')));
    await lookup('a.example');
    assert.equal(asked.length, 2);
    nowMs = 29_999;
    await lookup('a.example');
    assert.equal(asked.length, 2);
    nowMs = 30_000;
    await lookup('a.example');
    assert.equal(asked.length, 4);
  });

  test('is cached for a minute at most', async (t) => {
    const { server, asked } = await nameServer(t, { 'a.example': { ttl: 86_400, a: '192.0.2.1' } });
    let nowMs = 0;
    const lookup = lookupWith(server, { monotonicMs: () => nowMs });
    await lookup('a.example');
    nowMs = 60_000;
    await lookup('a.example');
    assert.equal(asked.length, 4);
  });

  test('uses the system for names that no name server knows, two at a time', async (t) => {
    const { server } = await nameServer(t, {});
    const waiting: (() => void)[] = [];
    let atOnce = 0;
    let most = 0;
    const lookup = lookupWith(server, {
      systemLookup: async (hostname) => {
        atOnce += 1;
        most = Math.max(most, atOnce);
        await new Promise<void>((resolve) => {
          waiting.push(resolve);
          setImmediate(() => waiting.shift()?.());
        });
        atOnce -= 1;
        if (hostname === 'bad') throw Object.assign(new Error('none'), { code: 'ENOTFOUND' });
        return [{ address: '192.0.2.7', family: 4 }];
      },
    });
    const names = ['printer', 'bad', 'scanner', 'till', 'door'];
    const found = await Promise.allSettled(names.map((name) => lookup(name)));
    assert.deepEqual(
      found.map(({ status }) => status),
      ['fulfilled', 'rejected', 'fulfilled', 'fulfilled', 'fulfilled'],
    );
    assert.equal(most, 2);
  });
});

suite('the hosts file', () => {
  test('takes precedence over name servers, and is read again after a change', async (t) => {
    const { server, asked } = await nameServer(t, { 'till.example': { ttl: 60, a: '192.0.2.9' } });
    const hostsFile = join(await temporaryFolder(t), 'hosts');
    await writeFile(
      hostsFile,
      '# comment\n127.0.0.1\tlocalhost\n::1 localhost ip6-localhost\n' +
        '192.0.2.1 Till.example till # of the shop\nnot-an-address x\n\n',
    );
    let nowMs = 0;
    const lookup = lookupWith(server, { hostsFile, monotonicMs: () => nowMs });
    assert.deepEqual(await lookup('localhost'), [
      { address: '127.0.0.1', family: 4 },
      { address: '::1', family: 6 },
    ]);
    assert.deepEqual(await lookup('TILL.EXAMPLE'), [{ address: '192.0.2.1', family: 4 }]);
    assert.deepEqual(await lookup('till'), [{ address: '192.0.2.1', family: 4 }]);
    assert.deepEqual(asked, []);
    await writeFile(hostsFile, '');
    nowMs = 2_001;
    assert.deepEqual(await lookup('till.example'), [{ address: '192.0.2.9', family: 4 }]);
  });
});
