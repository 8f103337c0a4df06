import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { Failure } from '../../model/failure.ts';
import { exportedHistory, exportedRecords } from '../../api/transfer/export.ts';
import { writeLine, type DefineCommand, type Output } from '../command.ts';
import { openDataToRead } from '../../data.ts';
import { configOption, requireConfig } from '../options.ts';

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
    .addOption(configOption())
    .action(async (options: { config?: string; history: boolean }) => {
      const store = await openDataToRead(await requireConfig(options.config, terminal));
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
        const count = await writeLines(lines, terminal.out);
        const what = options.history ? 'changes' : 'records';
        if (count !== undefined) writeLine(terminal.err, `Exported ${count} ${what}.`);
        if (damaged === 0) return;
        writeLine(terminal.err, `Skipped ${damaged} damaged changes.`);
        terminal.exitCode = 1;
      } finally {
        await store.close();
      }
    });
};

/** Damaged changes that get a line each. */
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
      piece += `${line}\n`;
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
