import { randomBytes } from 'node:crypto';
import { createReadStream, openAsBlob } from 'node:fs';
import { resolve } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { type DefineCommand, type Terminal, UsageError, writeLine } from '../../cli/command.ts';
import { openData } from '../../cli/open-data.ts';
import { configOption, findConfigFile, jsonOption, requireConfig } from '../../cli/options.ts';
import { copiedText, createProgress } from '../../cli/progress.ts';
import {
  type ApiTargetOptions,
  apiTargetOf,
  draftOption,
  postToApi,
  putFileToApi,
} from '../../cli/remote/api-client.ts';
import { shownWord } from '../../cli/remote/record-commands.ts';
import { accessNames, engineNames } from '../../cli/serve/assembly/operations.ts';
import { writeInThread } from '../../cli/serve/write-thread.ts';
import type { Config } from '../../core/config/config.ts';
import { Failure, type Problem } from '../../core/values/failure.ts';
import type { JsonObject } from '../../core/values/json/json.ts';
import { unknownAddress } from '../../core/values/network/peer.ts';
import { counted } from '../../core/values/units.ts';
import { AssetFiles } from '../assets/asset-files.ts';
import {
  type ExportedFile,
  exportedFiles,
  importFiles,
  putIntoFolder,
} from '../assets/file-copies.ts';
import { batchSettings, createBatchParts } from '../batch/batch-parts.ts';
import { batchOperations } from '../batch/import-batch.ts';
import type { BatchReport } from '../batch/run-batch.ts';
import { unknownVisitor } from '../rules/operations/preview.ts';
import { createSecret } from '../webhooks/sign.ts';
import { readBlocks } from './import-blocks.ts';
import type { LineProblems, Refusal } from './import-line.ts';
import type { ImportReport } from './import-operation.ts';
import { createLineReader } from './import-worker.ts';
import { type ImportStep, type ImportedRecord, importBlocks } from './import.ts';
import { refusalsKeptMax, writtenCheckedMax } from './limits.ts';
import { newProblems, writtenProblems } from './written-problems.ts';

/** How long `import` does; the server answers when all is written. `fetch` waits for 300 s. */
const importTimeoutMs = 290_000;

interface ImportOptions extends ApiTargetOptions {
  readonly json: boolean;
  readonly dryRun: boolean;
  readonly strict: boolean;
  /** Whether the lines are operations of one batch. */
  readonly batch: boolean;
  /** The folder with the files of assets. */
  readonly files?: string;
}

/** `waymark import`: adds page rules, hooks, tables and rows, also while a server runs. */
export const defineImport: DefineCommand = (command, terminal) => {
  command
    .description(
      'Add page rules, hooks, tables and rows, a JSON object a line: {…fields, "vk"} of a rule, ' +
        'or {"a", "v", "vk"}. ' +
        'Existing records stay unchanged; other lines are imported even if one is refused. With ' +
        '--url, a server imports all lines in one transaction, or none.',
    )
    .argument('[file]', 'an NDJSON file, or - for standard input', '-')
    .option('--url <url>', 'the server to import to, instead of the data folder of the ini file')
    .option('--apikey <key>', 'with --url: the API key; default: WAYMARK_APIKEY')
    .addOption(draftOption())
    .option('--dry-run', 'with --url: only show what would be imported', false)
    .addOption(configOption().conflicts('url'))
    .addOption(jsonOption())
    .option('--batch', 'run the lines as one batch: inserts, edits and events, all or none', false)
    .option('--strict', 'refuse lines with an invalid field', false)
    .option('--files <dir>', 'first import the files of assets that `export --files` has copied')
    .action(async (file: string, options: ImportOptions) => {
      const importing = options.batch
        ? importBatch
        : options.url === undefined
          ? importFile
          : sendFile;
      terminal.exitCode = await importing(file, options, terminal);
    });
};

