import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { temporaryFolder, type Cleaning } from '../../folder.ts';
import { freePort } from '../../free-port.ts';
import { findNatsServer } from './nats-server.ts';

/** The text of a server's configuration that tests add. */
interface NatsOptions {
  readonly servers?: 1 | 3;
  /** Lines of the configuration of each server, such as users. */
  readonly config?: string;
  /** Without JetStream, if false. */
  readonly jetStream?: boolean;
  /** Called with the empty folder of each server, before it starts. */
  readonly prepare?: (folder: string, name: string) => Promise<void>;
}

/** A process of nats-server, which keeps its port and data when it starts again. */
export class NatsServer {
  readonly name: string;
  readonly port: number;
  readonly #file: string;
  #child: ChildProcess | undefined;

  constructor(name: string, port: number, file: string) {
    this.name = name;
    this.port = port;
    this.#file = file;
  }

  get url(): string {
    return `nats://127.0.0.1:${this.port}`;
  }

  /** The process that runs; undefined before the start. */
  get pid(): number | undefined {
    return this.#child?.pid;
  }

  /** Starts the server; resolves once it takes connections. */
  async start(): Promise<void> {
    const program = findNatsServer();
    if (program === undefined) throw new Error('there is no nats-server');
    const child = spawn(program, ['--config', this.#file], { stdio: ['ignore', 'ignore', 'pipe'] });
    this.#child = child;
    let log = '';
    await new Promise<void>((resolve, reject) => {
      child.stderr.on('data', (chunk: Buffer) => {
        // The log may be long: report its last lines only.
        log = (log + chunk.toString()).slice(-10_000);
        if (log.includes('Server is ready')) resolve();
      });
      child.once('exit', () => {
        reject(new Error(`nats-server has ended: ${log}`));
      });
    });
  }

  /** Kills the process (SIGKILL); resolves when it has ended. */
  async kill(): Promise<void> {
    const child = this.#child;
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    const exited = once(child, 'exit');
    child.kill('SIGKILL');
    await exited;
  }

  /** Stops the process without ending it (SIGSTOP). */
  freeze(): void {
    this.#child?.kill('SIGSTOP');
  }

  /** Lets a stopped process continue (SIGCONT). */
  thaw(): void {
    this.#child?.kill('SIGCONT');
  }
}

/** Starts one NATS server, or three that are a cluster, on free ports of the loopback. */
export async function startNats(
  t: Cleaning,
  { servers: count = 1, config = '', jetStream = true, prepare }: NatsOptions = {},
): Promise<readonly NatsServer[]> {
  const folder = await temporaryFolder(t);
  const ports: number[] = [];
  const routes: number[] = [];
  for (let n = 0; n < count; n += 1) {
    ports.push(await freePort());
    routes.push(await freePort());
  }
  const servers: NatsServer[] = [];
  for (const [at, port] of ports.entries()) {
    const name = `n${at + 1}`;
    const data = join(folder, name);
    await mkdir(data);
    await prepare?.(data, name);
    const storage = `jetstream { store_dir: "${data}", sync_interval: always, max_mem: 256M, max_file: 4G }`;
    const others = routes.map((route) => `"nats://127.0.0.1:${route}"`).join(', ');
    const cluster = `cluster { name: test, listen: "127.0.0.1:${routes[at]}", routes: [${others}] }`;
    const file = join(folder, `${name}.conf`);
    const lines = [
      `server_name: ${name}`,
      `listen: "127.0.0.1:${port}"`,
      ...(jetStream ? [storage] : []),
      ...(count > 1 ? [cluster] : []),
      config,
    ];
    await writeFile(file, `${lines.join('\n')}\n`);
    servers.push(new NatsServer(name, port, file));
  }
  t.after(() => Promise.all(servers.map((server) => server.kill())));
  await Promise.all(servers.map((server) => server.start()));
  return servers;
}

/** Repeats a call until it succeeds: some states of a cluster take seconds, such as an election. */
export async function until<T>(act: () => Promise<T>, timeoutMs = 60_000): Promise<T> {
  const started = performance.now();
  for (;;) {
    try {
      return await act();
    } catch (error) {
      if (performance.now() - started > timeoutMs) throw error;
      await delay(50);
    }
  }
}
