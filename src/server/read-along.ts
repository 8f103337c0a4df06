import type { Duplex } from 'node:stream';
import { Wire } from '../http/wire.ts';
import type { Failure } from '../model/failure.ts';
import { knownHeadBytesMax } from '../model/limits.ts';

/** What reads the bytes of a connection: us, another protocol, or nobody any more. */
export type Reader = 'http' | 'other' | 'nobody';

/** What is asked of and told to whoever owns a connection. */
export interface Owner {
  readonly reader: () => Reader;
  /** Answers a whole request by its bytes, if it can do so without anything else. */
  readonly answerAtOnce: (text: string) => boolean;
  /** Told once, after the parser has had everything before what is refused. */
  readonly refused: (failure: Failure) => void;
}

/**
 * Puts a wire in front of the parser that Node has given a connection: the parser gets no byte that
 * the wire has not let pass, and none once nobody is to read.
 */
export function readAlong(socket: Duplex, { reader, answerAtOnce, refused }: Owner): Wire {
  const wire = new Wire();
  const parsers = socket.listeners('data') as ((chunk: Buffer) => void)[];
  socket.removeAllListeners('data');

  const read = (chunk: Buffer): void => {
    if (chunk.length <= knownHeadBytesMax && wire.isBetweenMessages && reader() === 'http') {
      if (answerAtOnce(chunk.toString('latin1'))) return;
    }
    let at = 0;
    while (at < chunk.length && reader() === 'http') {
      // The parser may be full: the rest comes again when it is not.
      if (at > 0 && socket.isPaused()) break;
      const end = wire.read(chunk, at);
      if (end > at) {
        const part = end - at === chunk.length ? chunk : chunk.subarray(at, end);
        for (const parse of parsers) parse.call(socket, part);
      }
      at = end;
      if (wire.refusal !== undefined && reader() === 'http') refused(wire.refusal);
    }
    if (reader() === 'other') socket.off('data', read);
    if (at < chunk.length && reader() !== 'nobody') socket.unshift(chunk.subarray(at));
  };
  socket.on('data', read);
  return wire;
}
