import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { startProcess, type Child } from '../processes.ts';
import { childPids } from '../proc.ts';
import { waitUntilReady } from '../probe.ts';
import type { BenchServer, Place } from './server.ts';

/**
 * Nginx as in Debian's nginx.conf, except for its workers: sendfile and gzip on, open_file_cache
 * off, access log on.
 */
export function nginx(
  program: string,
  place: Place,
  {
    root,
    workers = 1,
    workerConnections,
  }: {
    readonly root: string;
    /** Worker processes; one more process leads them. */
    readonly workers?: number;
    /** Connections at a time; Debian's default if undefined. */
    readonly workerConnections?: number;
  },
): BenchServer {
  const accessLog = join(place.folder, 'access.log');
  return nginxServer(program, place, {
    name: 'nginx',
    accessLog,
    ready: '/file/1k.html',
    workers,
    ...(workerConnections !== undefined && { workerConnections }),
    http: `
  access_log ${accessLog};
  proxy_cache_path ${join(place.folder, 'kept')} keys_zone=kept:10m;
  upstream source { server ${new URL(place.source).host}; keepalive 64; }
  server {
    listen 127.0.0.1:${place.port};
    ${tlsText(place.tls)}
    root ${root};
    proxy_http_version 1.1;
    proxy_set_header Connection "";
    gzip on;
    location /fetched/ { proxy_pass http://source; }
    location /packed/ { proxy_pass http://source; }
    location /kept/ { proxy_pass http://source; proxy_cache kept; }
  }`,
  });
}

/**
 * Nginx as the source of fetched pages: it sends `/fetched/` and `/kept/` from the page cache and
 * writes no log.
 */
export function nginxSource(
  program: string,
  place: Omit<Place, 'source'>,
  { root }: { readonly root: string },
): BenchServer {
  return nginxServer(program, place, {
    name: 'source (nginx)',
    accessLog: '/dev/null',
    ready: '/fetched/1k.html',
    workers: 1,
    http: `
  access_log off;
  keepalive_requests 1000000000;
  open_file_cache max=16;
  server {
    listen 127.0.0.1:${place.port};
    root ${root};
    location /fetched/ { add_header Cache-Control no-store; }
    location /packed/ { add_header Cache-Control no-store; }
    location /kept/ { add_header Cache-Control max-age=3600; }
  }`,
  });
}

function nginxServer(
  program: string,
  { folder, port, core, tls }: Omit<Place, 'source'>,
  {
    name,
    accessLog,
    ready,
    workers,
    workerConnections = 768,
    http,
  }: {
    readonly name: string;
    readonly accessLog: string;
    readonly ready: string;
    readonly workers: number;
    readonly workerConnections?: number;
    readonly http: string;
  },
): BenchServer {
  const url = `http://127.0.0.1:${port}`;
  let child: Child | undefined;
  return {
    name,
    async start() {
      const config = join(folder, 'nginx.conf');
      const errors = join(folder, 'error.log');
      await writeFile(config, configText({ folder, errors, workers, workerConnections, http }));
      const args = ['-p', folder, '-e', errors, '-c', config];
      const stderr = join(folder, 'stderr.log');
      child = startProcess(program, args, { core, stdout: stderr, stderr });
      await waitUntilReady(`${url}${ready}`, child);
      const tlsUrl = tls && `https://127.0.0.1:${tls.port}`;
      return {
        url,
        tlsUrl,
        pids: [child.pid, ...(await workersOf(child.pid, workers))],
        accessLog,
      };
    },
    async stop() {
      await child?.stop();
    },
  };
}

/** The same server over TLS, also with HTTP/2. */
function tlsText(tls: Place['tls']): string {
  if (tls === undefined) return '';
  return (
    `listen 127.0.0.1:${tls.port} ssl http2; ` +
    `ssl_certificate ${tls.cert}; ssl_certificate_key ${tls.key}; ` +
    'keepalive_requests 1000000000;'
  );
}

/**
 * The worker processes of nginx, once all have their final title. The cache has other processes,
 * one of which ends by itself.
 */
async function workersOf(leader: number, workers: number): Promise<readonly number[]> {
  let pids: number[] = [];
  while (pids.length < workers) {
    pids = [];
    for (const pid of await childPids(leader)) {
      const title = await readFile(`/proc/${pid}/cmdline`, 'utf8');
      if (title.includes('worker process')) pids.push(pid);
    }
  }
  return pids;
}

function configText({
  folder,
  errors,
  workers,
  workerConnections,
  http,
}: {
  readonly folder: string;
  readonly errors: string;
  readonly workers: number;
  readonly workerConnections: number;
  readonly http: string;
}): string {
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi']
    .map((name) => `  ${name}_temp_path ${join(folder, name)};`)
    .join('\n');
  // If it runs as root, its workers run as another user, which may not read the temporary
  // folder.
  const user = process.getuid?.() === 0 ? 'user root;' : '';
  return `${user}
daemon off;
worker_processes ${workers};
pid ${join(folder, 'nginx.pid')};
error_log ${errors};
events { worker_connections ${workerConnections}; }
http {
  sendfile on;
  tcp_nopush on;
  types { text/html htm html; }
${temporary}${http}
}
`;
}
