import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmod, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { request } from 'node:http';
import { createServer, type AddressInfo } from 'node:net';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { suite, test, type TestContext } from 'node:test';
import { createAuthority } from '../../certificates.ts';
import { writeFiles } from '../../folder.ts';
import { postOperation } from '../../harness.ts';
import { httpSource } from '../../core/outbound/sources.ts';
import {
  isDead,
  program,
  runWaymark,
  serverFolder,
  startServed,
  workersOf,
} from '../../process.ts';
import { visit } from '../visitors.ts';

const onLinux = { skip: process.platform !== 'linux' && 'needs /proc' };

/** A connection that stays open would keep an old process. */
const headers = { connection: 'close' };

/** A busy machine lets attempts time out: without these, the third would follow after 5 minutes. */
const retries = '1s, 1s, 1s, 1s, 1s, 1s, 1s, 1s, 1s, 1s';

/** How long the events take to arrive after the visits, at most. */
const deliveredMsMax = 60_000;

/** A server with a site, over plain HTTP and TLS; its successors end with the test. */
async function startSite(t: TestContext, more = '') {
  endServers(t, () => folder);
  const authority = await createAuthority();
  const { cert, key } = await authority.issue(['localhost']);
  const ini = `listen[] = https://127.0.0.1:0\n${more}[tls]\ncert = cert.pem\nkey = key.pem\nhttp_redirect = no\n`;
  const { folder, iniFile } = await serverFolder(
    t,
    `${ini}[webhook]\nallow_private = 127.0.0.0/8\nretry = ${retries}\n[disk.site]\nroot = site\n[log]\naccess = no\n`,
    { 'site/index.html': 'here', 'cert.pem': cert, 'key.pem': key },
  );
  const text = await readFile(iniFile, 'utf8');
  await writeFile(iniFile, text.replace('listen =', 'listen[] ='));
  const served = await startServed(t, iniFile);
  const tlsUrl = /https:\/\/localhost:\d+/.exec(served.out())?.[0] ?? '';
  return { folder, iniFile, served, tlsUrl, ca: authority.cert };
}

/** Ends the server that has a folder when the test is over: it is no child of the test. */
function endServers(t: TestContext, folder: () => string): void {
  t.after(async () => {
    const pid = await serverPid(folder()).catch(() => undefined);
    if (pid !== undefined) process.kill(pid, 'SIGKILL');
  });
}

async function serverPid(folder: string): Promise<number> {
  return Number((await readFile(join(folder, 'data/serve.pid'), 'utf8')).split(' ')[0]);
}

/** Resolves when a process has ended, whose parent may be gone. */
async function ended(pid: number): Promise<void> {
  while (!isDead(pid)) await pause();
}

/** Between two looks at what another process does. */
function pause(): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, 20);
  });
}

