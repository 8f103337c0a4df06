import { tmpdir } from 'node:os';
import { resolve } from 'node:path';
import { Option } from 'commander';
import type { Config } from '../../core/config/config.ts';
import { configJson, describeConfig } from '../../core/config/describe.ts';
import {
  allCertificateWarnings,
  certificateWarnings,
  ineffectiveSettings,
} from '../../core/config/warnings.ts';
import { isWritable } from '../../core/log/folder/data-folder.ts';
import { stoppedOpener } from '../../core/log/folder/opening-lock.ts';
import type { Store } from '../../core/log/store.ts';
import {
  type LoadedCertificate,
  certificateState,
  loadAcmeCertificate,
  loadCertificate,
  loadOnDemandCertificates,
} from '../../core/server/tls/loaded-certificate.ts';
import { now } from '../../core/values/clock.ts';
import { Failure } from '../../core/values/failure.ts';
import { counted, megabytes } from '../../core/values/units.ts';
import { closedRuleWarnings } from '../../modules/access/narrow-paths.ts';
import { passwordFileWarnings } from '../../modules/access/password-hash.ts';
import { AcmeFolder } from '../../modules/acme/folder.ts';
import { AssetFiles } from '../../modules/assets/asset-files.ts';
import { checkAssetFiles } from '../../modules/assets/asset-keeper.ts';
import type { CertificateState } from '../../modules/status/server-status.ts';
import { tableWarnings } from '../../modules/tables/operations/configured-tables.ts';
import { type DefineCommand, type Terminal, UsageError, writeLine } from '../command.ts';
import { openDataToRead } from '../open-data.ts';
import {
  configOption,
  jsonOption,
  problemsText,
  requireConfigFile,
  wholeNumber,
} from '../options.ts';
import { createProgress } from '../progress.ts';
import { table } from '../remote/client-command.ts';
import { rowLogPart } from '../../modules/nodes/log/open-row-log.ts';
import type { Difference } from '../../modules/upkeep/verify/log-fold.ts';
import { upkeep } from '../../modules/upkeep/upkeep.ts';

/** Differences between the data and its log that `check-data` lists. */
const differencesKeptMax = 1_000;

interface CheckOptions {
  readonly config?: string;
  readonly data: boolean;
  /** The seq up to which the digest of the log is computed. */
  readonly seq?: number;
  /** The folder of the temporary copy. */
  readonly temporaryFolder?: string;
  readonly json: boolean;
}

/**
 * `waymark check`: validates the ini file and prints the configuration with all defaults; with
 * `--data`, it verifies the data instead.
 */
export const defineCheck: DefineCommand = (command, terminal) => {
  command
    .description('Validate the ini file, and print the configuration with all defaults.')
    .option(
      '--data',
      'verify the data instead: compare its indexes with the fold of its log',
      false,
    )
    .addOption(
      new Option(
        '--seq <n>',
        'with --data: print the digest of the changes up to n as well, which ' +
          'is the same on all nodes',
      ).argParser(wholeNumber),
    )
    .option(
      '--temporary-folder <folder>',
      'with --data: where to fold the log into a temporary copy, which is about as large as the ' +
        'data (default: the data folder)',
    )
    .addOption(configOption())
    .addOption(jsonOption())
    .action(async (options: CheckOptions) => {
      terminal.exitCode = await check(options, terminal);
    });
};

