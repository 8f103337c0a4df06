import assert from 'node:assert/strict';
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import { join } from 'node:path';
import { Writable } from 'node:stream';
import { suite, test } from 'node:test';
import type { AccessEntry } from '../../../src/core/report/access-entry.ts';
import { createLogs, type LogSettings } from '../../../src/core/report/log.ts';
import { syslogMessage, type SyslogAddress } from '../../../src/modules/logs/syslog-message.ts';
import { openSyslog } from '../../../src/modules/logs/syslog.ts';
import { freePort } from '../../free-port.ts';
import { temporaryFolder, type Cleaning } from '../../folder.ts';

const time = '2025-01-02T03:04:05.678Z';
const origin = { host: 'web 1.example', pid: 7 };

const entry: AccessEntry = {
  ...{ address: '192.0.2.7', method: 'GET', target: '/a', host: 'a.example', httpVersion: '1.1' },
  ...{
    userAgent: '',
    referer: '',
    accept: '*/*',
    acceptLanguage: '',
    purpose: '',
    status: 200,
    bytes: 1,
    durationMs: 1,
    source: 'none',
  },
  ...{ keyId: undefined, cut: false },
};

/** Logs that go to syslog, and what they write to standard output nevertheless. */
function syslogLogs(
  t: Cleaning,
  syslog: SyslogAddress | undefined,
  more: Partial<LogSettings> = {},
) {
  const out: string[] = [];
  let nowMs = Date.parse(time);
  const logs = createLogs({
    settings: { level: 'info', format: 'json', line: '{address} {status}', syslog, ...more },
    destination: new Writable({
      write(chunk: Buffer, _encoding, done) {
        out.push(chunk.toString());
        done();
      },
    }),
    colour: false,
    isJournal: syslog === undefined,
    openSyslog: (address, failed) => openSyslog(address, { origin, now: () => nowMs, failed }),
    now: () => nowMs,
  });
  t.after(() => logs.end());
  const pass = (ms: number): void => {
    nowMs += ms;
  };
  return { ...logs, out, pass };
}

/** A server of streams; `received` resolves when the text matches. */
async function receiver(t: Cleaning, where: { readonly port: number } | { readonly path: string }) {
  let text = '';
  const sockets: Socket[] = [];
  const server: Server = createServer((socket) => {
    sockets.push(socket);
    socket.on('data', (data) => {
      text += data.toString();
      server.emit('received');
    });
  }).listen('path' in where ? where : { ...where, host: '127.0.0.1' });
  await once(server, 'listening');
  const close = async (): Promise<void> => {
    for (const socket of sockets) socket.destroy();
    if (server.listening) await new Promise((resolve) => server.close(resolve));
  };
  t.after(close);
  return {
    close,
    address: server.address() as AddressInfo,
    received: async (pattern: RegExp): Promise<string> => {
      while (!pattern.test(text)) await once(server, 'received');
      return text;
    },
  };
}

const request = `<30>1 ${time} web1.example waymark 7 access - 192.0.2.7 200`;
const warning = new RegExp(
  `<28>1 ${time} web1\\.example waymark 7 - - \\{"level":40,.*"msg":"two\\\\nlines"\\}`,
);

