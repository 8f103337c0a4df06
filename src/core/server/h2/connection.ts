import {
  headerBlockBytesMax,
  headerFieldsMax,
  requestLineBytesMax,
  trailerBytesMax,
} from '../../http/limits.ts';
import { KIB, MIB } from '../../values/units.ts';
import {
  ConnectionError,
  type ErrorName,
  type Frame,
  FrameReader,
  errorCodes,
  flags,
  frameHeadBytes,
  frameOf,
  frameTypes,
  initialWindow,
  numbersFrame,
  settingIds,
  settingsFrame,
  windowMax,
  writeFrameHead,
} from './frames.ts';
import { HpackDecoder, HpackError } from './hpack/decoder.ts';
import { http2FrameBytesMax, http2TinyPieceBytes, http2WindowBytes } from './limits.ts';
import { ReceiveWindow, type SharedBytes } from './receive-window.ts';
import { type Http2RequestHead, areTrailers, readRequestHead } from './request-head.ts';
import {
  type BytesTaken,
  type EncodedHead,
  EndedStreams,
  Stream,
  joinedHead,
  parsePriority,
} from './stream.ts';

/** Open requests of one connection, and of all connections. */
export const http2ConcurrentStreamsMax = 100;

/** Cookie fields of a request, besides its other fields. */
const http2CookieFieldsMax = 200;

/** A header block as it arrives, and the CONTINUATION frames that it may consist of. */
const http2BlockBytesMax = 64 * KIB;
const http2ContinuationsMax = 16;

/** Entries of a SETTINGS frame. */
const http2SettingsMax = 32;

/** Bytes of a connection that wait for the system to take them, before more content follows. */
export const http2QueuedBytesMax = 128 * KIB;

/** Content that is copied behind the head of its frame, and frames that are copied together. */
const http2CopiedBytesMax = 4 * KIB;

/** Answers to frames without a request that wait for a client that does not read. */
const http2ControlBytesMax = 64 * KIB;

/** All frames that wait for a client that does not read, and sends frames nevertheless. */
export const http2UnreadBytesMax = MIB;

/** Where the bytes of a connection go. */
interface Sink {
  /** Writes bytes; calls `done` when the system has taken all of them, or takes no more. */
  write(pieces: readonly Buffer[], done: BytesTaken): void;
  /** Ends the connection after all bytes that were written. */
  end(): void;
}

/** Frames that are harmless alone; `ConnectionEvents.counted` decides how many are too many. */
export type Counted = 'idle' | 'invalid' | 'reset' | 'tiny' | 'vain';

/** What a connection tells its server. */
interface ConnectionEvents {
  /**
   * A request has begun. `isTooLarge` if its head exceeds the limits: then `head` has only a part
   * of its fields. Returns false if the server takes no request now.
   */
  readonly request: (stream: Stream, head: Http2RequestHead, isTooLarge: boolean) => boolean;
  /** No request is open any more. */
  readonly idle: () => void;
  readonly counted: (what: Counted) => void;
  /** The client has made an error that ends the connection. */
  readonly failed: (message: string) => void;
}

/** The surroundings of a connection. */
interface ConnectionParts {
  readonly sink: Sink;
  readonly events: ConnectionEvents;
  readonly isSecure: boolean;
  /** The bytes that all connections may have above their initial windows. */
  readonly windows: SharedBytes;
}

/** A header block that has not ended yet (§4.3). */
interface OpenBlock {
  readonly stream: number;
  readonly endsStream: boolean;
  readonly parts: Buffer[];
  bytes: number;
}

/** One field more than allowed is kept, so that validation can refuse the request. */
const blockLimits = {
  bytesMax: headerBlockBytesMax + requestLineBytesMax,
  fieldsMax: headerFieldsMax + http2CookieFieldsMax + 5,
};
/** The contents of the server's PING frames: to measure a round trip, and before it goes away. */
const measuringPing = Buffer.from('waymark1', 'latin1');
const leavingPing = Buffer.from('waymark2', 'latin1');

const ownSettings = settingsFrame([
  [settingIds.enablePush, 0],
  [settingIds.maxConcurrentStreams, http2ConcurrentStreamsMax],
  [settingIds.initialWindowSize, http2WindowBytes],
  [settingIds.maxHeaderListSize, headerBlockBytesMax + requestLineBytesMax],
  [settingIds.enableConnectProtocol, 1],
  [settingIds.noRfc7540Priorities, 1],
]);