/** Sends a file to a server, which imports it; resolves to the exit code. */
async function sendFile(file: string, options: ImportOptions, terminal: Terminal): Promise<number> {
  const api = await apiTargetOf(options, terminal);
  const body = await buffer(linesOf(file, terminal));
  const put = async ({ sha256, path }: ExportedFile): Promise<void> => {
    await putFileToApi(api, sha256, await openAsBlob(path));
  };
  const hasFiles = options.dryRun || (await bringFiles(options.files, put, terminal));
  const answer = await postToApi(api, 'svc1.userinterface.import', {
    type: 'application/x-ndjson',
    body,
    timeoutMs: importTimeoutMs,
    query: queryOf(options),
    ...(options.strict && { prefer: 'handling=strict' }),
  });
  const report = answer.data as unknown as ImportReport;
  const { refusals, unknowns, txn, ...counts } = report;
  for (const { line, why } of refusals) writeLine(terminal.err, `line ${line}: ${why}`);
  for (const kept of unknowns) printProblems(kept, terminal);
  printUndo(txn, options, terminal);
  writeLine(terminal.out, options.json ? JSON.stringify(report) : countsText(counts));
  return counts.refused > 0 || !hasFiles ? 1 : 0;
}

/**
 * Brings the files of an export to where its rows go, before these, so that no page lacks one.
 * Resolves to whether all of them were whole.
 */
async function bringFiles(
  folder: string | undefined,
  put: (file: ExportedFile) => Promise<void>,
  { err }: Terminal,
): Promise<boolean> {
  if (folder === undefined) return true;
  const progress = createProgress(err, Date.now);
  const given = await exportedFiles(resolve(folder));
  const { files, bytes, problems } = await importFiles(given, put, (copied) => {
    progress.show(`${copiedText(copied)}, of ${given.length}`);
  }).finally(() => {
    progress.clear();
  });
  for (const problem of problems.slice(0, refusalsKeptMax)) writeLine(err, problem);
  writeLine(err, `Imported ${copiedText({ files, bytes })}.`);
  return problems.length === 0;
}

function queryOf({ dryRun, draft }: ImportOptions): string {
  const members = [
    ...(dryRun ? ['_v.dry_run=true'] : []),
    ...(draft === undefined ? [] : [`_draft=${encodeURIComponent(draft)}`]),
  ];
  return members.length === 0 ? '' : `?${members.join('&')}`;
}

function linesOf(file: string, terminal: Terminal): AsyncIterable<Uint8Array> {
  return file === '-' ? terminal.input() : fileInput(file);
}

function printProblems({ line, problems }: LineProblems, terminal: Pick<Terminal, 'err'>): void {
  for (const { message } of problems) writeLine(terminal.err, `line ${line}: warning: ${message}`);
}

/** Says how to undo what a transaction has written, of whatever families. */
function printUndo(txn: string | null, { draft }: ImportOptions, { err }: Terminal): void {
  if (txn === null) return;
  const option = draft === undefined ? '' : ` --draft ${shownWord(draft)}`;
  writeLine(err, `To undo this: waymark change invalidate ${txn}${option}`);
}

function countsText({
  done = true,
  imported,
  unchanged,
  refused,
}: Pick<ImportReport, 'imported' | 'unchanged' | 'refused'> & {
  readonly done?: boolean;
}): string {
  const verb = done ? 'imported' : 'dry run: would import';
  return `${verb} ${imported}, unchanged ${unchanged}, refused ${refused}`;
}

