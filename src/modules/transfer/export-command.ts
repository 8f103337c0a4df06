import { parseJson } from '../../core/values/json/parse.ts';
import { resolve } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { Option } from 'commander';
import { AssetFiles } from '../assets/asset-files.ts';
import { assetIn, assetTable, type Asset } from '../assets/asset.ts';
import { exportFiles } from '../assets/file-copies.ts';
import { withoutControls } from '../../core/report/escape.ts';
import { Failure } from '../../core/values/failure.ts';
import type { JsonObject } from '../../core/values/json/json.ts';
import { exportedHistory, exportedRecords } from './export.ts';
import { writeLine, type DefineCommand, type Output, type Terminal } from '../../cli/command.ts';
import { openDataToRead } from '../../cli/open-data.ts';
import { configOption, requireConfig } from '../../cli/options.ts';
import { copiedText, createProgress } from '../../cli/progress.ts';

/**
 * `waymark export`: writes page rules, hooks, tables and rows, or the whole log, as NDJSON to
 * standard output.
 */
export const defineExport: DefineCommand = (command, terminal) => {
  command
    .description(
      'Write all page rules, hooks, tables and rows to standard output, a JSON object a line.',
    )
    .option('--history', 'write every change of the log instead, for reading or archiving', false)
    .addOption(
      new Option('--files <dir>', 'also copy the files of assets into a folder').conflicts(
        'history',
      ),
    )
    .addOption(configOption())
    .action(async (options: { config?: string; history: boolean; files?: string }) => {
      const config = await requireConfig(options.config, terminal);
      const store = await openDataToRead(config);
      try {
        await store.checkPages();
        let damaged = 0;
        const skip = (seq: number): void => {
          damaged += 1;
          if (damaged > damagedListed) return;
          writeLine(
            terminal.err,
            `change ${seq} is damaged and was skipped; \`check --data\` shows details`,
          );
        };
        const lines = options.history ? exportedHistory(store, skip) : exportedRecords(store, skip);
        const assets: Asset[] = [];
        const count = await writeLines(withAssets(lines, assets), terminal.out);
        const what = options.history ? 'changes' : 'records';
        if (count !== undefined) writeLine(terminal.err, `Exported ${count} ${what}.`);
        if (options.files !== undefined) {
          const target = resolve(options.files);
          const isWhole = await copyFiles(config.server.data, { assets, target }, terminal);
          if (!isWhole) terminal.exitCode = 1;
        }
        if (damaged === 0) return;
        writeLine(terminal.err, `Skipped ${damaged} damaged changes.`);
        terminal.exitCode = 1;
      } finally {
        await store.close();
      }
    });
};

/** Passes lines on, and collects the assets in them: their files belong to the same moment. */
function* withAssets(lines: Iterable<string>, assets: Asset[]): Iterable<string> {
  for (const line of lines) {
    yield line;
    if (!line.startsWith('{"a":"svc1.record.insert"')) continue;
    const { v } = parseJson(line) as { readonly v: JsonObject };
    const asset = v.table === assetTable ? assetIn(v) : undefined;
    if (asset !== undefined) assets.push(asset);
  }
}

/** Copies the files of assets into a folder; resolves to whether all of them were whole. */
async function copyFiles(
  data: string,
  { assets, target: folder }: { readonly assets: readonly Asset[]; readonly target: string },
  { err }: Terminal,
): Promise<boolean> {
  const progress = createProgress(err, Date.now);
  const { files, bytes, problems } = await exportFiles(new AssetFiles(data), assets, {
    folder,
    show: (copied) => {
      progress.show(copiedText(copied));
    },
  }).finally(() => {
    progress.clear();
  });
  for (const problem of problems.slice(0, damagedListed)) writeLine(err, problem);
  if (problems.length > damagedListed)
    writeLine(err, `and ${problems.length - damagedListed} more`);
  writeLine(err, `Copied ${copiedText({ files, bytes })} to ${folder}.`);
  return problems.length === 0;
}

/** Damaged changes, and files, that get a line each. */
const damagedListed = 20;
const pieceCharacters = 65_536;

/**
 * Writes lines as fast as the reader takes them; resolves to their count, or to undefined if the
 * reader closes the pipe.
 */
async function writeLines(lines: Iterable<string>, out: Output): Promise<number | undefined> {
  let count = 0;
  async function* pieces(): AsyncGenerator<string> {
    let piece = '';
    for (const line of lines) {
      count += 1;
      piece += `${withoutControls(line)}\n`;
      if (piece.length < pieceCharacters) continue;
      yield piece;
      piece = '';
      // The next turn has a new read transaction: an old one keeps writers from reusing free pages.
      await nextTurn();
    }
    if (piece !== '') yield piece;
  }
  try {
    await pipeline(Readable.from(pieces()), out, { end: false });
    return count;
  } catch (error) {
    const { code, syscall } = error as NodeJS.ErrnoException;
    if (code === 'EPIPE' || code === 'ERR_STREAM_PREMATURE_CLOSE') return undefined;
    if (syscall !== 'write') throw error;
    throw new Failure('unavailable', `cannot write the export (${code ?? ''})`, {
      cause: error,
    });
  }
}
