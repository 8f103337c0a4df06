import type { Duplex } from 'node:stream';
import { Wire } from '../http/wire.ts';

/** What reads the bytes of a connection: us, another protocol, or nobody any more. */
export type Reader = 'http' | 'other' | 'nobody';

/**
 * Puts a wire in front of the parser that Node has given a connection: the parser gets no byte that
 * the wire has not let pass, and none once nobody is to read. `refused` is called once, after the
 * parser has had everything before what is refused.
 */
export function readAlong(
  socket: Duplex,
  { reader, refused }: { readonly reader: () => Reader; readonly refused: (wire: Wire) => void },
): Wire {
  const wire = new Wire();
  const parsers = socket.listeners('data') as ((chunk: Buffer) => void)[];
  socket.removeAllListeners('data');

  const read = (chunk: Buffer): void => {
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
      if (wire.refusal !== undefined && reader() === 'http') refused(wire);
    }
    if (reader() === 'other') socket.off('data', read);
    if (at < chunk.length && reader() !== 'nobody') socket.unshift(chunk.subarray(at));
  };
  socket.on('data', read);
  return wire;
}
