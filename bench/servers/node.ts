import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { startProcess, type Child } from '../processes.ts';
import { waitUntilReady } from '../probe.ts';
import type { BenchServer, Place } from './server.ts';

const path = '/file/1k.html';

/**
 * Bare Node: `http.createServer`, and over TLS `http2.createSecureServer`, with the file of 1 KB in
 * memory and the access log of the proxies; and the package `ws`, which sends each message back. It
 * shows what Node itself costs.
 */
export function node(
  { folder, port, core, tls }: Omit<Place, 'source'>,
  { root }: { readonly root: string },
): BenchServer {
  const url = `http://127.0.0.1:${port}`;
  const program = fileURLToPath(new URL('./node-process.ts', import.meta.url));
  const accessLog = join(folder, 'access.log');
  let child: Child | undefined;
  return {
    name: 'node',
    below: path,
    async start() {
      const stderr = join(folder, 'stderr.log');
      const secure = tls === undefined ? [] : [String(tls.port), tls.cert, tls.key];
      const args = [program, String(port), join(root, path), ...secure];
      child = startProcess(process.execPath, args, { core, stdout: accessLog, stderr });
      await waitUntilReady(`${url}${path}`, child);
      const tlsUrl = tls && `https://127.0.0.1:${tls.port}`;
      return { url, tlsUrl, sockets: ['socket'], pids: [child.pid], accessLog };
    },
    async stop() {
      await child?.stop();
    },
  };
}
