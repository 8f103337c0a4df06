import { type Command, InvalidArgumentError } from 'commander';
import { type DefineCommand, type Terminal, writeLine } from '../../cli/command.ts';
import { openData, openDataToRead, requireData } from '../../cli/open-data.ts';
import { configOption, jsonOption, requireConfig } from '../../cli/options.ts';
import { createProgress } from '../../cli/progress.ts';
import { table } from '../../cli/remote/client-command.ts';
import type { Config } from '../../core/config/config.ts';
import { holdsData } from '../../core/log/folder/data-folder.ts';
import { claimFolder } from '../../core/log/folder/folder-claim.ts';
import type { Store } from '../../core/log/store.ts';
import { silentLog } from '../../core/report/log.ts';
import { now } from '../../core/values/clock.ts';
import { Failure } from '../../core/values/failure.ts';
import { durationMs, durationText } from '../../core/values/units.ts';
import type { HostState } from '../acme/acme-store.ts';
import { AcmeFolder } from '../acme/folder.ts';
import { sharedStates, usedKeys, writeAcmeFiles } from '../acme/shared-certificates.ts';
import { type FilesReport, filesReport, filesText } from './command-files.ts';
import {
  type ClusterFiles,
  type ClusterStatus,
  changeRetention,
  clusterFiles,
  clusterStatus,
  createCluster,
} from './status.ts';
import { membership } from './log/join.ts';
import { rowLogPart } from '../nodes/log/open-row-log.ts';

/** The shortest and longest retention that `waymark cluster` sets: one hour to ten years. */
const retentionMsMin = 3_600_000;
const retentionMsMax = 3_650 * 86_400_000;

interface ClusterOptions {
  readonly config?: string;
  readonly json: boolean;
  readonly replicas?: number;
  readonly retention?: number;
}

/** `waymark cluster init | status | retention | leave`. */
export const defineCluster: DefineCommand = (command, terminal) => {
  command.description('Make, show and leave the cluster that [cluster] of the ini file names.');
  const init = 'make the stream of the cluster, with the history of this data folder';
  subcommand(command, 'init', init, terminal, initialise)
    .option(
      '--replicas <n>',
      'servers with a copy of the stream: 1, 3 or 5; by default 3 if there are as many',
      replicaCount,
    )
    .option(
      '--retention <time>',
      'how long the stream has an entry, such as 30d; by default unlimited',
      retentionTime,
    );
  const status = 'show the servers of the cluster, its stream and the position of this machine';
  subcommand(command, 'status', status, terminal, show);
  const retention = 'change how long the stream has an entry: a time such as 30d, or unlimited';
  command
    .command('retention')
    .summary(retention)
    .description(`${sentence(retention)} All machines have all data in their folders anyway.`)
    .argument('<time>', 'such as 30d, or unlimited', retentionTime)
    .addOption(configOption())
    .addOption(jsonOption())
    .action(async (time: number, options: ClusterOptions) => {
      const config = await requireConfig(options.config, terminal);
      await retain(config, { ...options, retention: time }, terminal);
    });
  const leave = 'make this data folder that of a single machine, with all that it has';
  subcommand(command, 'leave', leave, terminal, leaveCluster);
};

type Action = (config: Config, options: ClusterOptions, terminal: Terminal) => Promise<void>;

function subcommand(
  parent: Command,
  name: string,
  summary: string,
  terminal: Terminal,
  act: Action,
): Command {
  return parent
    .command(name)
    .summary(summary)
    .description(sentence(summary))
    .addOption(configOption())
    .addOption(jsonOption())
    .action(async (options: ClusterOptions) => {
      await act(await requireConfig(options.config, terminal), options, terminal);
    });
}

function sentence(summary: string): string {
  return `${summary[0]?.toUpperCase()}${summary.slice(1)}.`;
}

/** Milliseconds; 0 for always. */
function retentionTime(text: string): number {
  if (text === 'unlimited') return 0;
  const ms = durationMs(text);
  if (ms !== undefined && ms >= retentionMsMin && ms <= retentionMsMax) return ms;
  const [min, max] = [durationText(retentionMsMin), durationText(retentionMsMax)];
  throw new InvalidArgumentError(`Write a time from ${min} to ${max}, such as 30d, or unlimited.`);
}

