import { spawn } from 'node:child_process';
import type { Log } from '../../core/report/log.ts';

type Environment = Readonly<Record<string, string | undefined>>;

/** Of the protocol of systemd's sd_listen_fds(3): the first descriptor that a service inherits. */
const firstDescriptor = 3;

/** Descriptors that systemd passes to this process, with the names of their socket units. */
interface PassedDescriptor {
  readonly fd: number;
  readonly name: string;
}

/**
 * The sockets that systemd has opened for this process (sd_listen_fds(3)); none if the variables
 * are for another process.
 */
export function passedDescriptors(env: Environment, pid: number): readonly PassedDescriptor[] {
  const { LISTEN_PID, LISTEN_FDS, LISTEN_FDNAMES = '' } = env;
  if (LISTEN_PID !== String(pid)) return [];
  const names = LISTEN_FDNAMES.split(':');
  const count = Number(LISTEN_FDS);
  if (!Number.isSafeInteger(count) || count < 0) return [];
  return Array.from({ length: count }, (_, at) => ({
    fd: firstDescriptor + at,
    name: names[at] ?? '',
  }));
}

/**
 * The service manager, systemd, if it has started this process with `Type=notify` (sd_notify(3)).
 * Node.js has no datagram sockets of the unix domain: systemd's own program `systemd-notify` sends
 * the messages, so the unit needs `NotifyAccess=all`.
 */
export class ServiceManager {
  readonly #isPresent: boolean;
  readonly #watchdogMs: number | undefined;
  readonly #log: Log;
  #watchdog: NodeJS.Timeout | undefined;
  #sent: Promise<void> = Promise.resolve();

  constructor(env: Environment, log: Log) {
    this.#isPresent = env.NOTIFY_SOCKET !== undefined;
    const watchdogUs = Number(env.WATCHDOG_USEC);
    this.#watchdogMs = watchdogUs > 0 ? watchdogUs / 1000 : undefined;
    this.#log = log;
  }

  /** Says that this process is the service now, and serves. Resolves when the manager knows it. */
  async ready(): Promise<void> {
    await this.#send(`MAINPID=${process.pid}`, 'READY=1');
    if (!this.#isPresent || this.#watchdogMs === undefined) return;
    this.#watchdog = setInterval(() => void this.#send('WATCHDOG=1'), this.#watchdogMs / 2);
    this.#watchdog.unref();
  }

  /** Says that this process stops. */
  async stopping(): Promise<void> {
    this.leave();
    await this.#send('STOPPING=1');
  }

  /** Sends nothing more: another process is the service. */
  leave(): void {
    clearInterval(this.#watchdog);
  }

  #send(...messages: readonly string[]): Promise<void> {
    if (!this.#isPresent) return this.#sent;
    this.#sent = this.#sent
      .then(() => notify(messages))
      .catch((error: unknown) => {
        this.leave();
        this.#log.error(
          { err: error },
          'Cannot notify systemd by systemd-notify. Set Type=exec in the unit if it is not there.',
        );
      });
    return this.#sent;
  }
}

function notify(messages: readonly string[]): Promise<void> {
  return new Promise((resolve, reject) => {
    const child = spawn('systemd-notify', messages, { stdio: ['ignore', 'ignore', 'inherit'] });
    child.once('error', reject).once('exit', (code) => {
      if (code === 0) resolve();
      else reject(new Error(`systemd-notify ended with exit code ${code ?? ''}`));
    });
  });
}
