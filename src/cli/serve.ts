import type { ConfigResult } from '../config/config.ts';
import { configResults } from '../config/watch.ts';
import { startWaymark, version, type Waymark } from '../main.ts';
import { stopGraceMs } from '../model/limits.ts';
import { createLogs, type Logs } from '../observe/log.ts';
import type { Command, Terminal } from './command.ts';
import { configOption, parseWords, requireConfig, requireNoMore } from './options.ts';

/** `waymark serve`: runs the server until a signal ends it, and follows changes of the ini file. */
export const serve: Command = {
  usage: 'serve [--config FILE]',
  summary: 'serve the site; changes of the ini file are taken over while it runs',
  async run(words, terminal) {
    const { values, positionals } = parseWords(words, configOption);
    requireNoMore(positionals);
    const config = await requireConfig(values.config, terminal);
    const { out } = terminal;
    const logs = createLogs({
      settings: config.log,
      destination: out,
      colour: out.isTTY && terminal.env.NO_COLOR === undefined,
      now: Date.now,
    });
    // Whoever read the log has gone; the site goes on.
    out.on('error', () => undefined);
    const signals = listenToSignals(logs);
    const waymark = await startWaymark(config, logs);
    greet(waymark, { base: config.server.base, terminal, logs });
    const ended = new AbortController();
    const following = follow(values.config, {
      current: { ok: true, config },
      waymark,
      terminal,
      logs,
      signal: ended.signal,
    });
    await signals.first;
    logs.log.info({}, `Stopping: requests in flight have ${stopGraceMs / 1000} seconds.`);
    ended.abort();
    const { cut } = await waymark.stop(stopGraceMs);
    await following;
    signals.ignore();
    logs.log.info(
      {},
      cut === 0 ? 'Stopped, nothing was cut off.' : `Stopped; ${cut} were cut off.`,
    );
    return 0;
  },
};

async function follow(
  file: string,
  {
    current,
    waymark,
    terminal,
    logs,
    signal,
  }: {
    readonly current: ConfigResult;
    readonly waymark: Waymark;
    readonly terminal: Terminal;
    readonly logs: Logs;
    readonly signal: AbortSignal;
  },
): Promise<void> {
  const read = () => terminal.readConfig(file);
  try {
    for await (const result of configResults({ file, current, read, signal }))
      waymark.reload(result);
  } catch (error) {
    logs.log.error({ err: error }, 'The ini file is no longer watched; restart to read it again.');
  }
}

/** The first SIGTERM or SIGINT ends gracefully, a second one at once. */
function listenToSignals(logs: Logs): { readonly first: Promise<unknown>; ignore(): void } {
  const names = ['SIGTERM', 'SIGINT'] as const;
  const again = (): never => {
    logs.access.flush();
    process.exit(1);
  };
  const first = new Promise<void>((resolve) => {
    for (const name of names) process.once(name, resolve);
  }).then(() => {
    for (const name of names) process.removeAllListeners(name).on(name, again);
  });
  return {
    first,
    ignore() {
      for (const name of names) process.off(name, again);
    },
  };
}

function greet(
  { addresses, firstKey }: Waymark,
  {
    base,
    terminal,
    logs,
  }: { readonly base: string; readonly terminal: Terminal; readonly logs: Logs },
): void {
  logs.log.info({ pid: process.pid }, `Waymark ${version} serves ${addresses.join(' and ')}`);
  if (firstKey === undefined) return;
  const url = addresses.find((address) => address.startsWith('http')) ?? 'http://localhost';
  // In one piece, so that nobody sees half of it.
  terminal.err.write(`
  This is the first start: here is your admin key. It is shown only this once.

    ${firstKey}

  Try it:
    curl -H 'apikey: ${firstKey}' ${url}${base}/svc1/server/status

`);
}