async function check(options: CheckOptions, terminal: Terminal): Promise<number> {
  if (options.seq !== undefined && !options.data) throw new UsageError('--seq needs --data.');
  if (options.temporaryFolder !== undefined && !options.data) {
    throw new UsageError('--temporary-folder needs --data.');
  }
  const file = requireConfigFile(options.config, terminal);
  const result = await terminal.readConfig(file, { folder: {} });
  if (options.data && result.ok) return checkData(result.config, terminal, options);
  if (!result.ok) {
    const { problems } = result;
    if (options.json) writeLine(terminal.out, jsonText({ ok: false, problems }));
    else writeLine(terminal.err, problemsText(file, problems));
    return 1;
  }
  const { config } = result;
  const certificates = await knownCertificates(config, now());
  const warnings = [
    ...ineffectiveSettings(config),
    ...certificates.warnings,
    ...stoppedOpenerWarnings(config),
    ...(await passwordFileWarnings(config)),
  ];
  if (options.json) {
    const { states } = certificates;
    const answer = { ok: true, config: configJson(config), certificates: states, warnings };
    writeLine(terminal.out, jsonText(answer));
    return 0;
  }
  terminal.out.write(describeConfig(config));
  // Comments, so that the whole remains an ini file.
  for (const line of certificateLines(certificates.states)) writeLine(terminal.out, `; ${line}`);
  for (const warning of warnings) writeLine(terminal.err, warning);
  writeLine(terminal.err, `${file} is valid.`);
  return 0;
}

function jsonText(answer: object): string {
  return JSON.stringify(answer, undefined, 2);
}

function stoppedOpenerWarnings({ server }: Config): readonly string[] {
  const advice = stoppedOpener(server.data);
  return advice === undefined ? [] : [`${advice} Until then, all changes are refused.`];
}

/**
 * `waymark check --data`: checks the data file, folds the log into a temporary copy, and reports
 * where the indexes differ from it. Resolves to the exit code.
 */
async function checkData(
  config: Config,
  terminal: Terminal,
  options: CheckOptions,
): Promise<number> {
  try {
    return await verifyData(config, terminal, options);
  } catch (error) {
    if (!options.json || !(error instanceof Failure)) throw error;
    writeLine(terminal.out, JSON.stringify({ ok: false, problem: error.message }, undefined, 2));
    return 1;
  }
}

async function verifyData(
  config: Config,
  { out, err }: Terminal,
  { json, seq: digestSeq, temporaryFolder }: CheckOptions,
): Promise<number> {
  const store = await openDataToRead(config);
  const progress = createProgress(err, Date.now);
  const shown: Difference[] = [];
  let count = 0;
  try {
    const { seq, rules, tables, rows, bytes } = store.counts();
    for (const warning of await tableWarnings(config.tables, store)) writeLine(err, warning);
    for (const warning of closedRuleWarnings(config.access, store)) writeLine(err, warning);
    const digest = digestSeq === undefined ? undefined : await digestOf(store, digestSeq);
    const folder = resolve(temporaryFolder ?? (await roomFor(config)));
    if (!json) {
      const room = `up to ${megabytes(bytes)} in ${folder}`;
      writeLine(err, `Folding the log of ${seq} changes into a temporary copy, ${room}.`);
    }
    for await (const { checked, of, differences } of store.part(upkeep).verify(folder)) {
      count += differences.length;
      shown.push(...differences.slice(0, differencesKeptMax - shown.length));
      progress.show(`${Math.min(100, Math.floor((checked / of) * 100))} % of ${of} entries`);
    }
    const assets = await checkAssetFiles(new AssetFiles(config.server.data), store);
    progress.clear();
    count += assets.problems.length;
    shown.push(...assets.problems.map((what) => ({ database: 'assets', what })));
    const ok = count === 0;
    if (json) {
      const found = { ok, seq, rules, rows, count, differences: shown, ...(digest && { digest }) };
      const { used: files, unused: unused_files } = assets;
      writeLine(out, JSON.stringify({ ...found, files, unused_files }, undefined, 2));
      return ok ? 0 : 1;
    }
    if (digest !== undefined) {
      writeLine(out, `log ${digest.log}, changes 1 to ${digest.seq}, sha256 ${digest.sha256}`);
    }
    for (const { database, what } of shown) writeLine(err, `${database}: ${what}`);
    if (count > shown.length) writeLine(err, `and ${count - shown.length} more`);
    const places = count === 1 ? 'one place' : `${count} places`;
    const ofTables = tables === 0 ? '' : ` and ${counted(rows, 'row')} of tables`;
    const verdict = ok
      ? `The data is correct: ${rules} page rules${ofTables} from a log of ${seq} changes.`
      : `The data differs from its log of ${seq} changes in ${places}. Restore a backup.`;
    writeLine(err, verdict);
    if (assets.used + assets.unused > 0) {
      const unused = assets.unused === 0 ? '' : `, ${assets.unused} that no asset refers to`;
      writeLine(err, `Files of assets: ${assets.used} whole${unused}.`);
    }
    return ok ? 0 : 1;
  } finally {
    progress.clear();
    await store.close();
  }
}