/**
 * A connection of HTTP/2 on the server's side (RFC 9113): bytes of the client in, requests out;
 * answers in, bytes out. It has no socket and no clock.
 */
export class Http2Connection {
  readonly streams = new Map<number, Stream>();
  /** The id of the newest request. */
  newestStream = 0;
  /** Bytes of content that were handed to the sink: they grow only while the client reads. */
  contentBytes = 0;
  /** Bytes that the system has not taken yet. */
  queuedBytes = 0;
  isEnded = false;
  readonly #parts: ConnectionParts;
  readonly #frames = new FrameReader();
  readonly #decoder = new HpackDecoder();
  readonly #window: ReceiveWindow;
  /** Bytes of content that the client may still send, those at most, and those read meanwhile. */
  #receiveWindow = initialWindow;
  #receiveSize = initialWindow;
  #unreturned = 0;
  #sendWindow = initialWindow;
  /** The client's SETTINGS_INITIAL_WINDOW_SIZE. */
  #streamSendWindow = initialWindow;
  #hasSettings = false;
  #block: OpenBlock | undefined;
  readonly #endedStreams = new EndedStreams();
  /** Streams with content to send, in the order in which they share the connection. */
  readonly #sending = new Set<Stream>();
  #output: Buffer[] = [];
  #outputBytes = 0;
  #dones: BytesTaken[] = [];
  #isFlushScheduled = false;
  #isReceiving = false;
  /** Whether the server takes no further request, and the last one that it takes. */
  #lastTaken: number | undefined;

  constructor(parts: ConnectionParts) {
    this.#parts = parts;
    this.#window = new ReceiveWindow(parts.windows);
    this.#send(ownSettings);
  }

  /** The window that each stream gets, at most. */
  get streamWindow(): number {
    return this.#window.size;
  }

  /** Whether content has to wait for the client. */
  get isBlocked(): boolean {
    return this.#sendWindow <= 0 || !this.#hasRoom();
  }

