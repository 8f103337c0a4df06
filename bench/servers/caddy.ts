import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { startProcess, type Child } from '../processes.ts';
import { waitUntilReady } from '../probe.ts';
import type { BenchServer, Place } from './server.ts';

/**
 * Caddy with the defaults of file_server and reverse_proxy, and its access log (JSON, the default).
 */
export function caddy(
  program: string,
  { folder, port, core, source, tls }: Place,
  { root }: { readonly root: string },
): BenchServer {
  const url = `http://127.0.0.1:${port}`;
  const accessLog = join(folder, 'access.log');
  let child: Child | undefined;
  return {
    name: 'Caddy',
    // Without plugins it has no cache.
    except: '/kept/',
    async start() {
      const config = join(folder, 'Caddyfile');
      await writeFile(config, caddyfileText({ port, root, source, accessLog, tls }));
      const args = ['run', '--config', config, '--adapter', 'caddyfile'];
      const stderr = join(folder, 'stderr.log');
      child = startProcess(program, args, {
        core,
        stdout: stderr,
        stderr,
        env: { ...process.env, HOME: folder, XDG_DATA_HOME: folder, XDG_CONFIG_HOME: folder },
      });
      await waitUntilReady(`${url}/file/1k.html`, child);
      const tlsUrl = tls && `https://127.0.0.1:${tls.port}`;
      return { url, tlsUrl, pids: [child.pid], accessLog };
    },
    async stop() {
      await child?.stop();
    },
  };
}

/** Log rotation is off, because the measured process would compress the rotated file. */
function caddyfileText({
  port,
  root,
  source,
  accessLog,
  tls,
}: {
  readonly root: string;
  readonly accessLog: string;
} & Pick<Place, 'port' | 'source' | 'tls'>): string {
  const encrypted = tls && `:${tls.port} {\n\ttls ${tls.cert} ${tls.key}\n\timport site\n}\n`;
  return `{
	admin off
	auto_https off
}
(site) {
	bind 127.0.0.1
	root * ${root}
	log {
		output file ${accessLog} {
			roll_disabled
		}
	}
	encode /packed/* gzip
	reverse_proxy /fetched/* ${source}
	reverse_proxy /packed/* ${source}
	file_server
}
:${port} {
	import site
}
${encrypted ?? ''}`;
}