async function importFile(
  file: string,
  { config: iniFile, json, dryRun, draft, strict: isStrict, files: filesFolder }: ImportOptions,
  terminal: Terminal,
): Promise<number> {
  if (dryRun) throw new UsageError('--dry-run needs --url: only a server can do a dry run.');
  const config = await targetConfig({ config: iniFile, draft }, terminal);
  const input = linesOf(file, terminal);
  const reader = createLineReader({
    engines: engineNames(config),
    accessNames: accessNames(config),
    isStrict,
  });
  const store = await openData(config.server.data);
  try {
    await store.checkPages();
    const assetFiles = new AssetFiles(config.server.data);
    const put = (one: ExportedFile): Promise<void> => putIntoFolder(assetFiles, one);
    const hasFiles = await bringFiles(filesFolder, put, terminal);
    const newSecret = () => createSecret(randomBytes);
    const parts = { store, newSecret, isStrict };
    const steps = importBlocks(parts, readBlocks(input, reader.read));
    const written = createBatchParts(store, batchSettings(config), newSecret);
    const report = await follow(steps, terminal, (record) =>
      writtenProblems(written, record, callOfCommand(config)),
    );
    writeLine(terminal.out, json ? JSON.stringify(report) : countsText(report));
    return report.refused > 0 || !hasFiles ? 1 : 0;
  } finally {
    await reader.close();
    await store.close();
  }
}

/** The configuration of the data folder that a command imports into. Throws UsageError. */
async function targetConfig(
  {
    config: iniFile,
    draft,
  }: { readonly config?: string | undefined; readonly draft?: string | undefined },
  terminal: Terminal,
): Promise<Config> {
  if (draft !== undefined)
    throw new UsageError('--draft needs --url: a server imports into drafts.');
  if (findConfigFile(iniFile, terminal) === undefined) {
    throw new UsageError(
      'there is nothing to import to. Give --url for a running server (WAYMARK_URL does not ' +
        'choose it), or name the ini file of a data folder by --config.',
    );
  }
  return requireConfig(iniFile, terminal);
}

/** Runs the lines of a file as one batch; resolves to the exit code. */
async function importBatch(
  file: string,
  options: ImportOptions,
  terminal: Terminal,
): Promise<number> {
  if (options.files !== undefined) throw new UsageError('--files does not go with --batch.');
  const operations = batchOperations(await buffer(linesOf(file, terminal)));
  const running = options.url === undefined ? batchInFolder : batchAtServer;
  const report = await running(operations, options, terminal);
  const { txn, results } = report;
  for (const [index, { problems = [], error }] of results.slice(0, refusalsKeptMax).entries()) {
    const name = `operation ${index}`;
    if (error !== undefined) writeLine(terminal.err, `${name}: ${error.message}`);
    for (const { message } of problems) writeLine(terminal.err, `${name}: warning: ${message}`);
  }
  printUndo(txn, options, terminal);
  writeLine(terminal.out, options.json ? JSON.stringify(report) : batchText(report));
  return report.failed > 0 ? 1 : 0;
}

type Batched = BatchReport['report'];

async function batchAtServer(
  operations: readonly JsonObject[],
  options: ImportOptions,
  terminal: Terminal,
): Promise<Batched> {
  const api = await apiTargetOf(options, terminal);
  const { dryRun, draft, strict } = options;
  const v = { operations, ...(dryRun && { dry: true }) };
  const answer = await postToApi(api, 'svc1.batch', {
    type: 'application/json',
    body: JSON.stringify({ v, ...(draft !== undefined && { draft }) }),
    timeoutMs: importTimeoutMs,
    ...(strict && { prefer: 'handling=strict' }),
  });
  return answer.data as unknown as Batched;
}

async function batchInFolder(
  operations: readonly JsonObject[],
  options: ImportOptions,
  terminal: Terminal,
): Promise<Batched> {
  const config = await targetConfig(options, terminal);
  const { server, cluster } = config;
  const by = 'import';
  const { report } = await writeInThread({ folder: server.data, cluster }, 'batch', {
    operations: JSON.stringify(operations),
    caller: { scopes: new Set(['admin']), keyId: by, rate: undefined, address: unknownAddress },
    origin: server.publicUrl ?? 'http://localhost',
    isStrict: options.strict,
    dry: options.dryRun,
    settings: batchSettings(config),
    ...{ by, vk: undefined },
  });
  return report;
}

function batchText({ done, inserted, edited, unchanged, failed }: Batched): string {
  const counts = `inserted ${inserted}, edited ${edited}, unchanged ${unchanged}`;
  return done ? counts : `dry run: ${counts}, failed ${failed}`;
}

