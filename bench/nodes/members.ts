import { families } from '../../src/families.ts';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { newId, now } from '../../src/core/values/clock.ts';
import { openStore } from '../../src/core/log/open.ts';
import type { Store } from '../../src/core/log/store.ts';
import { freePorts } from '../processes.ts';
import { firstKey, waymark, type RuleFields } from '../servers/waymark.ts';
import type { Workspace } from '../workspace.ts';

/** A server of the benchmark. */
export interface Node {
  readonly url: string;
  readonly pid: number;
  /** Milliseconds from its start to its first response. */
  readonly startMs: number;
  stop(): Promise<void>;
}

/** Starts a server in a folder; `ini` has further sections, `rules` are inserted. */
export async function startNode(
  { diskRoot: root }: Workspace,
  folder: string,
  ini: string,
  rules: readonly RuleFields[] = [],
): Promise<Node> {
  const [port = 0] = await freePorts(1);
  const server = waymark({ folder, port, core: undefined }, { root, rules, ini });
  const started = performance.now();
  const { url, pids } = await server.start();
  const startMs = performance.now() - started;
  return { url, pid: pids[0] ?? 0, startMs, stop: () => server.stop() };
}

/** A centre that makes keys for nodes. */
export interface Centre extends Node {
  readonly apikey: string;
  readonly call: (name: string, v: object) => Promise<Record<string, unknown>>;
  /** Makes the key with which a node may follow. */
  readonly keyFor: (name: string) => Promise<string>;
}

/** Starts a centre whose log `fill` writes first. */
export async function startCentre(
  workspace: Workspace,
  name: string,
  fill: (store: Store) => Promise<void> = () => Promise.resolve(),
): Promise<Centre> {
  const folder = await workspace.folderFor(name);
  const data = join(folder, 'data');
  const first = await startNode(workspace, folder, '');
  const apikey = await firstKey(join(folder, 'stderr.log'));
  await first.stop();
  const store = await openStore({ families, folder: data, now, newId });
  await fill(store);
  await store.close();
  const node = await startNode(workspace, folder, '[node]\nrole = central\n');
  const call = (operation: string, v: object) => post(node.url, operation, v, apikey);
  return {
    ...node,
    apikey,
    call,
    async keyFor(of) {
      const { key } = await call('key/insert', { name: of, scopes: ['follow', 'event'], node: of });
      return String(key);
    },
  };
}

/** Starts a follower; resolves once it serves, that is, when its copy is complete. */
export async function startFollower(
  workspace: Workspace,
  centre: Centre,
  name: string,
  role: 'replica' | 'counter' = 'replica',
): Promise<Node> {
  const folder = await workspace.folderFor(name);
  await writeFile(join(folder, 'central.key'), await centre.keyFor(name));
  const node = `[node]\nrole = ${role}\nname = ${name}\ncentral = ${centre.url}\n`;
  return startNode(workspace, folder, `${node}key_file = central.key\n`);
}

/** Calls an operation; rejects if it fails. */
export async function post(
  url: string,
  operation: string,
  v: object,
  apikey: string,
): Promise<Record<string, unknown>> {
  const reply = await fetch(`${url}/svc1/${operation}`, {
    method: 'POST',
    headers: { apikey, 'content-type': 'application/json' },
    body: JSON.stringify({ v }),
  });
  const { data, error } = (await reply.json()) as Record<string, Record<string, unknown>>;
  if (data === undefined) throw new Error(`${operation}: ${JSON.stringify(error)}`);
  return data;
}