/** The folder of the temporary copy, if the command names none. */
async function roomFor({ server: { data } }: Config): Promise<string> {
  return (await isWritable(data)) ? data : tmpdir();
}

/** The digest of the log up to a seq (docs/design/nodes.md#digest). Rejects with `invalid`. */
async function digestOf(
  store: Store,
  seq: number,
): Promise<{ readonly log: string; readonly seq: number; readonly sha256: string }> {
  if (seq <= store.seq()) {
    return {
      log: store.part(rowLogPart).identity().id,
      seq,
      sha256: await store.part(rowLogPart).digest(seq),
    };
  }
  throw new Failure('invalid', `--seq ${seq}: the log ends with change ${store.seq()}.`);
}

/** The certificates of a server as its files have them, and what is wrong with them. */
interface KnownCertificates {
  readonly states: readonly CertificateState[];
  /** A sentence each. */
  readonly warnings: readonly string[];
}

/**
 * Reads the certificates of the ini file, those that ACME has brought for its sections, and those
 * for the names of `acme_on_demand` that clients asked for last. Machines of a cluster share the
 * latter two, which `waymark cluster status` shows. Resolves with a warning if the data folder may
 * not be read.
 */
async function knownCertificates(config: Config, nowMs: number): Promise<KnownCertificates> {
  const { tls, cluster, server } = config;
  const files = await Promise.all(tls.certificates.map((one) => loadCertificate(one)));
  const states = await Promise.all(files.map((one) => certificateState(one, undefined)));
  const known = { states, warnings: await allCertificateWarnings(config, nowMs) };
  if (cluster.secretsKeyFile !== undefined) return known;
  const folder = new AcmeFolder(server.data, tls.acme);
  try {
    const [own, onDemand] = await Promise.all([
      Promise.all(tls.acme.hosts.map((host) => loadAcmeCertificate(host, folder))),
      tls.acme.onDemandUrl === undefined ? [] : loadOnDemandCertificates(folder),
    ]);
    const loaded = [...own, ...onDemand];
    return {
      states: [
        ...states,
        ...(await Promise.all(loaded.map((one) => certificateState(one, folder)))),
      ],
      warnings: [...known.warnings, ...loaded.flatMap((one) => warningsOf(one, nowMs))],
    };
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EACCES') throw error;
    const advice = 'Run this as the user of the server to see them.';
    const warning = `Cannot read the certificates of ACME in ${server.data}. ${advice}`;
    return { ...known, warnings: [...known.warnings, warning] };
  }
}

function warningsOf(one: LoadedCertificate, nowMs: number): readonly string[] {
  const { section, host, current, problem } = one;
  if (problem !== null) return [`The certificate of ${section}: ${problem}.`];
  if (current === undefined) return [];
  const found = certificateWarnings({ host, section }, current.pair.certificate, nowMs);
  return found.map(({ message }) => message);
}

/**
 * A table of certificates: until when they are valid, and when the server orders them again. No
 * line without certificates.
 */
function certificateLines(states: readonly CertificateState[]): readonly string[] {
  if (states.length === 0) return [];
  const rows = states.map(({ section, valid_until: until, acme }) => [
    ...[section, until ?? '-', acme?.state ?? '-', acme?.next ?? '-'],
    acme?.error ?? '-',
  ]);
  return table(['CERTIFICATE', 'VALID UNTIL', 'STATE', 'NEXT ORDER', 'ERROR'], rows);
}