  /** Whether the preface or the head of a request has begun and not ended. */
  get isHeadWaiting(): boolean {
    if (this.#block !== undefined || !this.#hasSettings) return true;
    return this.streams.size === 0 && this.#frames.isWaiting;
  }

  /** Whether content or an end waits to be sent. */
  get isSending(): boolean {
    return this.#sending.size > 0;
  }

  /** Reads bytes of the client. */
  receive(chunk: Buffer): void {
    if (this.isEnded) return;
    this.#isReceiving = true;
    try {
      this.#frames.read(chunk, this.#take);
    } catch (thrown) {
      if (thrown instanceof HpackError) this.#fail('COMPRESSION_ERROR', thrown.message);
      else if (thrown instanceof ConnectionError) this.#fail(thrown.code, thrown.message);
      else throw thrown;
    } finally {
      this.#isReceiving = false;
      this.#pump();
      this.flush();
    }
  }

  /** Writes all frames that wait for the end of this turn of the event loop. */
  flush(): void {
    if (this.#output.length === 0) return;
    const [output, bytes] = [this.#output, this.#outputBytes];
    const dones = this.#dones.length > 0 ? this.#dones : undefined;
    this.#output = [];
    this.#outputBytes = 0;
    if (dones !== undefined) this.#dones = [];
    this.queuedBytes += bytes;
    this.#parts.sink.write(output, (isTaken) => {
      this.queuedBytes -= bytes;
      if (dones !== undefined) for (const done of dones) done(isTaken);
      if (this.#sending.size > 0) this.#pump();
    });
  }

  /** Ends the connection with an error of the client, or because it ends (§5.4.1, §6.8). */
  end(code: ErrorName): void {
    if (this.isEnded) return;
    this.#send(numbersFrame(frameTypes.goaway, 0, this.newestStream, errorCodes[code]));
    this.#finish();
    this.close();
  }

  /**
   * Takes no further request, and ends the connection after the open ones. `isAnnounced` warns the
   * client first, and takes the requests that cross the warning (§6.8).
   */
  leave({ isAnnounced }: { readonly isAnnounced: boolean }): void {
    if (this.isEnded || this.#lastTaken !== undefined) return;
    if (isAnnounced) {
      this.#send(numbersFrame(frameTypes.goaway, 0, windowMax, errorCodes.NO_ERROR));
      this.#send(frameOf(frameTypes.ping, 0, 0, leavingPing));
      return;
    }
    this.#lastTaken = this.newestStream;
    this.#send(numbersFrame(frameTypes.goaway, 0, this.newestStream, errorCodes.NO_ERROR));
    if (this.streams.size === 0) this.#finish();
  }

  /** To be called when the connection has closed: ends all streams. */
  close(): void {
    this.isEnded = true;
    this.#window.close();
    this.#sending.clear();
    for (const stream of [...this.streams.values()]) this.#closeStream(stream, 'client');
    for (const done of this.#dones.splice(0)) done(false);
  }

  sendHeaders(stream: Stream, block: Buffer, isWhole: boolean): void {
    const ending = isWhole ? flags.endStream : 0;
    if (block.length <= http2FrameBytesMax) {
      const flag = flags.endHeaders | ending;
      this.#sendFrame({ type: frameTypes.headers, flag, stream: stream.id }, block);
    } else this.#sendLongBlock(stream.id, block, ending);
    if (isWhole) this.#answerEnded(stream);
  }

  /** Sends content of a stream when windows and queue allow it. */
  sendLater(stream: Stream): void {
    this.#sending.add(stream);
    if (!this.#isReceiving) this.#pump();
  }

  resetStream(stream: Stream, code: number): void {
    this.#send(numbersFrame(frameTypes.resetStream, stream.id, code));
    this.#closeStream(stream, 'server');
  }

  sendWindowUpdate(stream: number, bytes: number): void {
    this.#send(numbersFrame(frameTypes.windowUpdate, stream, bytes));
  }

  /** Returns read bytes to the window of the connection. */
  consumed(bytes: number): void {
    if (this.isEnded) return;
    if (this.#window.consumed(bytes)) this.#send(frameOf(frameTypes.ping, 0, 0, measuringPing));
    this.#unreturned += bytes;
    if (2 * this.#unreturned >= this.#receiveSize) this.#returnWindow();
  }

  #returnWindow(): void {
    const more = this.#unreturned + this.#window.size - this.#receiveSize;
    this.#unreturned = 0;
    this.#receiveSize = this.#window.size;
    this.#receiveWindow += more;
    this.sendWindowUpdate(0, more);
  }

  readonly #take = (frame: Frame): boolean => {
    if (!this.#hasSettings && (frame.type !== frameTypes.settings || (frame.flag & 1) !== 0)) {
      throw new ConnectionError('PROTOCOL_ERROR', 'The first frame is not SETTINGS.');
    }
    // Heads of answers and resets have no window: their memory has this limit.
    if (this.queuedBytes + this.#outputBytes > http2UnreadBytesMax) {
      throw new ConnectionError('ENHANCE_YOUR_CALM', 'The client reads no answers.');
    }
    const { type } = frame;
    if (this.#block !== undefined && type !== frameTypes.continuation) {
      throw new ConnectionError('PROTOCOL_ERROR', 'A frame interrupts a header block.');
    }
    switch (type) {
      case frameTypes.data:
        this.#readData(frame);
        break;
      case frameTypes.headers:
        this.#readHeaders(frame);
        break;
      case frameTypes.continuation:
        this.#readContinuation(frame);
        break;
      case frameTypes.windowUpdate:
        this.#readWindowUpdate(frame);
        break;
      case frameTypes.resetStream:
        this.#readReset(frame);
        break;
      case frameTypes.settings:
        this.#readSettings(frame);
        break;
      case frameTypes.ping:
        this.#readPing(frame);
        break;
      case frameTypes.priority:
        this.#readPriority(frame);
        break;
      case frameTypes.priorityUpdate:
        this.#readPriorityUpdate(frame);
        break;
      case frameTypes.goaway:
        requireOnConnection(frame);
        if (frame.end - frame.start < 8) throw wrongLength(frame);
        this.leave({ isAnnounced: false });
        break;
      case frameTypes.pushPromise:
        throw new ConnectionError('PROTOCOL_ERROR', 'A client cannot push.');
      default:
        // Unknown frames are ignored (§5.5), but not for nothing.
        this.#parts.events.counted('idle');
    }
    return !this.isEnded;
  };

  #readData(frame: Frame): void {
    requireOnStream(frame);
    const { stream: id, bytes } = frame;
    const length = frame.end - frame.start;
    if (length > this.#receiveWindow) {
      throw new ConnectionError('FLOW_CONTROL_ERROR', 'DATA exceeds the window of the connection.');
    }
    this.#receiveWindow -= length;
    const { start, end } = withoutPadding(frame);
    const stream = this.streams.get(id);
    const endsStream = (frame.flag & flags.endStream) !== 0;
    if (stream === undefined) {
      this.consumed(length);
      this.#refuseOnEnded(id, 'DATA');
      return;
    }
    if (stream.hasRequestEnded) {
      this.consumed(length);
      this.#invalid(stream, 'STREAM_CLOSED');
      return;
    }
    if (length > stream.receiveWindow) {
      this.consumed(length);
      this.#invalid(stream, 'FLOW_CONTROL_ERROR');
      return;
    }
    stream.receiveWindow -= length;
    // Padding is read as soon as it is here.
    const padding = length - (end - start);
    if (padding > 0) stream.consumed(padding);
    if (start === end && !endsStream) this.#parts.events.counted('invalid');
    stream.receivedBytes += end - start;
    const { length: announced, receivedBytes } = stream;
    const isWrong =
      announced !== undefined &&
      (receivedBytes > announced || (endsStream && receivedBytes !== announced));
    if (isWrong) {
      this.consumed(end - start);
      this.#invalid(stream, 'PROTOCOL_ERROR');
      return;
    }
    if (end > start) stream.reader?.data(pieceOf(bytes, start, end));
    if (endsStream) this.#requestEnded(stream, []);
  }

  #readHeaders(frame: Frame): void {
    requireOnStream(frame);
    const { stream, flag } = frame;
    const { start: first, end } = withoutPadding(frame);
    let start = first;
    if ((flag & flags.priority) !== 0) {
      if (end - start < 5) throw wrongLength(frame);
      if ((frame.bytes.readUInt32BE(start) & windowMax) === stream) {
        throw new ConnectionError('PROTOCOL_ERROR', 'A stream depends on itself.');
      }
      start += 5;
    }
    const part = frame.bytes.subarray(start, end);
    const endsStream = (flag & flags.endStream) !== 0;
    if ((flag & flags.endHeaders) !== 0) {
      this.#readBlock(stream, endsStream, part);
      return;
    }
    // The bytes may be overwritten before the rest arrives.
    this.#block = { stream, endsStream, parts: [Buffer.from(part)], bytes: part.length };
  }

  #readContinuation(frame: Frame): void {
    const block = this.#block;
    if (block === undefined || block.stream !== frame.stream) {
      throw new ConnectionError('PROTOCOL_ERROR', 'CONTINUATION continues no header block.');
    }
    const part = frame.bytes.subarray(frame.start, frame.end);
    block.bytes += part.length;
    block.parts.push(Buffer.from(part));
    if (block.bytes > http2BlockBytesMax || block.parts.length > http2ContinuationsMax) {
      throw new ConnectionError('ENHANCE_YOUR_CALM', 'A header block does not end.');
    }
    if ((frame.flag & flags.endHeaders) === 0) return;
    this.#block = undefined;
    this.#readBlock(block.stream, block.endsStream, Buffer.concat(block.parts));
  }

  /** Reads a whole header block: of a request, or of its trailer fields. */
  #readBlock(id: number, endsStream: boolean, block: Buffer): void {
    const { fields, bytes, count } = this.#decoder.decode(block, blockLimits);
    const stream = this.streams.get(id);
    if (stream !== undefined) {
      if (stream.hasRequestEnded) this.#invalid(stream, 'STREAM_CLOSED');
      else if (bytes > trailerBytesMax) this.#invalid(stream, 'ENHANCE_YOUR_CALM');
      else if (!endsStream || !areTrailers(fields)) this.#invalid(stream, 'PROTOCOL_ERROR');
      else if (stream.length !== undefined && stream.receivedBytes !== stream.length) {
        this.#invalid(stream, 'PROTOCOL_ERROR');
      } else this.#requestEnded(stream, fields);
      return;
    }
    if (id % 2 === 0) throw new ConnectionError('PROTOCOL_ERROR', 'A client opens an even stream.');
    if (id <= this.newestStream) {
      this.#refuseOnEnded(id, 'HEADERS');
      return;
    }
    if (this.#lastTaken !== undefined) {
      // A client may have sent some before it has read GOAWAY.
      this.#parts.events.counted('invalid');
      return;
    }
    this.newestStream = id;
    const isMuch = count > blockLimits.fieldsMax || bytes > 4 * blockLimits.bytesMax;
    if (isMuch) this.#refuse(id, 'ENHANCE_YOUR_CALM');
    else this.#begin(id, fields, { endsStream, isTooLarge: bytes > blockLimits.bytesMax });
  }

  #begin(
    id: number,
    fields: readonly string[],
    { endsStream, isTooLarge }: { readonly endsStream: boolean; readonly isTooLarge: boolean },
  ): void {
    const { events, isSecure } = this.#parts;
    const head = readRequestHead(fields, { hasContent: !endsStream, isSecure });
    if (head === undefined) {
      this.#refuse(id, 'PROTOCOL_ERROR');
      return;
    }
    if (this.streams.size >= http2ConcurrentStreamsMax) {
      this.#refuse(id, 'REFUSED_STREAM');
      return;
    }
    const sendWindow = this.#streamSendWindow;
    const stream = new Stream(this, id, { sendWindow, length: head.length });
    stream.hasRequestEnded = endsStream;
    if (head.priority !== undefined) stream.priority = parsePriority(head.priority);
    this.streams.set(id, stream);
    if (!events.request(stream, head, isTooLarge) && !stream.isClosed) {
      stream.reset('REFUSED_STREAM');
    }
  }

