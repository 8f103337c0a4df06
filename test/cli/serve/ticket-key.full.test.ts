import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { createAuthority } from '../../certificates.ts';
import { serverFolder, startServed, workersOf, type Served } from '../../process.ts';
import { tlsVersions, visit } from '../../core/server/tls/sessions.ts';

const onLinux = { skip: process.platform !== 'linux' && 'needs /proc' };
const workers =
  'listen[] = https://127.0.0.1:0\nworkers = 2\n' +
  '[tls]\ncert = c.pem\nkey = k.pem\nhttp_redirect = no\n';

/** Starts two workers with a certificate; resolves to the port of TLS, too. */
async function startWorkers(t: Parameters<typeof startServed>[0]) {
  const authority = await createAuthority();
  const { cert, key } = await authority.issue(['localhost']);
  const { folder, iniFile } = await serverFolder(t, workers, { 'c.pem': cert, 'k.pem': key });
  const served = await startServed(t, iniFile);
  const port = Number(/https:\/\/localhost:(\d+)/.exec(served.out())?.[1]);
  return { authority, folder, served, port };
}

/** Begins a session of each version, and continues it at all workers. */
async function checkSessions(port: number): Promise<void> {
  for (const version of tlsVersions) {
    const { session } = await visit(version, { port });
    // The workers get the connections in turn.
    for (let count = 0; count < 6; count += 1) {
      const { isReused } = await visit(version, { port, session });
      assert.equal(isReused, true, `${version}, connection ${count}`);
    }
  }
}

/** Resolves once the metrics include both workers, and so the one that replaces `ended`. */
async function untilBothServe(served: Served, ended: number): Promise<void> {
  for (;;) {
    const isGone = !workersOf(served).includes(ended);
    const headers = { connection: 'close' };
    // The worker that ends may still have the connection.
    const reply = await fetch(`${served.url}/svc1/metrics`, { headers }).catch(() => undefined);
    const metrics = (await reply?.text().catch(() => undefined)) ?? '';
    const found = metrics.matchAll(/^process_resident_memory_bytes\{process="(.*)"\}/gm);
    if (isGone && [...found].length === 2) return;
  }
}

/** Resolves once a new certificate is in use by the worker that logs it. */
async function untilRead({ out, child }: Served): Promise<void> {
  while (!out().includes('[tls] was read again')) {
    await new Promise((resolve) => child.stdout?.once('data', resolve));
  }
}

test(
  'workers continue the sessions of each other, with new certificates, too',
  onLinux,
  async (t) => {
    const { authority, folder, served, port } = await startWorkers(t);
    await checkSessions(port);
    const renewed = await authority.issue(['localhost']);
    await writeFile(join(folder, 'k.pem'), renewed.key);
    await writeFile(join(folder, 'c.pem'), renewed.cert);
    await untilRead(served);
    await checkSessions(port);
    const [ended = 0] = workersOf(served);
    process.kill(ended, 'SIGKILL');
    await untilBothServe(served, ended);
    await checkSessions(port);
  },
);
