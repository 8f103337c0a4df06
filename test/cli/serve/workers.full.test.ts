import assert from 'node:assert/strict';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { Agent, get, type IncomingMessage } from 'node:http';
import { text } from 'node:stream/consumers';
import { rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { before, suite, test } from 'node:test';
import { setImmediate as nextTurn, setTimeout as delay } from 'node:timers/promises';
import { cleaningAfterAll } from '../../folder.ts';
import { openSocket, postOperation, type Answer } from '../../harness.ts';
import { loginIni, startProvider } from '../../modules/login/provider.ts';
import { TestVisitor } from '../../modules/login/visitor.ts';
import { httpSource } from '../../core/outbound/sources.ts';
import {
  killAll,
  runWaymark,
  serverFolder,
  spawnWaymark,
  startServed,
  workersOf,
  type Served,
} from '../../process.ts';

const onLinux = { skip: process.platform !== 'linux' && 'needs /proc' };

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

/** Requests a URL over an agent's connection; resolves to the status, and the content of a 200. */
async function contentOf(
  agent: Agent,
  url: string,
  headers: Readonly<Record<string, string>> = {},
): Promise<string> {
  const message = await new Promise<IncomingMessage>((resolve, reject) => {
    get(url, { agent, headers }, resolve).once('error', reject);
  });
  const content = await text(message);
  return message.statusCode === 200 ? `200 ${content}` : String(message.statusCode);
}

/** Requests a URL over a new connection, which any of the workers may accept. */
async function textOf(url: string): Promise<string> {
  const reply = await fetch(url, { headers: { connection: 'close' } });
  return `${reply.status} ${await reply.text()}`;
}

/** The metrics of two workers, once they include both: a worker that answers too late is left out. */
async function metricsOfBoth({ url }: Pick<Served, 'url'>): Promise<string> {
  for (;;) {
    const metrics = await textOf(`${url}/svc1/metrics`);
    const memory = /^process_resident_memory_bytes\{process="(.*)"\}/gm;
    const processes = [...metrics.matchAll(memory)].map(([, name]) => name).sort();
    if (processes.join() === 'worker-1,worker-2') return metrics;
  }
}

suite('several workers', onLinux, () => {
  let served: Served;
  const cleaning = cleaningAfterAll();
  before(async () => {
    const more =
      'workers = 2\n[fetch]\nallow_private = 127.0.0.0/8\n[log]\naccess = no\n[rate.r]\npath = /rated\nrate = 50/d\n';
    const { iniFile } = await serverFolder(cleaning, more);
    served = await startServed(cleaning, iniFile);
  });

  test('begin and end a page rule at the same millisecond, and tell those who follow it', async (t) => {
    const call = (v: object) =>
      postOperation(served.url, 'svc1.userinterface.insert', v, { apikey: served.adminKey });
    const changeMs = Date.now() + 2_000;
    const change = new Date(changeMs).toISOString();
    const sale = { path: '/sale', kind: 'content' };
    const old = await call({ ...sale, content: 'old', until: change });
    await call({ ...sale, content: 'new', from: change });
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    t.after(() => {
      agent.destroy();
    });
    // Several connections for each worker, so that the system gives some to each.
    const told = Array.from({ length: 8 }, async () => {
      const url = `${served.url.replace('http', 'ws')}/svc1/ws`;
      const socket = await openSocket(t, url, undefined);
      const place = { origin: served.url, path: '/sale', from_seq: old.data?.seq as number };
      const followed = await socket.call('svc1.userinterface.follow', place);
      assert.equal(followed.error, undefined);
      for (;;) {
        const [message] = (await once(socket.websocket, 'message')) as [Buffer];
        const { data } = JSON.parse(message.toString()) as Answer;
        if (data?.at !== undefined) return { at: data.at as string, heardMs: Date.now() };
      }
    });
    const seen = new Set<string>();
    for (let isOver = false; !isOver;) {
      for (const ask of [
        () => textOf(`${served.url}/sale`),
        () => contentOf(agent, `${served.url}/sale`),
      ]) {
        const askedMs = Date.now();
        const content = await ask();
        seen.add(content);
        isOver = askedMs >= changeMs;
        if (isOver) assert.equal(content, '200 new');
        if (Date.now() < changeMs) assert.equal(content, '200 old');
      }
    }
    assert.deepEqual([...seen], ['200 old', '200 new']);
    for (const { at, heardMs } of await Promise.all(told)) {
      assert.equal(at, change);
      assert.ok(heardMs >= changeMs);
    }
  });

  test('share a port, and a change that one has acknowledged is served by all at once', async () => {
    assert.equal(workersOf(served).length, 2);
    assert.match(served.out(), /with 2 workers/);
    const call = (name: string, v: object) =>
      postOperation(served.url, `svc1.userinterface.${name}`, v, {
        apikey: served.adminKey,
        headers: { connection: 'close' },
      });
    const { data } = await call('insert', { path: '/a', kind: 'content', content: '0' });
    for (let edit = 1; edit <= 40; edit += 1) {
      await call('edit', { id: data.id, content: String(edit) });
      const seen = await Promise.all([1, 2, 3, 4].map(() => textOf(`${served.url}/a`)));
      assert.deepEqual(new Set(seen), new Set([`200 ${edit}`]));
    }
  });

  test('have one count of each rate, also for prepared answers', async () => {
    const page = { path: '/rated', kind: 'content', content: 'rated' };
    await postOperation(served.url, 'svc1.userinterface.insert', page, { apikey: served.adminKey });
    const ask = async (): Promise<number> => {
      const reply = await fetch(`${served.url}/rated`, { headers: { connection: 'close' } });
      await reply.arrayBuffer();
      return reply.status;
    };
    const found = await Promise.all(Array.from({ length: 120 }, ask));
    assert.equal(found.filter((status) => status === 200).length, 50);
    assert.equal(found.filter((status) => status === 429).length, 70);
    const metrics = await metricsOfBoth(served);
    const refused = /waymark_rate_requests_total\{(?=.*result="refused").*\} (\d+)/g;
    const counts = [...metrics.matchAll(refused)].map(([, count]) => Number(count));
    assert.equal(
      counts.reduce((sum, count) => sum + count, 0),
      70,
    );
  });

  test('refuse a session at once that one of them has ended', async (t) => {
    const provider = await startProvider(t);
    const ini = `workers = 2\n[access.staff]\npath = /staff\nusers = ann\n${loginIni(provider)}`;
    const { iniFile } = await serverFolder(t, ini);
    const { url, adminKey } = await startServed(t, iniFile);
    const call = (name: string, v: object) => postOperation(url, name, v, { apikey: adminKey });
    await call('svc1.userinterface.insert', { path: '/staff', kind: 'content', content: 'staff' });
    const visitor = new TestVisitor();
    await visitor.follow(`${url}/svc1/login/sign-in?return_to=/staff`);
    const cookie = [...visitor.cookies].map((pair) => pair.join('=')).join('; ');
    const agents = Array.from({ length: 8 }, () => new Agent({ keepAlive: true, maxSockets: 1 }));
    t.after(() => {
      for (const agent of agents) agent.destroy();
    });
    const ask = () =>
      Promise.all(agents.map((agent) => contentOf(agent, `${url}/staff`, { cookie })));
    for (let turn = 0; turn < 3; turn += 1) {
      assert.deepEqual(new Set(await ask()), new Set(['200 staff']));
    }
    const { data } = await call('svc1.login.list', {});
    await call('svc1.login.end', { id: data.rows[0].id });
    assert.deepEqual(new Set(await ask()), new Set(['401']));
  });

  test('show the requests of all of them in the live access log of one', async (t) => {
    const { url, adminKey } = served;
    const socket = await openSocket(t, `${url.replace('http', 'ws')}/svc1/ws`, adminKey);
    await socket.call('svc1.log.access', { path: '/live' });
    const seen = new Set<string>();
    socket.websocket.on('message', (bytes: Buffer) => {
      const { data } = JSON.parse(bytes.toString()) as Answer;
      for (const { target } of data.rows ?? []) seen.add(target);
      socket.websocket.emit('seen');
    });
    // Workers learn of the reader by a message: the first requests may be too early.
    const agents = Array.from({ length: 8 }, () => new Agent({ keepAlive: true, maxSockets: 1 }));
    for (const [at, agent] of agents.entries()) {
      while (!seen.has(`/live${at}`)) {
        await contentOf(agent, `${url}/live${at}`);
        await Promise.race([once(socket.websocket, 'seen'), delay(50)]);
      }
      agent.destroy();
    }
    assert.equal(seen.size, agents.length);
  });

  test('serve a change at once also while they are busy with other visitors', async (t) => {
    const { url, adminKey } = served;
    const call = (name: string, v: object) =>
      postOperation(url, `svc1.userinterface.${name}`, v, { apikey: adminKey });
    const { data } = await call('insert', { path: '/b', kind: 'content', content: '0' });
    // Each agent keeps its connection; some lead to one worker and some to the other.
    const agents = Array.from({ length: 8 }, () => new Agent({ keepAlive: true, maxSockets: 1 }));
    const webUrl = `${url.replace('http', 'ws')}/svc1/ws`;
    const sockets = await Promise.all([1, 2, 3].map(() => openSocket(t, webUrl, adminKey)));
    let isOver = false;
    const visit = async (agent: Agent): Promise<void> => {
      while (!isOver) assert.equal(await contentOf(agent, `${url}/b/none`), '404');
    };
    const visitors = agents.slice(4).map(visit);
    for (let edit = 1; edit <= 40; edit += 1) {
      await call('edit', { id: data.id, content: String(edit) });
      const asked = agents.slice(0, 4).map((agent) => contentOf(agent, `${url}/b`));
      assert.deepEqual(new Set(await Promise.all(asked)), new Set([`200 ${edit}`]));
      await call('edit', { id: data.id, httpresponse: 300 + (edit % 2) });
      for (const socket of sockets) {
        const read = await socket.call('svc1.userinterface.read', { id: data.id });
        assert.equal(read.data.httpresponse, 300 + (edit % 2));
      }
      await call('edit', { id: data.id, httpresponse: null });
    }
    isOver = true;
    await Promise.all(visitors);
    for (const agent of agents) agent.destroy();
  });

  test('see at once what another worker has cached, confirmed or purged', async (t) => {
    const asked: string[] = [];
    const long = 'x'.repeat(3_000_000);
    const { origin } = await httpSource(t, (request, response) => {
      const { method = '', url = '' } = request;
      asked.push(`${method} ${url}`);
      request.resume();
      const isKnown = request.headers['if-none-match'] === '"a"';
      const lifetime = url.startsWith('/old') && !isKnown ? 0 : 60;
      response.setHeader('Cache-Control', `max-age=${lifetime}`).setHeader('ETag', '"a"');
      if (isKnown) response.writeHead(304).end();
      else if (url.startsWith('/long')) response.end(long);
      else if (url.startsWith('/chunks')) response.write('a', () => response.end('b'));
      else response.end('short');
    });
    const methods = ['GET', 'POST'];
    const rule = {
      path: '/far/*',
      kind: 'content.fetch',
      enginedata: { source: `${origin}/*`, methods },
    };
    await postOperation(served.url, 'svc1.userinterface.insert', rule, {
      apikey: served.adminKey,
    });
    const url = `${served.url}/far`;
    // Each agent keeps its connection; some lead to one worker and some to the other.
    const agents = Array.from({ length: 4 }, () => new Agent({ keepAlive: true, maxSockets: 1 }));
    t.after(() => {
      for (const agent of agents) agent.destroy();
    });
    const ask = async (path: string, times: number): Promise<readonly string[]> => {
      asked.length = 0;
      for (let time = 0; time < times; time += 1) {
        for (const agent of agents) await contentOf(agent, url + path);
      }
      return asked;
    };
    // The other worker may ask, too, before the response is in the cache that they share: some
    // milliseconds after it was sent.
    const assertAsked = (lines: readonly string[], path: string, least: number): void => {
      assert.ok(lines.length >= least && lines.length <= 2 * least, lines.join());
      for (const line of lines) assert.equal(line, `GET ${path}`);
    };
    for (let page = 1; page <= 5; page += 1) {
      for (const kind of ['short', 'chunks', 'long']) {
        const path = `/${kind}${page}`;
        assertAsked(await ask(path, 2), path, 1);
        assert.deepEqual(await ask(path, 1), []);
        if (kind === 'long') continue;
        await fetch(url + path, { method: 'POST', headers: { connection: 'close' } });
        assertAsked(await ask(path, 2), path, 1);
      }
      // The first response is stale, and the second request revalidates it.
      assertAsked(await ask(`/old${page}`, 2), `/old${page}`, 2);
      assert.deepEqual(await ask(`/old${page}`, 1), []);
    }
  });

  test('each show the metrics of all', async () => {
    const notFound = async (): Promise<number> => {
      const text = await metricsOfBoth(served);
      const counts = [...text.matchAll(/^waymark_requests_total\{status="4xx".*\} (\d+)$/gm)];
      return counts.reduce((sum, [, value]) => sum + Number(value), 0);
    };
    const before = await notFound();
    for (let count = 0; count < 20; count += 1) await textOf(`${served.url}/none`);
    for (let count = 0; count < 4; count += 1) assert.equal(await notFound(), before + 20);
  });
});

suite('workers that start, stop, or are killed', onLinux, () => {
  test('that die are replaced, and the others go on', async (t) => {
    const { iniFile } = await serverFolder(t, 'workers = 2\n');
    const served = await startServed(t, iniFile);
    const [first = 0, second = 0] = workersOf(served);
    process.kill(first, 'SIGKILL');
    while (!served.out().includes('starting a new one')) {
      await once(served.child.stdout ?? served.child, 'data');
    }
    assert.match(await textOf(`${served.url}/none`), /^404/);
    const deadline = Date.now() + 60_000;
    while (workersOf(served).length < 2) {
      assert.ok(Date.now() < deadline, 'no other worker came');
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    assert.ok(workersOf(served).includes(second));
  });

  test('that die during a request for metrics do not end the leader', async (t) => {
    const { iniFile } = await serverFolder(t, 'workers = 2\n');
    const served = await startServed(t, iniFile);
    // Several connections to each worker: some request metrics, the others health.
    const agents = Array.from({ length: 16 }, () => new Agent({ keepAlive: true, maxSockets: 1 }));
    t.after(() => {
      for (const agent of agents) agent.destroy();
    });
    const ask = (path: string, from: number) =>
      agents.slice(from, from + 8).map((agent) => contentOf(agent, served.url + path));
    await Promise.all([...ask('/svc1/health', 0), ...ask('/svc1/health', 8)]);
    process.kill(served.pid, 'SIGSTOP');
    const told = Promise.allSettled(ask('/svc1/metrics', 0));
    // Both workers have sent a request to the leader, which is about to send requests to dead
    // workers.
    await Promise.all(ask('/svc1/health', 8));
    await killAll(workersOf(served));
    process.kill(served.pid, 'SIGCONT');
    await told;
    while (!served.out().includes('starting a new one')) {
      assert.equal(served.child.exitCode, null);
      await nextTurn();
    }
    assert.ok(isAlive(served.pid));
  });

  test('that replace others use the current configuration, also if the ini file has become invalid', async (t) => {
    const text = 'workers = 2\n[disk.site]\nroot = site\n';
    const { folder, iniFile, ini } = await serverFolder(t, text, { 'site/index.html': 'x' });
    const served = await startServed(t, iniFile);
    const untilLogged = async (text: string, times = 1): Promise<void> => {
      while (served.out().split(text).length <= times) {
        await once(served.child.stdout ?? served.child, 'data');
      }
    };
    const other = ini.replace('data = data', 'data = other').replace(/127\S+/, '127.0.0.2:0');
    await writeFile(iniFile, other.replace('root = site', 'root = site\npath = /shop'));
    await untilLogged('[server] data has changed');
    await writeFile(iniFile, `${other}broken\n`);
    await untilLogged('ignores the changed ini file');
    const [first = 0] = workersOf(served);
    process.kill(first, 'SIGKILL');
    await untilLogged('starting a new one');
    const bothServe = async (): Promise<boolean> =>
      (await textOf(`${served.url}/svc1/metrics`)).includes('bytes{process="worker-1"}');
    const deadline = Date.now() + 60_000;
    while (!(await bothServe())) assert.ok(Date.now() < deadline, 'no other worker came');
    // The new worker reports the state of the ini file.
    await untilLogged('ignores the changed ini file', 2);
    const headers = { apikey: served.adminKey, connection: 'close' };
    for (let count = 0; count < 8; count += 1) {
      assert.equal(await textOf(`${served.url}/shop/`), '200 x');
      const status = await fetch(`${served.url}/svc1/server/status`, { headers });
      const { configuration } = ((await status.json()) as Answer).data;
      assert.equal(configuration.state, 'broken');
      assert.deepEqual(configuration.restart_needed, ['[server] listen', '[server] data']);
    }
    assert.ok(!existsSync(join(folder, 'other')));
  });

  test('all have the same configuration, also one that was busy while the ini file changed twice', async (t) => {
    const { iniFile, ini } = await serverFolder(t, 'workers = 2\n[disk.site]\nroot = site\n', {
      'site/index.html': 'x',
    });
    const served = await startServed(t, iniFile);
    const untilLogged = async (text: string): Promise<void> => {
      while (!served.out().includes(text)) await once(served.child.stdout ?? served.child, 'data');
    };
    // The first worker writes the log, so the second one is stopped.
    const [, second = 0] = workersOf(served);
    process.kill(second, 'SIGSTOP');
    await writeFile(iniFile, ini.replace('root = site', 'root = site\npath = /shop'));
    await untilLogged('uses the changed ini file');
    await writeFile(iniFile, `${ini}broken\n`);
    await untilLogged('ignores the changed ini file');
    process.kill(second, 'SIGCONT');
    const headers = { apikey: served.adminKey, connection: 'close' };
    for (let count = 0; count < 8; count += 1) {
      assert.equal(await textOf(`${served.url}/shop/`), '200 x');
      const status = await fetch(`${served.url}/svc1/server/status`, { headers });
      assert.equal(((await status.json()) as Answer).data.configuration.state, 'broken');
    }
  });

  test('that die before they serve are replaced, or end the server if they are the first', async (t) => {
    const { iniFile } = await serverFolder(t, 'workers = 2\n');
    for (const number of [2, 1]) {
      // Only the worker itself can be sure to end before it serves.
      const ended = `if (process.env.WAYMARK_WORKER === '${number}') process.kill(process.pid, 9)`;
      const NODE_OPTIONS = `--import=data:text/javascript,${encodeURIComponent(ended)}`;
      const child = spawnWaymark(['serve', '--config', iniFile], { env: { NODE_OPTIONS } });
      t.after(() => child.kill('SIGKILL'));
      let out = '';
      child.stdout?.on('data', (chunk: Buffer) => {
        out += chunk.toString();
      });
      const closed = once(child, 'close');
      if (number === 1) {
        assert.equal(((await closed) as [number])[0], 1);
        assert.match(out, /first worker was killed by SIGKILL/);
        return;
      }
      while (!/SIGKILL.*starting a new one/.test(out)) {
        assert.equal(child.exitCode, null, out);
        await Promise.race([once(child.stdout ?? child, 'data'), closed]);
      }
      child.kill('SIGTERM');
      await closed;
    }
  });

  test('all apply a changed ini file, with one line in the log', async (t) => {
    const { iniFile, ini } = await serverFolder(t, 'workers = 2\n[disk.site]\nroot = site\n', {
      'site/index.html': 'x',
    });
    const served = await startServed(t, iniFile);
    assert.match(await textOf(`${served.url}/shop/`), /^404/);
    // One change: writing in place is two, of which the first leaves the file empty.
    await writeFile(`${iniFile}.new`, ini.replace('root = site', 'root = site\npath = /shop'));
    await rename(`${iniFile}.new`, iniFile);
    const deadline = Date.now() + 60_000;
    for (let inForce = 0; inForce < 20;) {
      assert.ok(Date.now() < deadline, 'not taken over by all');
      inForce = (await textOf(`${served.url}/shop/`)) === '200 x' ? inForce + 1 : 0;
    }
    assert.equal(served.out().split('uses the changed ini file').length, 2);
  });

  test('keep a closed site closed while its ini file is empty or half written', async (t) => {
    const text = 'workers = 2\n[disk.site]\nroot = site\n[auth]\nanonymous =\n';
    const { iniFile, ini } = await serverFolder(t, text, { 'site/index.html': 'x' });
    const served = await startServed(t, iniFile);
    const render = `${served.url}/svc1/userinterface/get_render?_v.origin=${served.url}&_v.path=/`;
    for (const [written, said] of [
      ['', 'the ini file is empty'],
      ['[disk.site]\nroot = site\n', 'the ini file has no [server] section'],
    ] as const) {
      await writeFile(iniFile, written);
      while (!served.out().includes(said)) await once(served.child.stdout ?? served.child, 'data');
      for (let count = 0; count < 8; count += 1) {
        assert.match(await textOf(render), /^401/);
        assert.equal(await textOf(`${served.url}/`), '200 x');
      }
    }
    await writeFile(iniFile, `${ini}[log]\nexplain = yes\n`);
    while (!served.out().includes('uses the changed ini file')) {
      await once(served.child.stdout ?? served.child, 'data');
    }
    assert.match(await textOf(render), /^401/);
  });

  test('end together on SIGTERM, and also when the leader is killed', async (t) => {
    const { iniFile } = await serverFolder(t, 'workers = 2\n');
    const served = await startServed(t, iniFile);
    served.child.kill('SIGTERM');
    assert.deepEqual(await served.closed, { code: 0, signal: null });
    assert.match(served.out(), /Stopped; all requests ended/);

    const again = await startServed(t, iniFile, { first: false });
    const workers = workersOf(again);
    again.child.kill('SIGKILL');
    await again.closed;
    const deadline = Date.now() + 60_000;
    while (workers.some(isAlive)) {
      assert.ok(Date.now() < deadline, 'a worker stayed behind');
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  });

  test('report once that the port is in use', async (t) => {
    const { iniFile } = await serverFolder(t, '');
    const first = await startServed(t, iniFile);
    const other = await serverFolder(t, '');
    await writeFile(
      other.iniFile,
      `[server]\nlisten = 127.0.0.1:${first.port}\ndata = data\nworkers = 3\n`,
    );
    const { code, err } = await runWaymark(['serve', '--config', other.iniFile]);
    assert.equal(code, 1);
    assert.equal(err.split('in use').length, 2, err);
  });
});
