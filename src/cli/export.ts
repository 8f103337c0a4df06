import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { Failure } from '../model/failure.ts';
import { exportedHistory, exportedRecords } from '../api/transfer/export.ts';
import { say, type Command, type Output } from './command.ts';
import { openExistingData } from './data.ts';
import { configOption, parseWords, requireConfig, requireNoMore } from './options.ts';

/** `waymark export`: the page rules and hooks, or the whole log, as NDJSON on standard output. */
export const exportCommand: Command = {
  usage: 'export [--history] [--config FILE] > FILE.ndjson',
  summary:
    'write all page rules and hooks as lines that import takes; with --history every change of ' +
    'the log, to read and to keep: a copy to go back to is made by backup',
  async run(words, terminal) {
    const { values, positionals } = parseWords(words, {
      ...configOption,
      history: { type: 'boolean', default: false },
    });
    requireNoMore(positionals);
    const config = await requireConfig(values.config, terminal);
    const store = await openExistingData(config);
    try {
      const lines = values.history ? exportedHistory(store) : exportedRecords(store);
      const count = await writeLines(lines, terminal.out);
      const what = values.history ? 'changes' : 'page rules and hooks';
      if (count !== undefined) say(terminal.err, `${count} ${what}.`);
      return 0;
    } finally {
      await store.close();
    }
  },
};

const pieceCharacters = 65_536;

/** Writes lines as fast as they are read; resolves to their count, undefined if nobody reads. */
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
      // So that the state of the store that was read is not kept from those who write.
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
    throw new Failure('unavailable', `the export cannot be written (${code ?? ''})`, {
      cause: error,
    });
  }
}