suite('waymark restart', onLinux, () => {
  for (const workers of [1, 2]) {
    test(`fails no request, with ${workers} process${workers > 1 ? 'es' : ''}`, async (t) => {
      const site = await startSite(t, `workers = ${workers}\n`);
      const { served, folder, iniFile, tlsUrl, ca } = site;
      // A delivery may arrive twice: one that the old process had to cut is repeated.
      const received = new Set<string>();
      const { origin } = await httpSource(t, (message, response) => {
        void text(message).then((body) => {
          received.add((JSON.parse(body) as { data: { vk: string } }).data.vk);
          response.end();
        });
      });
      const apikey = served.adminKey;
      const hook = { name: 'books', event: ['sale.completed'], url: origin };
      const call = (name: string, v: object): Promise<unknown> =>
        postOperation(served.url, `svc1.webhook.${name}`, v, { apikey, headers });
      const { data } = (await call('insert', hook)) as { data: { id: string } };
      const visits = visit(t, { url: `${served.url}/`, tlsUrl: `${tlsUrl}/`, ca, apikey });
      const pids = new Set([await serverPid(folder)]);
      for (let restart = 0; restart < 2; restart += 1) {
        const { code, err } = await runWaymark(['restart', '--config', iniFile]);
        assert.equal(code, 0, `${err}${served.out()}${served.err()}`);
        pids.add(await serverPid(folder));
      }
      const counts = await visits.end();
      assert.equal(pids.size, 3);
      // The log of the server says why.
      const log = `${served.out()}${served.err()}`;
      assert.equal(visits.failures.length, 0, `${visits.failures.join('\n')}\n${log}`);
      assert.equal(Object.keys(counts).length, 6, JSON.stringify(counts));
      assert.deepEqual(new Set(visits.closes.slice(0, 2)), new Set([1012]));
      const deadline = performance.now() + deliveredMsMax;
      while (received.size < visits.inserted.size && performance.now() < deadline) await pause();
      const missing = [...visits.inserted].filter(([vk]) => !received.has(vk));
      const attempts = missing.length > 0 && (await call('deliveries', { id: data.id }));
      assert.deepEqual(missing, [], `${JSON.stringify(attempts)}\n${log}`);
      assert.deepEqual(received, new Set(visits.inserted.keys()));
      const [last = 0] = [...pids].toReversed();
      for (const pid of pids) if (pid !== last) await ended(pid);
      process.kill(last, 'SIGTERM');
      await served.closed;
      await assert.rejects(readFile(join(folder, 'data/serve.pid')), { code: 'ENOENT' });
    });
  }

  test('lets a request of the old process end', async (t) => {
    const { served, folder, iniFile } = await startSite(t);
    const [{ pid: old }, apikey] = [served, served.adminKey];
    const url = `${served.url}/svc1/event/insert`;
    const post = request(url, { method: 'POST', headers: { apikey }, agent: false });
    post.write('{"v":{"type":"sale.completed","data":{}},');
    await once(post, 'socket').then(() => once(post.socket ?? post, 'connect'));
    // The old process has read the head before the new one is there.
    await postOperation(served.url, 'svc1.server.status', {}, { apikey, headers });
    assert.equal((await runWaymark(['restart', '--config', iniFile])).code, 0);
    assert.notEqual(await serverPid(folder), old);
    post.end('"vk":"late"}');
    const [response] = (await once(post, 'response')) as [import('node:http').IncomingMessage];
    assert.equal(response.statusCode, 200);
    assert.match(await text(response), /"vk":"late"/);
    await ended(old);
  });

  test('keeps the old process if the new one cannot start, and says why', async (t) => {
    for (const workers of [1, 2]) {
      const { served, folder, iniFile } = await startSite(t, `workers = ${workers}\n`);
      const ini = await readFile(iniFile, 'utf8');
      const restart = async (): Promise<string> => {
        process.kill(served.pid, 'SIGUSR2');
        const file = join(folder, 'data/restart.json');
        for (;;) {
          const outcome = await readFile(file, 'utf8').catch(() => undefined);
          if (outcome === undefined) await pause();
          else {
            await rm(file);
            return outcome;
          }
        }
      };
      // A mistake in the ini file, and a port that another program has.
      await writeFile(iniFile, ini.replace('[log]', '[lag]'));
      assert.match(await restart(), /"failed".*unknown section `\[lag\]`/);
      const { code, err } = await runWaymark(['restart', '--config', iniFile]);
      assert.equal(code, 1);
      assert.match(err, /unknown section `\[lag\]`/);
      const other = createServer().listen(0, '127.0.0.1');
      await once(other, 'listening');
      t.after(() => other.close());
      const { port } = other.address() as AddressInfo;
      await writeFile(iniFile, ini.replace('data =', `listen[] = 127.0.0.1:${port}\ndata =`));
      assert.match(await restart(), /"failed".*Cannot listen on 127\.0\.0\.1:\d+: it is in use/);
      // Two processes of a node would both follow its centre.
      await writeFile(join(folder, 'node.key'), 'wmk_none');
      const node = '[node]\nname = shop\nrole = replica\nkey_file = node.key\n';
      await writeFile(iniFile, `${ini}${node}central = http://127.0.0.1:1\n`);
      assert.match(await restart(), /"failed".*follow its centre: stop the server/);
      // A version without this file writes while the new process opens the data.
      await writeFile(iniFile, ini);
      const lock = join(folder, 'data/opening.lock');
      await rename(lock, `${lock}.aside`);
      assert.match(await restart(), /"failed".*cannot share its data with a new one: stop the/);
      await rename(`${lock}.aside`, lock);
      const page = await fetch(served.url);
      assert.equal(await page.text(), 'here');
      assert.equal(await serverPid(folder), served.pid);
      assert.match(await restart(), /"done"/);
      assert.notEqual(await serverPid(folder), served.pid);
    }
  });

  test('keeps the old process if the new one is killed', async (t) => {
    const { served, folder } = await startSite(t);
    process.kill(served.pid, 'SIGUSR2');
    let child: number | undefined;
    while (child === undefined) [child] = workersOf(served);
    process.kill(child, 'SIGKILL');
    while (!served.out().includes('Cannot restart')) await pause();
    assert.match(
      served.out(),
      /Cannot restart: the new process ended with SIGKILL before it served/,
    );
    assert.equal(await serverPid(folder), served.pid);
    assert.equal(await (await fetch(served.url, { headers })).text(), 'here');
  });

  test('says that no server runs', async (t) => {
    const { iniFile } = await serverFolder(t, '');
    const { code, err } = await runWaymark(['restart', '--config', iniFile]);
    assert.equal(code, 1);
    assert.match(err, /no server runs with the data folder/);
  });

  test('keeps a unix socket in place', async (t) => {
    endServers(t, () => folder);
    const { folder, iniFile } = await serverFolder(t, '[disk.site]\nroot = site\n', {
      'site/index.html': 'here',
    });
    const ini = await readFile(iniFile, 'utf8');
    const listens = `listen[] = 127.0.0.1:0\nlisten[] = unix:${join(folder, 'w')}\n`;
    await writeFile(iniFile, ini.replace(/listen = .*\n/, listens));
    const served = await startServed(t, iniFile);
    const page = (): Promise<string> =>
      new Promise((resolve, reject) => {
        request({ socketPath: join(folder, 'w'), path: '/', agent: false }, (response) => {
          resolve(text(response));
        })
          .once('error', reject)
          .end();
      });
    assert.equal(await page(), 'here');
    for (let restart = 0; restart < 2; restart += 1) {
      const before = await serverPid(folder);
      assert.equal((await runWaymark(['restart', '--config', iniFile])).code, 0);
      await ended(before);
      assert.equal(await page(), 'here');
    }
    process.kill(await serverPid(folder), 'SIGTERM');
    await served.closed;
    await assert.rejects(page(), { code: 'ENOENT' });
  });
});

