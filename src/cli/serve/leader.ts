import cluster from 'node:cluster';
import { on } from 'node:events';
import type { Config, ConfigResult } from '../../core/config/config.ts';
import type { IniSection } from '../../core/config/ini-section.ts';
import { sectionsOfModules } from '../../core/config/module-sections.ts';
import { endAtOnce } from './end-at-once.ts';
import { iniSections } from '../../sections.ts';
import { deserializeConfig, type LeaderMessage, type WorkerMessage } from './worker-messages.ts';
import { stoppingFailure } from '../../core/values/failure.ts';
import type { ListeningSocket } from './inherited-sockets.ts';
import { TicketKey } from '../../core/server/tls/ticket-key.ts';

/**
 * A worker's channel to the leading process. Only that process reads the ini file, so that workers
 * cannot read different versions of it.
 */
export class LeaderChannel {
  /** Queues messages until they are read. */
  readonly #messages = on(process, 'message', { close: ['disconnect'] }) as AsyncIterator<
    [LeaderMessage],
    undefined
  >;
  /** The key of session tickets that all workers have; known with the configuration. */
  readonly ticketKey = new TicketKey();
  /** The kinds of section of the ini file, and those of the modules that it names. */
  #sections: readonly IniSection[] = iniSections;
  #isClosed = false;

  constructor() {
    process.on('message', (message: LeaderMessage) => {
      if (message.kind === 'ticket-key') this.ticketKey.replace(Buffer.from(message.key, 'base64'));
    });
    // A message to a process that has just ended is lost; `disconnect` reports its end.
    cluster.worker?.on('error', () => undefined);
    // Without the leading process, Node calls `process.exit`.
    cluster.worker?.once('disconnect', () => {
      if (!this.#isClosed) endAtOnce();
    });
  }

  /** Closes the channel, which would keep the process running. */
  close(): void {
    this.#isClosed = true;
    if (process.connected) process.disconnect?.();
  }

  /** Listening sockets that the leading process has inherited; known with the configuration. */
  sockets: readonly ListeningSocket[] = [];

  /**
   * Requests the configuration in use, which may differ from the current ini file. Rejects with
   * `unavailable` if the leading process has ended.
   */
  async config(): Promise<Config> {
    sendToLeader({ kind: 'get-config' });
    for await (const message of this.#received()) {
      if (message.kind !== 'config') continue;
      this.sockets = message.sockets;
      const { serialized } = message;
      const modules = await sectionsOfModules(deserializeConfig(serialized, iniSections));
      this.#sections = [...iniSections, ...modules];
      return deserializeConfig(serialized, this.#sections);
    }
    throw stoppingFailure();
  }

  /** The results of reading the ini file since the configuration was received, until `end`. */
  async *results(): AsyncGenerator<ConfigResult, void, undefined> {
    for await (const message of this.#received()) {
      if (message.kind === 'reload') yield deserializeConfig(message.serialized, this.#sections);
    }
  }

  /** Stops receiving. */
  async end(): Promise<void> {
    await this.#messages.return?.();
  }

  /** The messages; a loop that ends leaves further messages to the next loop. */
  async *#received(): AsyncGenerator<LeaderMessage, void, undefined> {
    for (;;) {
      // Node reports a lost message as an error of the process, which means that it has ended.
      const next = await this.#messages.next().catch(() => undefined);
      if (next === undefined || next.done === true) return;
      yield next.value[0];
    }
  }
}

/** Sends a message to the leading process, if it still runs. */
export function sendToLeader(message: WorkerMessage): void {
  if (process.connected) process.send?.(message);
}