  /** Refuses a request that is not a stream yet. */
  #refuse(id: number, code: ErrorName): void {
    this.#send(numbersFrame(frameTypes.resetStream, id, errorCodes[code]));
    this.#endedStreams.add(id, 'server');
    this.#parts.events.counted('invalid');
  }

  #readWindowUpdate(frame: Frame): void {
    if (frame.end - frame.start !== 4) throw wrongLength(frame);
    const more = frame.bytes.readUInt32BE(frame.start) & windowMax;
    const { stream: id } = frame;
    if (id === 0) {
      if (more === 0) throw new ConnectionError('PROTOCOL_ERROR', 'WINDOW_UPDATE adds nothing.');
      this.#sendWindow += more;
      if (this.#sendWindow > windowMax) {
        throw new ConnectionError(
          'FLOW_CONTROL_ERROR',
          'The window of the connection is too large.',
        );
      }
      return;
    }
    const stream = this.streams.get(id);
    if (stream === undefined) {
      this.#requireBegun(id, 'WINDOW_UPDATE');
      this.#parts.events.counted('vain');
      return;
    }
    if (more === 0) this.#invalid(stream, 'PROTOCOL_ERROR');
    else if (stream.sendWindow + more > windowMax) this.#invalid(stream, 'FLOW_CONTROL_ERROR');
    else stream.sendWindow += more;
  }

  #readReset(frame: Frame): void {
    requireOnStream(frame);
    if (frame.end - frame.start !== 4) throw wrongLength(frame);
    const stream = this.streams.get(frame.stream);
    if (stream === undefined) {
      this.#requireBegun(frame.stream, 'RST_STREAM');
      this.#parts.events.counted('vain');
      return;
    }
    this.#closeStream(stream, 'client');
    this.#parts.events.counted('reset');
  }

  #readSettings(frame: Frame): void {
    requireOnConnection(frame);
    const length = frame.end - frame.start;
    if ((frame.flag & flags.ack) !== 0) {
      if (length !== 0) throw wrongLength(frame);
      return;
    }
    if (length % 6 !== 0) throw wrongLength(frame);
    if (length > 6 * http2SettingsMax) {
      throw new ConnectionError('ENHANCE_YOUR_CALM', 'SETTINGS has too many entries.');
    }
    for (let at = frame.start; at < frame.end; at += 6) {
      this.#applySetting(frame.bytes.readUInt16BE(at), frame.bytes.readUInt32BE(at + 2));
    }
    if (this.#hasSettings) this.#parts.events.counted('idle');
    this.#hasSettings = true;
    this.#sendControl(frameOf(frameTypes.settings, flags.ack, 0, noContent));
  }

  #applySetting(id: number, value: number): void {
    if (id === settingIds.enablePush && value > 1) {
      throw new ConnectionError('PROTOCOL_ERROR', `SETTINGS_ENABLE_PUSH is ${value}.`);
    }
    if (id === settingIds.maxFrameSize && (value < 16_384 || value > 16_777_215)) {
      throw new ConnectionError('PROTOCOL_ERROR', `SETTINGS_MAX_FRAME_SIZE is ${value}.`);
    }
    if (id !== settingIds.initialWindowSize) return;
    if (value > windowMax) {
      throw new ConnectionError('FLOW_CONTROL_ERROR', `SETTINGS_INITIAL_WINDOW_SIZE is ${value}.`);
    }
    const more = value - this.#streamSendWindow;
    this.#streamSendWindow = value;
    for (const stream of this.streams.values()) {
      stream.sendWindow += more;
      if (stream.sendWindow > windowMax) {
        throw new ConnectionError('FLOW_CONTROL_ERROR', 'The window of a stream is too large.');
      }
    }
  }

  #readPing(frame: Frame): void {
    requireOnConnection(frame);
    if (frame.end - frame.start !== 8) throw wrongLength(frame);
    const content = frame.bytes.subarray(frame.start, frame.end);
    if ((frame.flag & flags.ack) === 0) {
      this.#parts.events.counted('idle');
      this.#sendControl(frameOf(frameTypes.ping, flags.ack, 0, content));
    } else if (content.equals(measuringPing)) this.#measured();
    else if (content.equals(leavingPing)) this.leave({ isAnnounced: false });
    else this.#parts.events.counted('idle');
  }

  #measured(): void {
    if (!this.#window.acknowledged()) return;
    this.#returnWindow();
    for (const stream of this.streams.values()) {
      if (stream.receivedBytes > 0) stream.returnWindow();
    }
  }

  /** Priorities of RFC 7540 have no effect (§5.3.2), but their form is checked (§6.3). */
  #readPriority(frame: Frame): void {
    requireOnStream(frame);
    if (frame.end - frame.start !== 5) throw wrongLength(frame);
    if ((frame.bytes.readUInt32BE(frame.start) & windowMax) === frame.stream) {
      const stream = this.streams.get(frame.stream);
      if (stream !== undefined) this.#invalid(stream, 'PROTOCOL_ERROR');
      else this.#refuse(frame.stream, 'PROTOCOL_ERROR');
    } else this.#parts.events.counted('vain');
  }

  #readPriorityUpdate(frame: Frame): void {
    requireOnConnection(frame);
    if (frame.end - frame.start < 4) throw wrongLength(frame);
    const id = frame.bytes.readUInt32BE(frame.start) & windowMax;
    if (id === 0) throw new ConnectionError('PROTOCOL_ERROR', 'PRIORITY_UPDATE names no stream.');
    const stream = this.streams.get(id);
    this.#parts.events.counted('idle');
    if (stream === undefined) return;
    stream.priority = parsePriority(frame.bytes.toString('latin1', frame.start + 4, frame.end));
  }

  #requestEnded(stream: Stream, trailers: readonly string[]): void {
    stream.hasRequestEnded = true;
    stream.reader?.end(trailers);
    if (stream.hasAnswerEnded) this.#closeStream(stream, undefined);
  }

  #answerEnded(stream: Stream): void {
    stream.hasAnswerEnded = true;
    if (stream.hasRequestEnded) this.#closeStream(stream, undefined);
  }

  #closeStream(stream: Stream, resetBy: Stream['resetBy']): void {
    if (stream.isClosed) return;
    stream.resetBy = resetBy;
    this.streams.delete(stream.id);
    this.#sending.delete(stream);
    this.#endedStreams.add(stream.id, resetBy);
    stream.close();
    if (this.streams.size > 0) return;
    if (this.#lastTaken !== undefined && !this.isEnded) this.#finish();
    else this.#parts.events.idle();
  }

  /** A frame on a stream that is no longer open (§5.1). */
  #refuseOnEnded(id: number, what: string): void {
    this.#requireBegun(id, what);
    if (id > (this.#lastTaken ?? Infinity)) {
      this.#parts.events.counted('vain');
      return;
    }
    const resetBy = this.#endedStreams.resetBy(id);
    if (resetBy === 'unknown') {
      const code = what === 'HEADERS' ? 'PROTOCOL_ERROR' : 'STREAM_CLOSED';
      throw new ConnectionError(code, `${what} names a stream of the past.`);
    }
    // Such frames were on their way when the server reset the stream.
    if (resetBy === 'server') {
      this.#parts.events.counted('vain');
      return;
    }
    if (resetBy === undefined) {
      throw new ConnectionError('STREAM_CLOSED', `${what} follows the end of its stream.`);
    }
    this.#refuse(id, 'STREAM_CLOSED');
  }

  #requireBegun(id: number, what: string): void {
    if (id <= this.newestStream || this.#lastTaken !== undefined) return;
    throw new ConnectionError('PROTOCOL_ERROR', `${what} names a stream that has not begun.`);
  }

  /** An error of the client that ends a stream (§5.4.2). */
  #invalid(stream: Stream, code: ErrorName): void {
    this.resetStream(stream, errorCodes[code]);
    this.#parts.events.counted('invalid');
  }

  #fail(code: ErrorName, message: string): void {
    if (this.isEnded) return;
    this.#parts.events.failed(message);
    this.end(code);
  }

  #finish(): void {
    if (this.isEnded) return;
    this.isEnded = true;
    this.flush();
    this.#parts.sink.end();
  }

  /** Sends what the windows allow, the most urgent answers first (RFC 9218 §10). */
  #pump(): void {
    while (this.#sending.size > 0 && this.#hasRoom()) {
      const stream = this.#nextStream();
      if (stream === undefined) return;
      this.#sendContent(stream);
    }
  }

  #hasRoom(): boolean {
    return this.queuedBytes + this.#outputBytes < http2QueuedBytesMax;
  }

  #nextStream(): Stream | undefined {
    let next: Stream | undefined;
    for (const stream of this.#sending) {
      if (!stream.isSendable || (stream.unsentBytes > 0 && this.#sendWindow <= 0)) continue;
      if (next === undefined || stream.priority.urgency < next.priority.urgency) next = stream;
    }
    return next;
  }

  #sendContent(stream: Stream): void {
    const head = stream.takeHead();
    if (head !== undefined) {
      if (this.#sendTogether(stream, head)) return;
      this.sendHeaders(stream, joinedHead(head), false);
    }
    const most = Math.min(http2FrameBytesMax, this.#sendWindow);
    const content = stream.unsentBytes > 0 ? stream.take(most, this.#dones) : noContent;
    this.#sendWindow -= content.length;
    this.contentBytes += content.length;
    const { isAtEnd, trailers } = stream;
    const isLast = isAtEnd && trailers === undefined;
    if (content.length > 0 || isLast) {
      const flag = isLast ? flags.endStream : 0;
      this.#sendFrame({ type: frameTypes.data, flag, stream: stream.id }, content);
    }
    if (!isAtEnd) {
      // Only of the client's windows: the server itself may have written short pieces.
      const isCut = stream.unsentBytes > 0 && Math.min(stream.sendWindow, this.#sendWindow) <= 0;
      if (isCut && content.length < http2TinyPieceBytes) this.#parts.events.counted('tiny');
      if (stream.unsentBytes === 0) this.#sending.delete(stream);
      else if (stream.priority.isIncremental) {
        // Behind the others of its urgency.
        this.#sending.delete(stream);
        this.#sending.add(stream);
      }
      return;
    }
    this.#sending.delete(stream);
    if (stream.ended !== undefined) this.#dones.push(stream.ended);
    if (trailers !== undefined) this.sendHeaders(stream, trailers, true);
    else this.#answerEnded(stream);
  }

  /** Sends a short answer as one piece; false if it is not short, or a window is too small. */
  #sendTogether(stream: Stream, { block, date }: EncodedHead): boolean {
    const { id, unsentBytes: length } = stream;
    const blockLength = block.length + (date?.length ?? 0);
    if (length > Math.min(this.#sendWindow, stream.sendWindow)) return false;
    if (length > http2CopiedBytesMax || blockLength > http2CopiedBytesMax) return false;
    const content = stream.take(length, this.#dones);
    const bytes = Buffer.allocUnsafe(2 * frameHeadBytes + blockLength + length);
    const { headers, data } = frameTypes;
    const first = { length: blockLength, type: headers, flag: flags.endHeaders, stream: id };
    const at = writeFrameHead(bytes, 0, first);
    bytes.set(block, at);
    if (date !== undefined) bytes.set(date, at + block.length);
    const last = { length, type: data, flag: flags.endStream, stream: id };
    bytes.set(content, writeFrameHead(bytes, at + blockLength, last));
    this.#sendWindow -= length;
    this.contentBytes += length;
    this.#sending.delete(stream);
    if (stream.ended !== undefined) this.#dones.push(stream.ended);
    this.#send(bytes);
    this.#answerEnded(stream);
    return true;
  }

  #sendFrame(head: { type: number; flag: number; stream: number }, content: Buffer): void {
    const { length } = content;
    // Short content is copied: one piece costs less than two.
    const isShort = length <= http2CopiedBytesMax;
    const start = Buffer.allocUnsafe(frameHeadBytes + (isShort ? length : 0));
    const at = writeFrameHead(start, 0, { length, ...head });
    if (isShort) start.set(content, at);
    this.#send(start);
    if (!isShort) this.#send(content);
  }

  /** Sends a header block that needs CONTINUATION frames (§6.10). */
  #sendLongBlock(stream: number, block: Buffer, ending: number): void {
    for (let at = 0; at < block.length; at += http2FrameBytesMax) {
      const part = block.subarray(at, at + http2FrameBytesMax);
      const isLast = at + http2FrameBytesMax >= block.length;
      const type = at === 0 ? frameTypes.headers : frameTypes.continuation;
      const flag = (at === 0 ? ending : 0) | (isLast ? flags.endHeaders : 0);
      this.#sendFrame({ type, flag, stream }, part);
    }
  }

  /** Sends an acknowledgement; a client that reads none of them loses its connection. */
  #sendControl(frame: Buffer): void {
    this.#send(frame);
    if (this.#outputBytes > http2ControlBytesMax && this.queuedBytes > http2QueuedBytesMax) {
      throw new ConnectionError('ENHANCE_YOUR_CALM', 'The client reads no acknowledgements.');
    }
  }

  #send(bytes: Buffer): void {
    if (this.isEnded) return;
    this.#output.push(bytes);
    this.#outputBytes += bytes.length;
    if (this.#isReceiving || this.#isFlushScheduled) return;
    this.#isFlushScheduled = true;
    setImmediate(this.#flushScheduled);
  }

  readonly #flushScheduled = (): void => {
    this.#isFlushScheduled = false;
    this.flush();
  };
}

const noContent = Buffer.alloc(0);

/** The largest part of a chunk that content in it may be, and yet be copied out of it. */
const copiedPart = 1 / 8;

/** Returns a part of a chunk. A short one is a copy: unread, it would keep the chunk in memory. */
function pieceOf(bytes: Buffer, start: number, end: number): Buffer {
  if (end - start > copiedPart * bytes.length) return bytes.subarray(start, end);
  // Not from the pool, of which it would keep a part as well.
  const piece = Buffer.allocUnsafeSlow(end - start);
  bytes.copy(piece, 0, start, end);
  return piece;
}

function requireOnStream({ stream }: Frame): void {
  if (stream === 0) throw new ConnectionError('PROTOCOL_ERROR', 'A frame names no stream.');
}

function requireOnConnection({ stream }: Frame): void {
  if (stream !== 0) throw new ConnectionError('PROTOCOL_ERROR', 'A frame names a stream.');
}

function wrongLength({ type }: Frame): ConnectionError {
  return new ConnectionError('FRAME_SIZE_ERROR', `A frame of type ${type} has a wrong length.`);
}

/** The content of a DATA or HEADERS frame without its padding (§6.1). */
function withoutPadding({ flag, bytes, start, end }: Frame): {
  readonly start: number;
  readonly end: number;
} {
  if ((flag & flags.padded) === 0) return { start, end };
  const padding = bytes[start] ?? 0;
  if (start === end || padding >= end - start) {
    throw new ConnectionError('PROTOCOL_ERROR', 'The padding is longer than its frame.');
  }
  return { start: start + 1, end: end - padding };
}