/** Counts of all lines; only the first refused lines and problems are listed. */
interface Report {
  imported: number;
  unchanged: number;
  refused: number;
  readonly refusals: Refusal[];
  /** Imported lines with an invalid field. */
  kept: number;
  readonly unknowns: LineProblems[];
}

/** Names the problems of a written line that its reading has not named. */
function printWritten(
  line: number,
  problems: readonly Problem[],
  { report, err }: { readonly report: Report } & Pick<Terminal, 'err'>,
): void {
  const { unknowns } = report;
  const at = unknowns.findIndex((one) => one.line === line);
  const known = unknowns[at] ?? { line, names: [], problems: [] };
  const more = newProblems(known, problems);
  if (more.length === 0) return;
  printProblems({ ...known, problems: more }, { err });
  const whole = { ...known, problems: [...known.problems, ...more] };
  if (at !== -1) unknowns[at] = whole;
  else {
    report.kept += 1;
    unknowns.push(whole);
  }
}

/** The caller of a command, about whom nothing is known as a visitor. */
function callOfCommand({ server }: Config): Parameters<typeof writtenProblems>[2] {
  const scopes = new Set(['admin'] as const);
  const address = unknownAddress;
  const caller = { scopes, keyId: 'import', rate: undefined, address } as const;
  const origin = server.publicUrl ?? 'http://localhost';
  return { origin, caller, fields: {}, visitor: unknownVisitor(Date.now()) };
}

/**
 * Shows the progress of an import; on a failure, says first how much was imported. `problemsOf`
 * gets the first records, once all are written.
 */
async function follow(
  steps: AsyncIterable<ImportStep>,
  { err }: Pick<Terminal, 'err'>,
  problemsOf: (record: ImportedRecord) => readonly Problem[],
): Promise<Report> {
  const progress = createProgress(err, Date.now);
  const report: Report = {
    imported: 0,
    unchanged: 0,
    refused: 0,
    refusals: [],
    kept: 0,
    unknowns: [],
  };
  try {
    const records: ImportedRecord[] = [];
    for await (const { read, imported, unchanged, refused, kept, records: own } of steps) {
      records.push(...own.slice(0, writtenCheckedMax - records.length));
      report.imported += imported;
      report.unchanged += unchanged;
      report.refused += refused.length;
      const named = refused.slice(0, refusalsKeptMax - report.refusals.length);
      report.refusals.push(...named);
      if (named.length + kept.length > 0) progress.clear();
      for (const { line, why } of named) writeLine(err, `line ${line}: ${why}`);
      const listed = kept.slice(0, refusalsKeptMax - report.unknowns.length);
      for (const one of listed) printProblems(one, { err });
      report.kept += kept.length;
      report.unknowns.push(...listed);
      progress.show(
        `${counted(read, 'line')} read, ${report.imported + report.unchanged} of them stored`,
      );
    }
    progress.clear();
    for (const record of records) printWritten(record.line, problemsOf(record), { report, err });
    const unnamed = report.refused - report.refusals.length;
    if (unnamed > 0) writeLine(err, `… and ${unnamed} more refused lines.`);
    const unlisted = report.kept - report.unknowns.length;
    if (unlisted > 0) writeLine(err, `… and ${unlisted} more with invalid fields.`);
    return report;
  } catch (error) {
    progress.clear();
    if (report.imported > 0)
      writeLine(
        err,
        `Imported ${counted(report.imported, 'record')} before the failure; repeat the command ` +
          'to continue.',
      );
    throw error;
  } finally {
    progress.clear();
  }
}

async function* fileInput(file: string): AsyncGenerator<Uint8Array> {
  try {
    for await (const chunk of createReadStream(file)) yield chunk as Buffer;
  } catch (error) {
    const { code = '' } = error as NodeJS.ErrnoException;
    throw new Failure('not_found', `cannot read ${file} (${code})`, { cause: error });
  }
}
