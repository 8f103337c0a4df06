import { spawn, type ChildProcess } from 'node:child_process';
import { createSocket } from 'node:dgram';
import { EventEmitter, once } from 'node:events';
import { accessSync, constants } from 'node:fs';
import { delimiter, join } from 'node:path';
import type { TestContext } from 'node:test';
import { temporaryFolder, writeFiles } from '../../folder.ts';
import { createAuthority } from '../../certificates.ts';
import { freePort } from '../../free-port.ts';

/** Why tests with Pebble are skipped; false if it is installed. */
export const withoutPebble: string | false = ['pebble', 'pebble-challtestsrv'].every(isInstalled)
  ? false
  : 'needs the ACME server pebble and pebble-challtestsrv on the PATH (Debian: apt-get install pebble)';

/** Pebble, an ACME server for tests, which expects every host on the loopback. */
export interface Pebble {
  readonly directory: string;
  /** PEM of the authority that has issued its own certificate. */
  readonly ca: string;
  /** Its output so far. */
  readonly output: () => string;
}

/**
 * Starts Pebble, which sends its challenges to these ports. It refuses 5 % of all nonces, its
 * default.
 */
export async function startPebble(
  t: TestContext,
  {
    httpPort,
    tlsPort,
    validitySeconds = 86_400 * 90,
    nameServer,
  }: {
    readonly httpPort: number;
    readonly tlsPort: number;
    readonly validitySeconds?: number;
    /** The name server that it asks, as `host:port`; by default, one that leads all hosts to here. */
    readonly nameServer?: string;
  },
): Promise<Pebble> {
  const folder = await temporaryFolder(t);
  const authority = await createAuthority();
  const { cert, key } = await authority.issue(['localhost', '127.0.0.1']);
  const [port, managementPort, challengePort, dnsPort] = [
    await freePort(),
    await freePort(),
    await freePort(),
    await freeDatagramPort(),
  ];
  await writeFiles(folder, {
    'cert.pem': cert,
    'key.pem': key,
    'config.json': JSON.stringify({
      pebble: {
        listenAddress: `127.0.0.1:${port}`,
        managementListenAddress: `127.0.0.1:${managementPort}`,
        certificate: join(folder, 'cert.pem'),
        privateKey: join(folder, 'key.pem'),
        httpPort,
        tlsPort,
        ocspResponderURL: '',
        externalAccountBindingRequired: false,
        domainBlocklist: ['blocked-domain.example'],
        certificateValidityPeriod: validitySeconds,
      },
    }),
  });
  const none = ['-http01', '', '-https01', '', '-tlsalpn01', ''];
  const names = ['-dns01', `127.0.0.1:${dnsPort}`, '-defaultIPv4', '127.0.0.1', '-defaultIPv6', ''];
  const dns = run(t, 'pebble-challtestsrv', [
    ...names,
    ...none,
    '-management',
    `127.0.0.1:${challengePort}`,
  ]);
  const pebble = run(t, 'pebble', [
    '-config',
    join(folder, 'config.json'),
    '-dnsserver',
    nameServer ?? `127.0.0.1:${dnsPort}`,
  ]);
  await dns.until(/Starting management server/);
  await pebble.until(/ACME directory available at/);
  return {
    directory: `https://127.0.0.1:${port}/dir`,
    ca: authority.cert,
    output: pebble.output,
  };
}

function run(t: TestContext, command: string, args: readonly string[]) {
  const child: ChildProcess = spawn(command, args, {
    env: { ...process.env, PEBBLE_VA_NOSLEEP: '1', PEBBLE_AUTHZREUSE: '0' },
  });
  t.after(() => child.kill('SIGKILL'));
  const news = new EventEmitter();
  let text = '';
  const more = (chunk: Buffer): void => {
    text += chunk.toString();
    news.emit('news');
  };
  child.stdout?.on('data', more);
  child.stderr?.on('data', more);
  child.once('exit', () => news.emit('news'));
  return {
    output: () => text,
    async until(pattern: RegExp): Promise<void> {
      while (!pattern.test(text)) {
        if (child.exitCode !== null) throw new Error(`${command} has ended:\n${text}`);
        await once(news, 'news');
      }
    },
  };
}

function isInstalled(command: string): boolean {
  return (process.env.PATH ?? '').split(delimiter).some((folder) => {
    try {
      accessSync(join(folder, command), constants.X_OK);
      return true;
    } catch {
      return false;
    }
  });
}

async function freeDatagramPort(): Promise<number> {
  const socket = createSocket('udp4').bind(0, '127.0.0.1');
  await once(socket, 'listening');
  const { port } = socket.address();
  await new Promise<void>((resolve) => {
    socket.close(resolve);
  });
  return port;
}