function retentionText(ms: number): string {
  return ms === 0 ? 'It keeps all entries.' : `It keeps entries for ${durationText(ms)}.`;
}

function replicaCount(text: string): number {
  if (/^[135]$/.test(text)) return Number(text);
  throw new InvalidArgumentError('Write 1, 3 or 5.');
}

function settingsOf({ cluster, file }: Config): Config['cluster'] {
  if (cluster.servers.length > 0) return cluster;
  throw new Failure('invalid', `${file} names no cluster: set \`servers\` of [cluster].`);
}

/** Makes the stream, or continues the upload of the history after an interrupted call. */
async function initialise(
  config: Config,
  { json, replicas, retention }: ClusterOptions,
  { out, err }: Terminal,
): Promise<void> {
  const settings = settingsOf(config);
  const folder = config.server.data;
  const claim = await claimFolder(folder, { pid: process.pid });
  const progress = createProgress(err, now);
  try {
    const id = await logOf(folder);
    await createCluster(settings, { id, replicas, retentionMs: retention });
    const uploadProgress = (rows: number, of: number): void => {
      progress.show(`${rows} of ${of} changes`);
    };
    const store = await openData(folder, { cluster: { settings, log: silentLog, uploadProgress } });
    const { seq } = store.counts();
    try {
      await moveCertificates(config, store);
    } finally {
      await store.close();
    }
    progress.clear();
    if (json) writeLine(out, JSON.stringify({ stream: settings.name, log: id, seq }));
    else {
      const text = `The cluster has the stream ${settings.name} with ${seq} changes.`;
      const next = 'Start this machine and the others with the same [cluster], and empty folders.';
      writeLine(err, `${text} ${next}`);
    }
  } finally {
    progress.clear();
    await claim.release();
  }
}

/** Moves certificates by ACME into the cluster before another machine would order them. */
async function moveCertificates(
  { server, tls: { acme }, cluster }: Config,
  { shared }: Store,
): Promise<void> {
  const { secretsKeyFile: keyFile } = cluster;
  if (shared === undefined || keyFile === undefined) return;
  const { openSharedAcme } = await import('../acme/shared-acme.ts');
  const folder = new AcmeFolder(server.data, acme);
  await openSharedAcme(shared, { acme, keyFile, folder }).moveFiles();
}

/** Resolves to the id of the log of a folder, which is created if it has none. */
async function logOf(folder: string): Promise<string> {
  const store = await openData(folder);
  try {
    const { id, follows } = store.part(rowLogPart).identity();
    if (follows === undefined) return id;
    throw new Failure(
      'conflict',
      'The data folder is a copy of the log of another server: begin on that machine.',
    );
  } finally {
    await store.close();
  }
}

async function show(config: Config, { json }: ClusterOptions, terminal: Terminal): Promise<void> {
  const settings = settingsOf(config);
  const [status, found] = await Promise.all([clusterStatus(settings), clusterFiles(settings)]);
  const { position, certificates, keys, files } = await ownState(config, status, found);
  if (json) {
    const own = { position: position ?? null, files, certificates: certificates ?? [] };
    const all = { ...status, ...own, secrets_keys: keys ?? [] };
    writeLine(terminal.out, JSON.stringify(all));
    return;
  }
  const { stream, log, first, since, end, bytes, retention_ms: retention, servers } = status;
  const { out } = terminal;
  for (const line of serverTable('SERVER', servers)) writeLine(out, line);
  if (files !== null)
    for (const line of serverTable('FILES ON', files.servers)) writeLine(out, line);
  const has =
    since === null
      ? `no messages, and ended with message ${end},`
      : `the messages ${first} to ${end} since ${since}, ${bytes} bytes,`;
  const text = `The stream ${stream} has ${has} of the log ${log}. ${retentionText(retention)}`;
  const own =
    position === undefined
      ? 'This data folder is no part of the cluster.'
      : ownText(position, status);
  for (const line of [text, own, ...filesText(files)]) writeLine(terminal.err, line);
  if (certificates === undefined || certificates.length === 0) return;
  const named = certificates.map(({ host, state, node = '-', next }) => [
    ...[host, state, node],
    next ?? '-',
  ]);
  for (const line of table(['CERTIFICATE', 'STATE', 'ORDERED BY', 'NEXT ORDER'], named)) {
    writeLine(terminal.out, line);
  }
  const list = keys?.join(', ') ?? '';
  if (list !== '') writeLine(terminal.err, `Private keys are encrypted with the key ${list}.`);
}

