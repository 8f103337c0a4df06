import { once } from 'node:events';
import { connect as connectHttp2, type ClientHttp2Session } from 'node:http2';
import { connect, type Socket } from 'node:net';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { connect as connectTls, type TLSSocket } from 'node:tls';
import { parentPort, workerData } from 'node:worker_threads';
import type { ResetWay } from './reset-rig.ts';

/** What the thread of the clients gets. */
export interface ResetJob {
  readonly way: ResetWay;
  readonly port: number;
  readonly ca: string;
  readonly count: number;
  readonly path: string;
  readonly fields: Readonly<Record<string, string>>;
  readonly body: string;
  /** Set to 1 when all connections are reset. */
  readonly done: Int32Array;
}

/** An open connection: sends its request, and resolves when the system has it. */
interface Client {
  readonly tcp: Socket;
  readonly send: () => Promise<void>;
}

const { way, port, ca, count, path, fields, body, done } = workerData as ResetJob;
const requestText = [
  `POST ${path} HTTP/1.1`,
  `Host: localhost:${port}`,
  ...Object.entries(fields).map(([name, value]) => `${name}: ${value}`),
  `Content-Length: ${body.length}`,
  '',
  body,
].join('\r\n');

async function openTcp(): Promise<Socket> {
  const tcp = connect(port, '127.0.0.1').setNoDelay(true);
  tcp.on('error', () => undefined);
  await once(tcp, 'connect');
  return tcp;
}

async function openTls(tcp: Socket, protocol: string): Promise<TLSSocket> {
  const tls = connectTls({ socket: tcp, servername: 'localhost', ca, ALPNProtocols: [protocol] });
  tls.on('error', () => undefined);
  await once(tls, 'secureConnect');
  return tls;
}

/** A client that writes the request in HTTP/1.1. */
function http1Client(tcp: Socket, socket: Socket): Client {
  return {
    tcp,
    send: () =>
      new Promise((resolve) => {
        socket.write(requestText, () => {
          resolve();
        });
      }),
  };
}

async function http2Client(tcp: Socket, socket: Socket, scheme: string): Promise<Client> {
  const session: ClientHttp2Session = connectHttp2(`${scheme}://localhost:${port}`, {
    createConnection: () => socket,
  });
  session.on('error', () => undefined);
  await once(session, 'remoteSettings');
  return {
    tcp,
    async send() {
      const stream = session.request({ ':method': 'POST', ':path': path, ...fields });
      stream.on('error', () => undefined);
      const finished = once(stream, 'finish');
      stream.end(body);
      await finished;
      // The session writes its frames at the end of a turn.
      await nextTurn();
      await nextTurn();
    },
  };
}

async function open(): Promise<Client> {
  const tcp = await openTcp();
  if (way === 'tls') return http1Client(tcp, await openTls(tcp, 'http/1.1'));
  if (way === 'h2') return http2Client(tcp, await openTls(tcp, 'h2'), 'https');
  if (way === 'h2c') return http2Client(tcp, tcp, 'http');
  return http1Client(tcp, tcp);
}

async function sendAndReset({ tcp, send }: Client): Promise<void> {
  const closed = once(tcp, 'close');
  await send();
  // SO_LINGER of 0: the client sends a reset at once.
  tcp.resetAndDestroy();
  await closed;
}

async function serve(parent: NonNullable<typeof parentPort>): Promise<void> {
  const openAll = () => Promise.all(Array.from({ length: count }, open));
  const early = way === 'unaccepted' ? undefined : await openAll();
  parent.postMessage('open');
  await once(parent, 'message');
  await Promise.all((early ?? (await openAll())).map(sendAndReset));
  Atomics.store(done, 0, 1);
  Atomics.notify(done, 0);
}

if (parentPort !== null) await serve(parentPort);