suite('under systemd', onLinux, () => {
  test('a server takes the sockets that are open, and reports its state', async (t) => {
    endServers(t, () => folder);
    const { folder, iniFile } = await serverFolder(t, '[disk.site]\nroot = site\n', {
      'site/index.html': 'here',
    });
    const socket = createServer().listen(0, '127.0.0.1');
    const unused = createServer().listen(0, '127.0.0.1');
    await Promise.all([once(socket, 'listening'), once(unused, 'listening')]);
    const { port } = socket.address() as AddressInfo;
    const ini = await readFile(iniFile, 'utf8');
    await writeFile(iniFile, ini.replace('127.0.0.1:0', `127.0.0.1:${port}`));
    const notify = join(folder, 'bin/systemd-notify');
    await writeFiles(folder, {
      'bin/systemd-notify': `#!/bin/sh\necho "$@" >> ${folder}/notified\n`,
      notified: '',
    });
    await chmod(notify, 0o755);
    const fdOf = (server: object): number =>
      (server as { readonly _handle: { readonly fd: number } })._handle.fd;
    const start = 'LISTEN_PID=$$ exec "$@"';
    const line = [process.execPath, program];
    const child = spawn('sh', ['-c', start, 'sh', ...line, 'serve', '--config', iniFile], {
      env: {
        ...process.env,
        PATH: `${join(folder, 'bin')}:${process.env.PATH ?? ''}`,
        LISTEN_FDS: '2',
        LISTEN_FDNAMES: 'web:spare',
        NOTIFY_SOCKET: '/run/none',
        WATCHDOG_USEC: '100000',
      },
      stdio: ['ignore', 'pipe', 'inherit', fdOf(socket), fdOf(unused)],
    });
    t.after(() => child.kill('SIGKILL'));
    let out = '';
    child.stdout?.on('data', (chunk: Buffer) => (out += chunk.toString()));
    // From now on, only the server has them.
    socket.close();
    unused.close();
    while (!out.includes('serves http')) await once(child.stdout ?? child, 'data');
    assert.match(out, /systemd has opened 127\.0\.0\.1:\d+ \(spare\), which no `listen`/);
    assert.equal(await (await fetch(`http://127.0.0.1:${port}/`)).text(), 'here');
    const notified = async (): Promise<string> => readFile(join(folder, 'notified'), 'utf8');
    while (!(await notified()).includes('WATCHDOG=1\nWATCHDOG=1')) await pause();
    assert.match(await notified(), new RegExp(`^MAINPID=${child.pid} READY=1\n`));
    // A restart passes the socket on, and names the new main process.
    assert.equal((await runWaymark(['restart', '--config', iniFile])).code, 0);
    const next = await serverPid(folder);
    assert.match(await notified(), new RegExp(`\nMAINPID=${next} READY=1\n`));
    assert.equal(await (await fetch(`http://127.0.0.1:${port}/`)).text(), 'here');
    process.kill(next, 'SIGTERM');
    await once(child, 'close');
    // A slow stop goes on telling systemd that the process is not stuck.
    assert.match(await notified(), /\nSTOPPING=1\n(?:WATCHDOG=1\n)*$/);
  });
});
