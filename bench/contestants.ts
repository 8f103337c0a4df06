import type { Cores, Programs } from './machine.ts';
import type { Contestant } from './measure.ts';
import { isSocket, type Scenario } from './scenarios.ts';
import { freePorts } from './processes.ts';
import { caddy } from './servers/caddy.ts';
import { h2o } from './servers/h2o.ts';
import { nginx, nginxSource } from './servers/nginx.ts';
import { node } from './servers/node.ts';
import { nodeProxies, nodeProxy } from './servers/node-proxy.ts';
import type { BenchServer } from './servers/server.ts';
import { nodeSource } from './servers/source.ts';
import { waymark } from './servers/waymark.ts';
import { rulesFor, type Workspace } from './workspace.ts';

/** The servers of one run, not started. */
export interface Servers {
  /** The source of fetched pages. */
  readonly source: BenchServer;
  readonly contestants: readonly BenchServer[];
}

/** Prepares Waymark and the other servers that are installed, on free ports. */
export async function prepareServers(
  workspace: Workspace,
  {
    programs,
    cores,
    beside,
  }: {
    readonly programs: Programs;
    readonly cores: Cores;
    /** The folder of another clone of Waymark that is measured in the same run. */
    readonly beside?: string | undefined;
  },
): Promise<Servers> {
  const { folderFor, diskRoot, peerRoot, tlsFiles } = workspace;
  const [sourcePort = 0, ...ports] = await freePorts(13 + nodeProxies.length);
  const source = `http://127.0.0.1:${sourcePort}`;
  const pair = await tlsFiles();
  const place = async (name: string, port = 0, tlsPort?: number) => ({
    folder: await folderFor(name),
    port,
    tls: tlsPort === undefined ? undefined : { port: tlsPort, ...pair },
    core: cores.server,
    source,
  });
  const site = { root: diskRoot, rules: rulesFor(source) };
  const contestants = [waymark(await place('waymark', ports[0], ports.at(-1)), site)];
  if (beside !== undefined) {
    const its = await place('beside', ports.at(-4), ports.at(-3));
    contestants.push(waymark(its, { ...site, name: 'beside', clone: beside }));
  }
  if (programs.nginx !== undefined) {
    const its = await place('nginx', ports[1], ports.at(-2));
    contestants.push(nginx(programs.nginx, its, { root: peerRoot }));
  }
  if (programs.caddy !== undefined) {
    const its = await place('caddy', ports[2], ports.at(-7));
    contestants.push(caddy(programs.caddy, its, { root: peerRoot }));
  }
  if (programs.h2o !== undefined) {
    const its = await place('h2o', ports.at(-8), ports.at(-9));
    contestants.push(h2o(programs.h2o, its, { root: peerRoot }));
  }
  contestants.push(node(await place('node', ports.at(-5), ports.at(-6)), { root: peerRoot }));
  for (const [at, name] of nodeProxies.entries()) {
    contestants.push(nodeProxy(name, await place(name, ports[3 + at])));
  }
  return {
    source: await prepareSource(workspace, { programs, cores, port: sourcePort }),
    contestants,
  };
}

/** Prepares the source of fetched pages: nginx, or a server of Node without it. */
export async function prepareSource(
  { folderFor, sourceRoot }: Workspace,
  {
    programs,
    cores,
    port,
  }: { readonly programs: Programs; readonly cores: Cores; readonly port: number },
): Promise<BenchServer> {
  const place = { folder: await folderFor('source'), port, core: cores.load };
  return programs.nginx === undefined
    ? nodeSource(place)
    : nginxSource(programs.nginx, place, { root: sourceRoot });
}

/** Starts the source, then one after the other the contestants that a scenario measures. */
export async function startAll(
  { source, contestants }: Servers,
  scenarios: readonly Scenario[],
): Promise<readonly Contestant[]> {
  await source.start();
  const started: Contestant[] = [];
  for (const server of contestants) {
    if (!scenarios.some((scenario) => hasPath(server, scenario))) continue;
    const { name, below, except } = server;
    started.push({ name, below, except, server: await server.start() });
  }
  return started;
}

/** Whether a server has the path of a scenario; that of a websocket has each that has websockets. */
export function hasPath(
  { below = '/', except }: Pick<BenchServer, 'below' | 'except'>,
  { path, transport }: Scenario,
): boolean {
  if (isSocket(transport)) return true;
  return path.startsWith(below) && (except === undefined || !path.startsWith(except));
}

/** Whether a running server supports the protocol of a scenario. */
export function supportsTransport(
  { server }: Pick<Contestant, 'server'>,
  { transport = 'http' }: Scenario,
): boolean {
  if (isSocket(transport)) return server.sockets?.includes(transport) === true;
  return transport === 'http' || transport === 'connection' || server.tlsUrl !== undefined;
}

/**
 * Prepares servers of Waymark with empty data folders, not pinned to a core: as a user starts them.
 */
export async function freshWaymarks(
  count: number,
  { folderFor, diskRoot }: Workspace,
): Promise<readonly BenchServer[]> {
  const ports = await freePorts(count);
  return Promise.all(
    ports.map(async (port, at) =>
      waymark(
        { folder: await folderFor(`start-${at}`), port, core: undefined },
        { root: diskRoot, rules: [] },
      ),
    ),
  );
}