suite('the log goes to syslog', () => {
  test('in datagrams, one for each line, with its severity', async (t) => {
    const socket = createSocket('udp4');
    t.after(() => socket.close());
    socket.bind(0, '127.0.0.1');
    await once(socket, 'listening');
    const messages: string[] = [];
    socket.on('message', (message) => messages.push(message.toString()));
    const { port } = socket.address();
    const logs = syslogLogs(t, { kind: 'udp', host: '127.0.0.1', port });
    logs.access.add(entry);
    logs.access.add(entry);
    logs.access.flush();
    logs.log.warn({}, 'two\nlines');
    while (messages.length < 3) await once(socket, 'message');
    assert.deepEqual(messages.slice(0, 2), [request, request]);
    assert.match(messages[2] ?? '', warning);
    assert.deepEqual(logs.out, []);
  });

  test('over TCP, with the length before each message', async (t) => {
    const { address, received } = await receiver(t, { port: 0 });
    const logs = syslogLogs(t, { kind: 'tcp', host: '127.0.0.1', port: address.port });
    logs.access.add(entry);
    await logs.end();
    assert.equal(await received(/200/), `${request.length} ${request}`);
    // A log that was ended opens it again.
    logs.log.warn({}, 'two\nlines');
    await received(warning);
  });

  test('over a unix socket, with a line for each message', async (t) => {
    const path = join(await temporaryFolder(t), 'log');
    const { received } = await receiver(t, { path });
    const logs = syslogLogs(t, { kind: 'unix', path }, { format: 'pretty' });
    logs.log.error({ reason: 'x' }, 'broken');
    logs.access.add(entry);
    logs.access.flush();
    const text = await received(/200\n/);
    assert.match(text, /^<27>1 \S+ web1\.example waymark 7 - - ERROR: broken/);
    assert.ok(text.endsWith(`\n${request}\n`));
  });

  test('which may be down: it is said once, and later lines arrive', async (t) => {
    const port = await freePort();
    const logs = syslogLogs(t, { kind: 'tcp', host: '127.0.0.1', port });
    const says = async (): Promise<void> => {
      while (!logs.out.join('').includes('Cannot send log lines to syslog')) {
        await new Promise((resolve) => setImmediate(resolve));
      }
    };
    logs.log.info({}, 'lost');
    await says();
    for (let at = 0; at < 3; at += 1) {
      logs.log.info({}, 'lost, too');
      logs.access.add(entry);
      logs.access.flush();
    }
    assert.match(logs.out.join(''), /ECONNREFUSED/);
    assert.equal(logs.out.length, 1);
    const { received } = await receiver(t, { port });
    logs.pass(1_000);
    logs.log.info({}, 'it arrives');
    await received(/it arrives/);
  });
});

test('a long URL does not push the status out of a message to syslog', async (t) => {
  const socket = createSocket('udp4');
  t.after(() => {
    socket.close();
  });
  socket.bind(0, '127.0.0.1');
  await once(socket, 'listening');
  const address: SyslogAddress = { kind: 'udp', host: '127.0.0.1', port: socket.address().port };
  for (const format of ['json', 'combined', 'pretty'] as const) {
    const logs = syslogLogs(t, address, { format, line: undefined });
    const arrived = once(socket, 'message');
    const long = `/${'"\\ÿ'.repeat(6_000)}`;
    const texts = { target: long, referer: long, userAgent: long, host: long };
    logs.access.add({ ...entry, ...texts, status: 418 });
    logs.access.flush();
    const [message] = (await arrived) as [Buffer];
    assert.ok(message.length <= 8_192, `${format}: ${message.length}`);
    const text = message.toString();
    if (format === 'json') assert.equal(JSON.parse(text.slice(text.indexOf('{'))).status, 418);
    else assert.match(text, / 418 /, format);
    await logs.end();
  }
});

test('datagrams do not fill the memory while the address of the receiver is looked up', async () => {
  let failures = 0;
  const sink = openSyslog(
    { kind: 'udp', host: 'localhost', port: await freePort() },
    { origin, now: Date.now, failed: () => (failures += 1) },
  );
  const line = { severity: 6, isRequest: true, text: 'x' };
  sink.write(Array.from({ length: 5_000 }, () => line));
  assert.equal(sink.writableNeedDrain, true);
  sink.write([line]);
  await sink.end();
  assert.equal(sink.writableNeedDrain, false);
  assert.ok(failures <= 1);
});

test('a message to syslog is cut between characters if it is too long', () => {
  for (const more of ['', 'x', 'xx']) {
    const line = { severity: 6, isRequest: true, text: more + '€'.repeat(5_000) };
    const message = syslogMessage(line, origin, 0);
    assert.ok(message.length <= 8_192 && message.length > 8_180);
    assert.doesNotMatch(message.toString(), /\ufffd/);
  }
});

test('for journald, each line begins with its priority', async (t) => {
  const logs = syslogLogs(t, undefined);
  logs.access.add(entry);
  logs.access.flush();
  logs.log.error({}, 'broken');
  assert.match(logs.out.join(''), /^<6>192\.0\.2\.7 200\n<3>\{"level":50,.*"msg":"broken"\}\n$/);
  await logs.end();
});
