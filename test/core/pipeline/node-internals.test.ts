import assert from 'node:assert/strict';
import type { Worker } from 'node:cluster';
import { EventEmitter, once } from 'node:events';
import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import { PassThrough } from 'node:stream';
import { suite, test, type TestContext } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import {
  connect as connectTls,
  createSecureContext,
  createServer as createTlsServer,
  TLSSocket,
} from 'node:tls';
import {
  askForCertificate,
  queuedBytes,
  returnHandedOver,
  stopFlowing,
  tcpBelow,
  testedNodeMajors,
  watchAcceptors,
} from '../../../src/core/server/listening/node-internals.ts';
import { createAuthority } from '../../certificates.ts';

async function listen(t: TestContext, server: Server): Promise<number> {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => server.close());
  return (server.address() as AddressInfo).port;
}

suite('private APIs of Node.js', () => {
  test('exist in this release of Node.js', () => {
    const major = Number(process.versions.node.split('.')[0]);
    assert.ok(testedNodeMajors.includes(major), `Node ${major}: add it when these tests pass`);
  });

  test('lead from a TLS socket to its TCP connection', async (t) => {
    const server = createTlsServer(await (await createAuthority()).issue(['localhost']));
    const port = await listen(t, server);
    const connected = once(server, 'connection') as Promise<[Socket]>;
    const secured = once(server, 'secureConnection') as Promise<[TLSSocket]>;
    const client = connectTls({ port, host: '127.0.0.1', rejectUnauthorized: false });
    t.after(() => client.destroy());
    const [[tcp], [tls]] = await Promise.all([connected, secured]);
    assert.equal(tcpBelow(tls), tcp);
    assert.equal(tcpBelow(new PassThrough()), undefined);
  });

  test('ask a TLS client for a certificate', async (t) => {
    const authority = await createAuthority();
    const [own, pair] = [await authority.issue(['localhost']), await authority.issue(['ann'])];
    const context = createSecureContext({ ...own, ca: authority.cert });
    const server = createTlsServer({
      ...{ ...own, rejectUnauthorized: false },
      SNICallback(this: TLSSocket, name, done) {
        if (name === 'asked.example') askForCertificate(this);
        done(null, context);
      },
    });
    const port = await listen(t, server);
    for (const servername of ['asked.example', 'other.example']) {
      const secured = once(server, 'secureConnection') as Promise<[TLSSocket]>;
      const options = { port, host: '127.0.0.1', servername, ...pair };
      const client = connectTls({ ...options, rejectUnauthorized: false });
      t.after(() => client.destroy());
      const [tls] = await secured;
      const isAsked = servername === 'asked.example';
      assert.equal(tls.getPeerX509Certificate() !== undefined, isAsked);
      assert.equal(tls.authorized, isAsked);
    }
  });

  test('count the bytes that wait for a client, over TCP and over TLS', async (t) => {
    const authority = await createAuthority();
    const servers = [createServer(), createTlsServer(await authority.issue(['localhost']))];
    for (const server of servers) {
      const isTls = 'addContext' in server;
      const port = await listen(t, server);
      const accepted = once(server, isTls ? 'secureConnection' : 'connection') as Promise<[Socket]>;
      const where = { port, host: '127.0.0.1' };
      const client = isTls ? connectTls({ ...where, rejectUnauthorized: false }) : connect(where);
      t.after(() => client.destroy());
      const [socket] = await accepted;
      socket.on('error', () => undefined);
      assert.equal(queuedBytes(socket), 0);
      socket.write(Buffer.alloc(32 << 20));
      while (queuedBytes(socket) === 0) await nextTurn();
    }
    assert.equal(queuedBytes({ writableLength: 7 }), 7);
  });

  test('close the sockets that the process listens on', async (t) => {
    const close = watchAcceptors();
    const port = await listen(t, createServer());
    const answered = connect(port, '127.0.0.1');
    await once(answered, 'connect');
    answered.destroy();
    close();
    const [error] = (await once(connect(port, '127.0.0.1'), 'error')) as [NodeJS.ErrnoException];
    assert.equal(error.code, 'ECONNREFUSED');
  });

  test('keep the bytes of a socket for its next reader', async (t) => {
    const server = createServer();
    const port = await listen(t, server);
    const accepted = once(server, 'connection') as Promise<[Socket]>;
    const client = connect(port, '127.0.0.1');
    t.after(() => client.destroy());
    const [socket] = await accepted;
    const first = once(socket, 'data');
    client.write('first');
    await first;
    socket.removeAllListeners('data');
    stopFlowing(socket);
    client.write('second');
    while (socket.bytesRead < 11) await nextTurn();
    const [bytes] = (await once(socket, 'data')) as [Buffer];
    assert.equal(bytes.toString(), 'second');
  });
});

/** A worker as the primary process sees it, and its calls about connections. */
function startWorker(hasOthers: boolean) {
  const sent: unknown[] = [];
  const child = Object.assign(new EventEmitter(), {
    send: (message: unknown) => sent.push(message) > 0,
  });
  const worker = Object.assign(new EventEmitter(), { process: child, isConnected: () => false });
  returnHandedOver(worker as unknown as Worker, () => hasOthers);
  const heard: unknown[] = [];
  child.on('internalMessage', (message) => heard.push(message));
  const closed: string[] = [];
  const connection = (name: string) => ({ close: () => closed.push(name) });
  const send: (message: unknown, connection?: object) => boolean = child.send;
  return { worker, child, send, sent, heard, closed, connection };
}

suite('connections that are passed to a worker that dies', () => {
  test('go to another worker, unless the dead one has accepted them', () => {
    const { worker, child, send, sent, heard, closed, connection } = startWorker(true);
    send({ cmd: 'NODE_CLUSTER', seq: 1 }, connection('first'));
    send({ cmd: 'NODE_CLUSTER', seq: 2 }, connection('second'));
    child.emit('internalMessage', { cmd: 'NODE_CLUSTER', ack: 1 });
    heard.length = 0;
    worker.emit('disconnect');
    worker.emit('exit');
    assert.deepEqual(heard, [{ cmd: 'NODE_CLUSTER', ack: 2, accepted: false }]);
    assert.deepEqual([closed, sent.length], [[], 2]);
  });

  test('are closed if there is no other worker', () => {
    const { worker, send, heard, closed, connection } = startWorker(false);
    send({ cmd: 'NODE_CLUSTER', seq: 1 }, connection('first'));
    worker.emit('exit');
    assert.deepEqual([heard, closed], [[], ['first']]);
  });

  test('are left to Node.js if its messages have another form', () => {
    const { worker, send, sent, heard, closed, connection } = startWorker(true);
    for (const message of [
      undefined,
      { cmd: 'OTHER', seq: 1 },
      { cmd: 'NODE_CLUSTER', seq: '1' },
    ]) {
      send(message, connection('first'));
    }
    send({ cmd: 'NODE_CLUSTER', seq: 1 });
    worker.emit('disconnect');
    assert.deepEqual([heard, closed, sent.length], [[], [], 4]);
  });
});
