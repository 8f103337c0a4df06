import type { Duplex } from 'node:stream';
import { Wire } from '../../http/wire.ts';
import type { Failure } from '../../model/failure.ts';
import { directHeadBytesMax } from './limits.ts';
import { tooLate } from './refusal.ts';

/** Which part reads the bytes of a connection: HTTP, another protocol, or none any more. */
export type Reader = 'http' | 'other' | 'nobody';

/** The callbacks of the owner of a connection. */
interface Owner {
  readonly reader: () => Reader;
  /**
   * Takes a whole request by its bytes, if it is one to be answered without the parser; `parse`
   * lets the parser have them after all.
   */
  readonly answerAtOnce: (text: string, parse: () => void) => boolean;
  /** Told of what comes while such an answer is being made. */
  readonly more: () => void;
  /** Told once, after the parser has had everything before what is refused. */
  readonly refused: (failure: Failure) => void;
  /** Milliseconds for a head, where the parser does not see that one has begun. */
  readonly headMs: number;
}

/**
 * Puts a wire in front of the parser that Node has given a connection: the parser gets no byte that
 * the wire has not let pass, and none once nobody is to read.
 */
export function readAlong(
  socket: Duplex,
  { reader, answerAtOnce, more, refused, headMs }: Owner,
): Wire {
  const wire = new Wire();
  const parsers = socket.listeners('data') as ((chunk: Buffer) => void)[];
  socket.removeAllListeners('data');

  let heldTimer: NodeJS.Timeout | undefined;
  const boundHeld = (): void => {
    if (heldTimer !== undefined) return;
    heldTimer = setTimeout(() => {
      if (wire.refusal === undefined) refused(tooLate('header_time'));
    }, headMs).unref();
    socket.once('close', () => {
      clearTimeout(heldTimer);
    });
  };

  const read = (chunk: Buffer): void => {
    more();
    if (chunk.length <= directHeadBytesMax && wire.isBetweenMessages && reader() === 'http') {
      const isTaken = answerAtOnce(chunk.toString('latin1'), () => {
        parseAlong(chunk);
      });
      if (isTaken) return;
    }
    parseAlong(chunk);
  };
  const parseAlong = (chunk: Buffer): void => {
    let at = 0;
    while (at < chunk.length && reader() === 'http') {
      // The parser may be full: the rest comes again when it is not.
      if (at > 0 && socket.isPaused()) break;
      const end = wire.read(chunk, at);
      if (wire.isHeld) boundHeld();
      else if (end > at) {
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