function serverTable(head: string, servers: ClusterStatus['servers']): readonly string[] {
  const cells = servers.map(({ name, role, state, lag }) => [name, role, state, String(lag)]);
  return table([head, 'ROLE', 'STATE', 'LAG'], cells);
}

/** The progress of this machine, and what to do if it cannot continue. */
function ownText(position: number, { first, end }: ClusterStatus): string {
  const has = `This machine has applied the messages up to ${position}`;
  if (position >= end) return `${has}: all of them.`;
  if (position + 1 >= first) return `${has}; ${end - position} are missing.`;
  return (
    `${has}, and the next ones are no longer in the stream: run \`waymark backup\` on another ` +
    'machine, and start this one with that folder.'
  );
}

/** Changes the retention of the stream. */
async function retain(
  config: Config,
  { json, retention = 0 }: ClusterOptions,
  { out, err }: Terminal,
): Promise<void> {
  const { stream, retention_ms: ms } = await changeRetention(settingsOf(config), retention);
  if (json) writeLine(out, JSON.stringify({ stream, retention_ms: ms }));
  else writeLine(err, `The retention of the stream ${stream} has changed. ${retentionText(ms)}`);
}

/** The state of the cluster in the data folder; that of a folder that is no part has less. */
interface OwnState {
  /** The position up to which it has the log. */
  readonly position?: number;
  readonly certificates?: readonly (HostState & { readonly host: string })[];
  /** The ids of the keys with which certificates are encrypted. */
  readonly keys?: readonly string[];
  readonly files: FilesReport | null;
}

async function ownState(
  config: Config,
  { log }: ClusterStatus,
  found: ClusterFiles | undefined,
): Promise<OwnState> {
  const elsewhere = async (): Promise<OwnState> => ({ files: await filesReport(found, undefined) });
  if (!(await holdsData(config.server.data))) return elsewhere();
  const store = await openDataToRead(config);
  try {
    const place = store.sharedPlace();
    if (place?.id !== log) return await elsewhere();
    const { sharedValues: values } = store;
    const states = sharedStates(values).map(([host, state]) => ({ host, ...state }));
    const files = await filesReport(found, store);
    return { position: place.position, certificates: states, keys: usedKeys(values), files };
  } finally {
    await store.close();
  }
}

async function leaveCluster(
  config: Config,
  { json }: ClusterOptions,
  { out, err }: Terminal,
): Promise<void> {
  const claim = await claimFolder(config.server.data, { pid: process.pid });
  try {
    await requireData(config.server.data);
    const store = await openData(config.server.data);
    try {
      const place = store.sharedPlace();
      if (place === undefined) {
        throw new Failure('not_found', 'The data folder is no part of a cluster.');
      }
      const left = await keepCertificates(config, store);
      await store.part(membership).leave();
      const { seq } = store.counts();
      if (json) writeLine(out, JSON.stringify({ log: place.id, seq }));
      else {
        const text = `The data folder is that of a single machine, with ${seq} changes.`;
        writeLine(err, `${text} Remove [cluster] from the ini file before it starts.`);
        for (const { host, refused } of left) {
          writeLine(err, `The certificate of ${host} ${refused}. The server orders another one.`);
        }
      }
    } finally {
      await store.close();
    }
  } finally {
    await claim.release();
  }
}

/** Writes the certificates of the cluster into files, which a single machine uses. */
async function keepCertificates(
  { server: { data }, tls: { acme }, cluster }: Config,
  { sharedValues: values }: Store,
): Promise<readonly { readonly host: string; readonly refused: string }[]> {
  const { secretsKeyFile: keyFile } = cluster;
  if (keyFile === undefined || acme.hosts.length === 0) return [];
  return writeAcmeFiles(values, { data, acme, keyFile });
}
