import { randomBytes } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { engineNames } from '../compose.ts';
import { openData } from '../data.ts';
import { Failure } from '../model/failure.ts';
import { refusalsKeptMax } from '../model/limits.ts';
import { readBlocks } from '../api/transfer/import-blocks.ts';
import type { Kept, Refusal } from '../api/transfer/import-line.ts';
import { createLineReader } from '../api/transfer/import-worker.ts';
import { importBlocks, type ImportStep } from '../api/transfer/import.ts';
import { createSecret } from '../webhooks/sign.ts';
import { say, type DefineCommand, type Terminal } from './command.ts';
import { configOption, jsonOption, requireConfig } from './options.ts';
import { createProgress } from './progress.ts';

interface ImportOptions {
  readonly config?: string;
  readonly json: boolean;
}

/** `waymark import`: page rules and hooks from NDJSON into the data, also beside a server. */
export const defineImport: DefineCommand = (command, terminal) => {
  command
    .description(
      'Add page rules and hooks, a JSON object a line: {…fields, "vk"} or {"a", "v", "vk"}. ' +
        'Records that exist stay as they are; a line that is refused stops no other one.',
    )
    .argument('[file]', 'an NDJSON file; - is standard input', '-')
    .addOption(configOption())
    .addOption(jsonOption())
    .action(async (file: string, options: ImportOptions) => {
      terminal.exitCode = await importFile(file, options, terminal);
    });
};

async function importFile(
  file: string,
  { config: iniFile, json }: ImportOptions,
  terminal: Terminal,
): Promise<number> {
  const config = await requireConfig(iniFile, terminal);
  const input = file === '-' ? terminal.input() : fileInput(file);
  const reader = createLineReader(engineNames(config));
  const store = await openData(config.server.data);
  try {
    await store.checkPages();
    const newSecret = () => createSecret(randomBytes);
    const parts = { store, newSecret };
    const steps = importBlocks(parts, readBlocks(input, reader.read));
    const report = await follow(steps, terminal);
    const { imported, unchanged, refused } = report;
    const text = `imported ${imported}, unchanged ${unchanged}, refused ${refused}`;
    say(terminal.out, json ? JSON.stringify(report) : text);
    return refused > 0 ? 1 : 0;
  } finally {
    await reader.close();
    await store.close();
  }
}

/** What became of all lines; only the first of those that are worth a word are told one by one. */
interface Report {
  imported: number;
  unchanged: number;
  refused: number;
  readonly refusals: Refusal[];
  /** Lines that came in with something that is not valid. */
  kept: number;
  readonly unknowns: Kept[];
}

/** Shows how an import goes on; what a failure comes after is said before it. */
async function follow(steps: AsyncIterable<ImportStep>, { err }: Terminal): Promise<Report> {
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
    for await (const { read, imported, unchanged, refused, kept } of steps) {
      report.imported += imported;
      report.unchanged += unchanged;
      report.refused += refused.length;
      report.refusals.push(...refused.slice(0, refusalsKeptMax - report.refusals.length));
      if (refused.length + kept.length > 0) progress.clear();
      for (const { line, why } of refused) say(err, `line ${line}: ${why}`);
      const told = kept.slice(0, refusalsKeptMax - report.unknowns.length);
      for (const { line, names } of told) {
        say(err, `line ${line}: not valid, kept in _unknowns_: ${names.join(', ')}.`);
      }
      report.kept += kept.length;
      report.unknowns.push(...told);
      progress.show(`${read} lines read, ${report.imported + report.unchanged} of them stored`);
    }
    const untold = report.kept - report.unknowns.length;
    if (untold > 0) say(err, `… and ${untold} more lines with something that is not valid.`);
    return report;
  } catch (error) {
    progress.clear();
    if (report.imported > 0) say(err, `${report.imported} records are in; run it again to go on.`);
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
    throw new Failure('not_found', `${file} cannot be read (${code})`, { cause: error });
  }
}
