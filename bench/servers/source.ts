import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { smallBytes } from '../scenarios.ts';
import { startProcess, type Child } from '../processes.ts';
import { waitUntilReady } from '../probe.ts';
import type { BenchServer, Place } from './server.ts';

const program = fileURLToPath(new URL('./source-process.ts', import.meta.url));

/** A bare Node server as the source of fetched pages, for machines without nginx. */
export function nodeSource({ folder, port, core }: Omit<Place, 'source'>): BenchServer {
  const url = `http://127.0.0.1:${port}`;
  let child: Child | undefined;
  return {
    name: 'source (Node)',
    async start() {
      const stderr = join(folder, 'stderr.log');
      const args = [program, String(port), String(smallBytes)];
      child = startProcess(process.execPath, args, { core, stdout: stderr, stderr });
      await waitUntilReady(`${url}/fetched/1k.html`, child);
      return { url, pids: [child.pid], accessLog: '/dev/null' };
    },
    async stop() {
      await child?.stop();
    },
  };
}
