import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { startProcess, type Child } from '../processes.ts';
import { waitUntilReady } from '../probe.ts';
import type { BenchServer, Place } from './server.ts';

/** Proxies for Node, by the names of their packages; each is a program in `proxies/`. */
export const nodeProxies = ['http-proxy', 'httpxy', 'reply-from'] as const;

/**
 * A proxy in a Node process, started without options: it forwards requests below `/fetched/`, has
 * no files, and writes an access log like Waymark's.
 */
export function nodeProxy(
  name: (typeof nodeProxies)[number],
  { folder, port, core, source }: Place,
): BenchServer {
  const url = `http://127.0.0.1:${port}`;
  const program = fileURLToPath(new URL(`./proxies/${name}.ts`, import.meta.url));
  const accessLog = join(folder, 'access.log');
  let child: Child | undefined;
  return {
    name,
    below: '/fetched/',
    async start() {
      const stderr = join(folder, 'stderr.log');
      const args = [program, String(port), source];
      child = startProcess(process.execPath, args, { core, stdout: accessLog, stderr });
      await waitUntilReady(`${url}/fetched/1k.html`, child);
      return { url, pids: [child.pid], accessLog };
    },
    async stop() {
      await child?.stop();
    },
  };
}
