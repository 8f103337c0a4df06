import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { startProcess, type Child } from '../processes.ts';
import { childPids } from '../proc.ts';
import { waitUntilReady } from '../probe.ts';
import type { BenchServer, Place, TlsPlace } from './server.ts';

const thisClone = fileURLToPath(new URL('../../', import.meta.url));

/** A page rule that is inserted before the measurement. */
export type RuleFields = Readonly<Record<string, unknown>>;

/**
 * Waymark from this clone, or from the one in `clone`: with a disk mount at `/`, an access log, and
 * `rules` that are inserted through its API.
 */
export function waymark(
  { folder, port, core, tls }: Omit<Place, 'source'>,
  {
    root,
    rules,
    workers = 1,
    ini = '',
    name = 'Waymark',
    clone = thisClone,
  }: {
    readonly root: string;
    readonly rules: readonly RuleFields[];
    /** Worker processes; with several, one more process leads them. */
    readonly workers?: number;
    /** Further sections of the ini file. */
    readonly ini?: string;
    readonly name?: string;
    /** The folder of another clone of Waymark, whose program runs. */
    readonly clone?: string;
  },
): BenchServer {
  const url = `http://127.0.0.1:${port}`;
  const accessLog = join(folder, 'access.log');
  let child: Child | undefined;
  return {
    name,
    async start() {
      const config = join(folder, 'server.ini');
      const stderr = join(folder, 'stderr.log');
      await writeFile(
        config,
        iniText({ port, tls, data: join(folder, 'data'), root, workers }) + ini,
      );
      const args = [join(clone, 'bin/waymark.js'), 'serve', '--config', config];
      child = startProcess(process.execPath, args, { core, stdout: accessLog, stderr });
      await waitUntilReady(`${url}/svc1/health`, child);
      if (rules.length > 0) await insertAll(url, await firstKey(stderr), rules);
      const tlsUrl = tls && `https://127.0.0.1:${tls.port}`;
      return {
        url,
        tlsUrl,
        sockets: ['socket', 'h2-socket'],
        pids: [child.pid, ...(await workersOf(child.pid, workers))],
        accessLog,
      };
    },
    async stop() {
      await child?.stop();
    },
  };
}

function iniText({
  port,
  tls,
  data,
  root,
  workers,
}: {
  readonly port: number;
  readonly tls: TlsPlace | undefined;
  readonly data: string;
  readonly root: string;
  readonly workers: number;
}): string {
  return `[server]
listen[] = 127.0.0.1:${port}
${tls === undefined ? '' : `listen[] = https://127.0.0.1:${tls.port}\n`}data = ${data}
workers = ${workers}
${tls === undefined ? '' : `[tls]\ncert = ${tls.cert}\nkey = ${tls.key}\nhttp_redirect = no\n`}[disk.site]
root = ${root}
[fetch]
allow_private = 127.0.0.0/8
[log]
format = json
access = yes
`;
}

const workersTimeoutMs = 10_000;

/**
 * The worker processes of a leader, once all run; when the first serves, others may still start.
 */
async function workersOf(leader: number, workers: number): Promise<readonly number[]> {
  if (workers === 1) return [];
  const deadline = performance.now() + workersTimeoutMs;
  while (performance.now() < deadline) {
    const pids = await childPids(leader);
    if (pids.length === workers) return pids;
    await wait(5);
  }
  throw new Error(`Waymark has not started ${workers} workers`);
}

const keyTimeoutMs = 5_000;

/**
 * The admin key of a first start on an empty data folder: standard error names the file with it; in
 * older clones, it contains the key itself.
 */
export async function firstKey(stderrFile: string): Promise<string> {
  const deadline = performance.now() + keyTimeoutMs;
  while (performance.now() < deadline) {
    const said = await readFile(stderrFile, 'utf8');
    const file = /^ {4}(.*admin-key)\n/m.exec(said)?.[1];
    if (file !== undefined) return (await readFile(file, 'utf8')).trim();
    const key = /^ {4}(wmk_.*)\n/m.exec(said)?.[1];
    if (key !== undefined) return key;
    await wait(5);
  }
  throw new Error('Waymark named no file of an admin key at its first start');
}

async function insertAll(url: string, key: string, rules: readonly RuleFields[]): Promise<void> {
  for (const v of rules) {
    const answer = await fetch(`${url}/svc1/userinterface/insert`, {
      method: 'POST',
      headers: { apikey: key, 'content-type': 'application/json' },
      body: JSON.stringify({ v }),
    });
    const text = await answer.text();
    if (!answer.ok) throw new Error(`Waymark refused a rule: ${answer.status} ${text}`);
  }
}
