import { availableParallelism, hostname } from 'node:os';
import type { Command } from 'commander';
import { Failure } from '../core/values/failure.ts';
import { versionText } from '../core/values/version.ts';
import {
  writeLine,
  UsageError,
  type DefineCommand,
  type Output,
  type Terminal,
} from './command.ts';

/** A command in the list of all; its file is loaded only to run it. */
interface CommandEntry {
  readonly name: string;
  readonly summary: string;
  readonly load: () => Promise<DefineCommand>;
}

const entries: readonly CommandEntry[] = [
  {
    name: 'serve',
    summary: 'run the server',
    load: async () => (await import('./serve/serve.ts')).defineServe,
  },
  {
    name: 'restart',
    summary: 'replace the running server without refusing a request',
    load: async () => (await import('./serve/restart.ts')).defineRestart,
  },
  {
    name: 'check',
    summary: 'validate the ini file, or the data',
    load: async () => (await import('./local/check.ts')).defineCheck,
  },
  {
    name: 'convert',
    summary: 'convert a configuration of nginx, Caddy, Apache or Netlify',
    load: async () => (await import('../modules/convert/command.ts')).defineConvert,
  },
  {
    name: 'key',
    summary: 'create, list and revoke API keys',
    load: async () => (await import('../modules/keys/command.ts')).defineKey,
  },
  {
    name: 'password',
    summary: 'print the line of a user for a password file',
    load: async () => (await import('./local/password.ts')).definePassword,
  },
  {
    name: 'login',
    summary: 'show and end the sessions of visitors who have signed in',
    load: async () => (await import('../modules/console/command.ts')).defineLogin,
  },
  {
    name: 'link',
    summary: 'make links to protected pages that end',
    load: async () => (await import('./local/link.ts')).defineLink,
  },
  {
    name: 'explain',
    summary: 'say which source answers a URL, and why',
    load: async () => (await import('./remote/explain.ts')).defineExplain,
  },
  {
    name: 'rule',
    summary: 'read and write page rules',
    load: async () => (await import('../modules/rules/command.ts')).defineRule,
  },
  {
    name: 'hook',
    summary: 'read and write webhooks, and see their deliveries',
    load: async () => (await import('../modules/webhooks/command.ts')).defineHook,
  },
  {
    name: 'draft',
    summary: 'make, compare and publish drafts',
    load: async () => (await import('../modules/drafts/command.ts')).defineDraft,
  },
  {
    name: 'change',
    summary: 'list changes, and revert all of a transaction',
    load: async () => (await import('../modules/changes/command.ts')).defineChange,
  },
  {
    name: 'schedule',
    summary: 'show what happens at which time',
    load: async () => (await import('../modules/drafts/schedule-command.ts')).defineSchedule,
  },
  {
    name: 'mcp',
    summary: 'let an automated tool use a server, over standard input and output',
    load: async () => (await import('../modules/mcp/command.ts')).defineMcp,
  },
  {
    name: 'asset',
    summary: 'upload and list the pictures and other files of pages',
    load: async () => (await import('../modules/assets/command.ts')).defineAsset,
  },
  {
    name: 'event',
    summary: 'insert and list events',
    load: async () => (await import('../modules/webhooks/event-command.ts')).defineEvent,
  },
  {
    name: 'cache',
    summary: 'show and purge cached content',
    load: async () => (await import('../modules/cache/command.ts')).defineCache,
  },
  {
    name: 'visits',
    summary: 'show the visits of pages, and who was refused',
    load: async () => (await import('../modules/visits/command.ts')).defineVisits,
  },
  {
    name: 'breadcrumb',
    summary: 'show the visits of breadcrumbs',
    load: async () => (await import('../modules/breadcrumbs/command.ts')).defineBreadcrumb,
  },
  {
    name: 'log',
    summary: 'print the access log of a running server',
    load: async () => (await import('../modules/status/log-command.ts')).defineLog,
  },
  {
    name: 'server',
    summary: 'show the state and configuration of a running server',
    load: async () => (await import('../modules/status/command.ts')).defineServer,
  },
  {
    name: 'source',
    summary: 'show the servers that content is fetched from',
    load: async () => (await import('../modules/proxy/command.ts')).defineSource,
  },
  {
    name: 'node',
    summary: 'show the replicas and counters that follow a server',
    load: async () => (await import('../modules/nodes/command.ts')).defineNode,
  },
  {
    name: 'cluster',
    summary: 'make, show and leave a cluster of several machines',
    load: async () => (await import('../modules/cluster/command.ts')).defineCluster,
  },
  {
    name: 'outbox',
    summary: 'show and repair the outbox of a counter',
    load: async () => (await import('../modules/nodes/outbox-command.ts')).defineOutbox,
  },
  {
    name: 'export',
    summary: 'write rules, hooks, tables and rows as NDJSON',
    load: async () => (await import('../modules/transfer/export-command.ts')).defineExport,
  },
  {
    name: 'import',
    summary: 'read rules, hooks, tables and rows from NDJSON',
    load: async () => (await import('../modules/transfer/import-command.ts')).defineImport,
  },
  {
    name: 'follow',
    summary: 'copy the rows of tables to PostgreSQL as they change',
    load: async () => (await import('../modules/follow/command.ts')).defineFollow,
  },
  {
    name: 'backup',
    summary: 'copy the data folder while the server runs',
    load: async () => (await import('../modules/upkeep/backup-command.ts')).defineBackup,
  },
  {
    name: 'purge-secret',
    summary: 'remove former secrets from the log',
    load: async () => (await import('../modules/upkeep/purge-secret-command.ts')).definePurgeSecret,
  },
  {
    name: 'promote',
    summary: 'make a replica the centre',
    load: async () => (await import('../modules/nodes/promote-command.ts')).definePromote,
  },
  {
    name: 'completion',
    summary: 'print a completion script for bash, zsh or fish',
    load: async () => (await import('./completion.ts')).defineCompletion,
  },
  {
    name: 'manual',
    summary: 'print the manual page',
    load: async () => (await import('./manual.ts')).defineManual,
  },
];

