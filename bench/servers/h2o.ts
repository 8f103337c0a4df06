import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { startProcess, type Child } from '../processes.ts';
import { waitUntilReady } from '../probe.ts';
import type { BenchServer, Place } from './server.ts';

/** H2O with one thread, its defaults for files, and its access log. It has files only. */
export function h2o(
  program: string,
  { folder, port, core, tls }: Omit<Place, 'source'>,
  { root }: { readonly root: string },
): BenchServer {
  const url = `http://127.0.0.1:${port}`;
  const accessLog = join(folder, 'access.log');
  let child: Child | undefined;
  return {
    name: 'h2o',
    below: '/file/',
    async start() {
      const config = join(folder, 'h2o.conf');
      const encrypted =
        tls === undefined
          ? []
          : [
              'listen:',
              '  host: 127.0.0.1',
              `  port: ${tls.port}`,
              '  ssl:',
              `    certificate-file: ${tls.cert}`,
              `    key-file: ${tls.key}`,
            ];
      const lines = [
        ...['listen:', '  host: 127.0.0.1', `  port: ${port}`],
        ...encrypted,
        ...['num-threads: 1', `access-log: ${accessLog}`],
        // Otherwise, root changes to a user that may not read the folder.
        ...(process.getuid?.() === 0 ? ['user: root'] : []),
        ...['hosts:', '  default:', '    paths:', '      /:', `        file.dir: ${root}`],
      ];
      await writeFile(config, `${lines.join('\n')}\n`);
      const stderr = join(folder, 'stderr.log');
      child = startProcess(program, ['-c', config], { core, stdout: stderr, stderr });
      await waitUntilReady(`${url}/file/1k.html`, child);
      const tlsUrl = tls && `https://127.0.0.1:${tls.port}`;
      return { url, tlsUrl, pids: [child.pid], accessLog };
    },
    async stop() {
      await child?.stop();
    },
  };
}
