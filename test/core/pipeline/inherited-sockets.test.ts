import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type AddressInfo, type Server } from 'node:net';
import { networkInterfaces } from 'node:os';
import { join } from 'node:path';
import { suite, test, type TestContext } from 'node:test';
import type { ListenAddress } from '../../../src/core/config/addresses.ts';
import {
  listeningSockets,
  matchSockets,
  ownPath,
  socketText,
} from '../../../src/cli/serve/inherited-sockets.ts';
import { temporaryFolder } from '../../folder.ts';

const hasIpv6 = Object.values(networkInterfaces()).some((addresses = []) =>
  addresses.some(({ address }) => address === '::1'),
);
const withIpv6 = { skip: !hasIpv6 && 'needs IPv6' };
const onLinux = { skip: process.platform !== 'linux' && 'needs /proc' };

async function listening(t: TestContext, at: object): Promise<Server> {
  const server = createServer().listen(at);
  await once(server, 'listening');
  t.after(() => server.close());
  return server;
}

function portOf(server: Server): number {
  return (server.address() as AddressInfo).port;
}

function tcp(host: string, port: number): ListenAddress {
  return { kind: 'tcp', scheme: 'http', host, port };
}

suite('inherited sockets', onLinux, () => {
  test('are found by the address that they are bound to', async (t) => {
    const path = join(await temporaryFolder(t), 'w');
    const one = await listening(t, { host: '127.0.0.1', port: 0 });
    await listening(t, { path });
    const sockets = listeningSockets();
    const listens = [
      tcp('127.0.0.1', portOf(one)),
      { kind: 'unix', path } as const,
      tcp('127.0.0.1', 1),
      tcp('127.0.0.2', portOf(one)),
    ];
    const found = (await matchSockets(listens, sockets)).map((socket) =>
      socket === undefined ? undefined : socketText(socket),
    );
    assert.deepEqual(found, [`127.0.0.1:${portOf(one)}`, `unix:${path}`, undefined, undefined]);
    assert.deepEqual(listeningSockets([0, 1, 2, 99_999]), []);
  });

  test('of IPv6 are found in any spelling of their address', withIpv6, async (t) => {
    const six = await listening(t, { host: '::1', port: 0 });
    const all = await listening(t, { port: 0 });
    const listens = [tcp('0:0::1', portOf(six)), tcp('', portOf(all))];
    const found = await matchSockets(listens, listeningSockets());
    assert.deepEqual(
      found.map((socket) => socket && socketText(socket)),
      [`[::1]:${portOf(six)}`, `[::]:${portOf(all)}`],
    );
  });

  test('serve port 0 in the order of the addresses, each once', async () => {
    const sockets = [
      { fd: 8, host: '127.0.0.1', port: 81 },
      { fd: 9, host: '127.0.0.1', port: 82 },
    ];
    const listens = [tcp('127.0.0.1', 0), tcp('localhost', 0), tcp('127.0.0.1', 0)];
    const found = await matchSockets(listens, sockets);
    assert.deepEqual(
      found.map((socket) => socket?.fd),
      [8, 9, undefined],
    );
  });

  test('of systemd stay in place at the end, and those of Waymark do not', () => {
    const where = { kind: 'unix', path: '/run/w' } as const;
    assert.equal(ownPath(where, { fd: 4, path: '/run/w' }), undefined);
    assert.equal(ownPath(where, { fd: 4, path: '/run/w~' }), '/run/w');
    assert.equal(ownPath(where, undefined), '/run/w');
    assert.equal(ownPath(tcp('', 80), undefined), undefined);
  });
});
