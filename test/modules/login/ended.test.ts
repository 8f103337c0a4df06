import assert from 'node:assert/strict';
import { EventEmitter, once } from 'node:events';
import { request, type IncomingMessage } from 'node:http';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { suite, test } from 'node:test';
import { WebSocket } from 'ws';
import { readTestConfig, startSite } from '../../harness.ts';
import { httpSource } from '../../core/outbound/sources.ts';
import { socketSource } from '../../core/server/h1/socket-source.ts';
import { connectHttp2 } from '../../core/server/h2/client.ts';
import { startTlsSite } from '../../core/server/tls/tls-rig.ts';
import { newIssuer, type Issuer } from '../visitors/issuer.ts';
import { loginIni, startProvider } from './provider.ts';
import { TestVisitor } from './visitor.ts';

suite('a session that has ended', () => {
  test('ends websockets, long polls and event streams of its visitor, and nothing else', async (t) => {
    const provider = await startProvider(t);
    const arrived = new EventEmitter();
    const app = await httpSource(t, ({ url = '' }, response) => {
      arrived.emit(url);
      // A long poll waits for its answer.
      if (url.endsWith('events')) {
        response.setHeader('content-type', 'text/event-stream').write('data: 1\n\n');
      }
    });
    const live = await socketSource(t, (opened) => {
      opened.send('hello');
      opened.on('message', (data: Buffer) => {
        opened.send(data.toString());
      });
    });
    const proxies = ['staff', 'open'].map(
      (name) =>
        `[proxy.${name}]\npath = /${name}/app/\nsource = ${app.origin}\n` +
        `[proxy.${name}live]\npath = /${name}/live/\nsource = ${live}\n`,
    );
    const site = await startTlsSite(t, {
      tls: 'http_redirect = no',
      ini: `${proxies.join('')}[access.staff]\npath = /staff/*\nroles = staff\n${loginIni(provider)}`,
    });
    const visitor = new TestVisitor();
    await visitor.follow(`${site.url}/svc1/login/sign-in?return_to=/none`);
    const session = visitor.cookies.get('waymark_login') ?? '';
    assert.notEqual(session, '');
    const cookie = `waymark_login=${session}`;

    const socketTo = async (path: string): Promise<WebSocket> => {
      const socket = new WebSocket(site.url.replace('http', 'ws') + path, { headers: { cookie } });
      t.after(() => {
        socket.terminate();
      });
      socket.on('error', () => undefined);
      await once(socket, 'message');
      return socket;
    };
    const ask = (path: string) => {
      const sent = request(site.url + path, { headers: { cookie }, agent: false });
      t.after(() => {
        sent.destroy();
      });
      sent.on('error', () => undefined).end();
      return sent;
    };
    const eventsOf = async (path: string): Promise<IncomingMessage> => {
      const [message] = (await once(ask(path), 'response')) as [IncomingMessage];
      message.on('error', () => undefined).resume();
      return message;
    };
    const [staffSocket, openSocket] = [
      await socketTo('/staff/live/'),
      await socketTo('/open/live/'),
    ];
    const staffEvents = await eventsOf('/staff/app/events');
    const openEvents = await eventsOf('/open/app/events');
    const polled = once(arrived, '/staff/app/poll');
    const staffPoll = ask('/staff/app/poll');
    await polled;
    const client = await connectHttp2(t, site);
    // The cookie of a connection with TLS has another name.
    const stream = client.begin('/staff/app/events', { cookie: `__Host-${cookie}` });
    stream.on('error', () => undefined);
    await once(stream, 'response');
    stream.resume();

    // Some of them end with an error.
    const ended = [staffSocket, staffEvents, staffPoll, stream].map(
      (one: EventEmitter) => new Promise((resolve) => one.once('close', resolve)),
    );
    const { data } = await site.call('svc1.login.list', {});
    const [{ id }] = data.rows as [{ readonly id: string }];
    assert.equal((await site.call('svc1.login.end', { id })).error, undefined);
    await Promise.all(ended);
    assert.equal((await client.ask('/open/none')).status, 404, 'the connection goes on');

    openSocket.send('still here');
    const [still] = (await once(openSocket, 'message')) as [Buffer];
    assert.equal(still.toString(), 'still here');
    assert.equal(openEvents.destroyed, false);
  });
});

test('a token that is no longer valid ends the websocket of its visitor', async (t) => {
  const live = await socketSource(t, (opened) => {
    opened.send('hello');
  });
  const [former, current] = await Promise.all([newIssuer('one'), newIssuer('two')]);
  const site = await startSite(t, {
    ini:
      `[proxy.live]\npath = /live/\nsource = ${live}\n[access.ann]\nusers = ann\n` +
      '[auth]\njwt_jwks = keys.json\n',
    files: { 'keys.json': JSON.stringify({ keys: [former.jwk, current.jwk] }) },
  });
  const open = async (issuer: Issuer): Promise<WebSocket> => {
    const socket = new WebSocket(`${site.url.replace('http', 'ws')}/live/`, {
      headers: { authorization: `Bearer ${await issuer.sign()}` },
    });
    t.after(() => {
      socket.terminate();
    });
    socket.on('error', () => undefined);
    await once(socket, 'message');
    return socket;
  };
  const [refused, valid] = [await open(former), await open(current)];
  await writeFile(join(site.folder, 'keys.json'), JSON.stringify({ keys: [current.jwk] }));
  site.waymark.reload({ ok: true, config: await readTestConfig(site.iniFile) });
  await once(refused, 'close');
  assert.equal(valid.readyState, valid.OPEN);
});
