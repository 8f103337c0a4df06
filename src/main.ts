import { randomBytes } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { uuidv7 } from 'uuidv7';
import packageJson from '../package.json' with { type: 'json' };
import { compose, engineNames, type Composition, type Foundation } from './compose.ts';
import type { Config, ConfigProblem, ConfigResult } from './config/config.ts';
import { restartNeeded } from './config/restart.ts';
import { requireServed, unserved } from './config/unserved.ts';
import { Failure } from './model/failure.ts';
import { accessFlushMs } from './model/limits.ts';
import type { Logs } from './observe/log.ts';
import { startServer, type Server } from './server/server.ts';
import { loadPublicFiles, type PublicFiles } from './site/public.ts';
import { rememberRules } from './site/rules.ts';
import { createStoredPages } from './site/stored.ts';
import { claimFolder, type FolderClaim } from './store/lock.ts';
import { openStore } from './store/open.ts';
import type { Store } from './store/store.ts';
import { createWrongKeys } from './svc1/authenticate.ts';
import { importRules } from './svc1/import.ts';
import { addKey } from './svc1/keys.ts';
import type { ConfigurationState } from './svc1/server-status.ts';

/** Waymark's version, as its package says it. */
export const version = packageJson.version;

/** A running Waymark. */
export interface Waymark {
  /** Where it can be reached, one URL a listener. */
  readonly addresses: readonly string[];
  /** The admin key that was made because there was none: nothing can show it again. */
  readonly firstKey: string | undefined;
  /**
   * Takes over a configuration that was read again: the next request sees it, those under way keep
   * theirs. A broken one changes nothing but what server.status says.
   */
  reload(result: ConfigResult): void;
  /** Ends requests in flight, or cuts them after the grace; resolves to how many were cut. */
  stop(graceMs: number): Promise<{ readonly cut: number }>;
}

const publicFolder = fileURLToPath(new URL('../public', import.meta.url));

/**
 * Opens the store of a data folder, for the server or for a command that works on the folder
 * itself.
 */
export function openData(folder: string): Promise<Store> {
  return openStore({ folder, now: Date.now, newId: uuidv7 });
}

/**
 * Starts serving. Rejects with a Failure of one clear line: the data folder is in use, locked or
 * foreign, a port is taken, the rules to import have mistakes. Nothing is left open then.
 */
export async function startWaymark(config: Config, logs: Logs): Promise<Waymark> {
  requireServed(config);
  warnOfUnserved(config, logs);
  const publicFiles = await loadPublicFiles(publicFolder);
  const claim = await claimFolder(config.server.data, { pid: process.pid });
  const opened: (() => Promise<unknown>)[] = [() => claim.release()];
  try {
    const store = await openData(config.server.data);
    opened.unshift(() => store.close());
    await importOnce(store, config, logs);
    const firstKey = await makeFirstKey(store);
    const running = new Running({ config, logs, store, publicFiles, claim });
    opened.unshift(() => running.closeComposition());
    await running.listen();
    return Object.assign(running, { firstKey });
  } catch (error) {
    for (const close of opened) await close();
    throw error;
  }
}

class Running {
  readonly #foundation: Foundation;
  readonly #claim: FolderClaim;
  readonly #flushing: NodeJS.Timeout;
  #composition: Composition;
  #server: Server | undefined;
  #since = new Date().toISOString();
  #restartNeeded: readonly string[] = [];
  #problems: readonly ConfigProblem[] = [];

  constructor({
    config,
    logs,
    store,
    publicFiles,
    claim,
  }: {
    readonly config: Config;
    readonly logs: Logs;
    readonly store: Store;
    readonly publicFiles: PublicFiles;
    readonly claim: FolderClaim;
  }) {
    this.#claim = claim;
    this.#foundation = {
      store,
      logs,
      publicFiles,
      rules: rememberRules(store),
      storedPages: createStoredPages(),
      wrongKeys: createWrongKeys({ now: Date.now }),
      version,
      status: () => this.#configurationState(),
      started: this.#since,
    };
    this.#composition = compose(config, this.#foundation);
    this.#flushing = setInterval(() => {
      logs.access.flush();
    }, accessFlushMs);
    this.#flushing.unref();
  }

  get addresses(): readonly string[] {
    return this.#server?.addresses ?? [];
  }

  async listen(): Promise<void> {
    const { log, access } = this.#foundation.logs;
    this.#server = await startServer(
      {
        serving: () => this.#composition.serving,
        log,
        access,
        newId: uuidv7,
        monotonicMs: () => performance.now(),
      },
      this.#composition.serving.config.server.listen,
    );
  }

  reload(result: ConfigResult): void {
    const { log } = this.#foundation.logs;
    if (!result.ok) {
      this.#problems = result.problems;
      for (const { line, message } of result.problems) {
        log.error({ line }, `The changed ini file is not used: ${message}`);
      }
      return;
    }
    const before = this.#composition;
    const { config } = before.serving;
    this.#restartNeeded = restartNeeded(config, result.config);
    this.#problems = [];
    this.#since = new Date().toISOString();
    // What needs a restart stays as it is, so that each later reload is held against what is in
    // force.
    const { listen, data, workers, import: imported } = config.server;
    const next = {
      ...result.config,
      server: { ...result.config.server, listen, data, workers, import: imported },
      tls: config.tls,
    };
    this.#composition = compose(next, this.#foundation);
    this.#foundation.logs.configure(next.log);
    log.info({}, 'The changed ini file is in force.');
    for (const name of this.#restartNeeded) log.warn({}, `${name} has changed: restart to use it.`);
    warnOfUnserved(result.config, this.#foundation.logs);
    before.close().catch((error: unknown) => {
      log.error({ err: error }, 'closing the former configuration failed');
    });
  }

  async stop(graceMs: number): Promise<{ readonly cut: number }> {
    const { logs, store } = this.#foundation;
    const { cut } = (await this.#server?.stop(graceMs)) ?? { cut: 0 };
    clearInterval(this.#flushing);
    await this.closeComposition();
    await store.close();
    await this.#claim.release();
    logs.access.flush();
    return { cut };
  }

  async closeComposition(): Promise<void> {
    clearInterval(this.#flushing);
    await this.#composition.close();
  }

  #configurationState(): ConfigurationState {
    return {
      since: this.#since,
      state: this.#problems.length > 0 ? 'broken' : 'current',
      restart_needed: this.#restartNeeded,
      problems: this.#problems.map(({ line, message }) => ({ line, message })),
    };
  }
}

function warnOfUnserved(config: Config, { log }: Logs): void {
  for (const name of unserved(config)) log.warn({}, `${name} has no effect in this version.`);
}

/** `[server] import`: rules for a data folder that has none yet. */
async function importOnce(store: Store, config: Config, logs: Logs): Promise<void> {
  const file = config.server.import;
  if (file === undefined || store.seq() > 0) return;
  const text = await readFile(file, 'utf8');
  try {
    const count = await importRules({ store, newId: uuidv7, engines: engineNames(config) }, text);
    logs.log.info({}, `Imported ${count} page rules into the empty data folder.`);
  } catch (error) {
    if (!(error instanceof Failure) || error.code !== 'invalid') throw error;
    throw new Failure('invalid', `Cannot import ${file}, nothing was imported: ${error.message}`);
  }
}

async function makeFirstKey(store: Store): Promise<string | undefined> {
  if (store.counts().keys > 0) return undefined;
  const parts = { store, newId: uuidv7, randomBytes, now: Date.now };
  const { key } = await addKey(parts, { name: 'admin', scopes: ['admin'], by: 'serve' });
  return key;
}