/** The commands whose output describes all commands. */
const ofAll: ReadonlySet<string | undefined> = new Set(['completion', 'manual']);

/**
 * Runs a command line, without its `node waymark`; by default on the terminal of this process.
 * Resolves to the exit code (docs/design/configuration.md#commands).
 */
export async function run(
  words: readonly string[],
  terminal: Terminal = ownTerminal(),
): Promise<number> {
  const [first = '--help', ...rest] = words;
  if (first === '--version' || first === '-V' || first === 'version') {
    writeLine(terminal.out, versionText);
    return 0;
  }
  const { runProgram } = await import('./program.ts');
  const name = first === 'help' ? rest[0] : first;
  // Only these, the list of all commands and suggestions need the record families.
  const isAlone = !ofAll.has(name) && entries.some((entry) => entry.name === name);
  const all = isAlone ? entries : [...entries, ...(await otherFamilies())];
  const line = first === 'help' ? helpWords(rest, all) : [first, ...rest];
  // These, and suggestions for an unknown command, need the subcommands of all commands.
  const needsAll = ofAll.has(line[0]) || !isCommand(line[0], all);
  const commands = await Promise.all(
    all.map(async (entry) => {
      const { name, summary } = entry;
      return {
        name,
        summary,
        define: needsAll || name === line[0] ? await entry.load() : undefined,
      };
    }),
  );
  try {
    terminal.exitCode = 0;
    await runProgram(line, commands, terminal);
    return terminal.exitCode;
  } catch (error) {
    if (error instanceof UsageError) {
      writeLine(terminal.err, `waymark: ${error.message}`);
      return 2;
    }
    if (!(error instanceof Failure) || error.code === 'internal') throw error;
    writeLine(terminal.err, `waymark: ${error.message}`);
    if (error.docs !== undefined) writeLine(terminal.err, `See ${error.docs}`);
    return 1;
  }
}

/** All commands with their subcommands, arguments and options, for documents about them. */
export async function allCommands(): Promise<Command> {
  const { createProgram } = await import('./program.ts');
  const all = [...entries, ...(await otherFamilies())];
  const loaded = all.map(async (entry) => ({ ...entry, define: await entry.load() }));
  return createProgram(await Promise.all(loaded), ownTerminal());
}

/** `help rule insert` means `rule insert --help`; an unknown command is refused later. */
function helpWords(words: readonly string[], commands: readonly CommandEntry[]): readonly string[] {
  const [name] = words;
  return name === undefined || isCommand(name, commands) ? [...words, '--help'] : words;
}

function isCommand(word: string | undefined, commands: readonly CommandEntry[]): boolean {
  return word?.startsWith('-') === true || commands.some(({ name }) => name === word);
}

/** The commands of record families without a file of their own. */
async function otherFamilies(): Promise<readonly CommandEntry[]> {
  const { recordFamilies } = await import('../modules.ts');
  const { recordCommand } = await import('./remote/record-commands.ts');
  return recordFamilies
    .filter(({ command }) => !entries.some(({ name }) => name === command))
    .map((family) => ({
      name: family.command,
      summary: `read and write ${family.noun}s`,
      load: () => Promise.resolve(recordCommand(family)),
    }));
}

function ownTerminal(): Terminal {
  const { env, stdout: out, stderr: err } = process;
  out.on('error', (error: NodeJS.ErrnoException) => {
    // A command with its own listener reports the error itself.
    if (out.listenerCount('error') === 1) handleOutputError(error, err);
  });
  // If standard error is closed, nothing can be reported.
  err.on('error', () => undefined);
  return {
    out,
    err,
    input: () => process.stdin,
    env,
    readConfig: async (file, options = {}) => {
      const { readConfig } = await import('../core/config/read.ts');
      const { iniSections: sections } = await import('../sections.ts');
      const [cores, hostName] = [availableParallelism(), hostname()];
      return readConfig({ file, sections, env, cores, hostName, ...options });
    },
  };
}

/**
 * If a reader such as `head` closes the pipe early, the command still runs to its end. Any other
 * error of standard output ends the process.
 */
function handleOutputError({ code = '' }: NodeJS.ErrnoException, err: Output): void {
  if (code === 'EPIPE') return;
  writeLine(err, `waymark: cannot write to standard output (${code})`);
  process.exit(1);
}
