const KIB = 1024;
const MIB = 1024 * KIB;

/** Open requests of one connection, and of all connections. */
export const http2ConcurrentStreamsMax = 100;
export const http2StreamsMax = 10_000;
/** Cookie fields of a request, besides its other fields. */
export const http2CookieFieldsMax = 200;
/** A header block as it arrives, and the CONTINUATION frames that it may consist of. */
export const http2BlockBytesMax = 64 * KIB;
export const http2ContinuationsMax = 16;
/** The content of a frame, in both directions: the initial value of SETTINGS_MAX_FRAME_SIZE. */
export const http2FrameBytesMax = 16 * KIB;
/** Entries of a SETTINGS frame. */
export const http2SettingsMax = 32;

/** Bytes of a request's content that may arrive before the server reads them: at first … */
export const http2WindowBytes = 64 * KIB;
/** … and at most, for all requests of a connection that sends as fast as the server reads. */
export const http2WindowBytesMax = 4 * MIB;
/** What all connections of a process together may have above the initial windows. */
export const http2WindowsBytesMax = 128 * MIB;

/** Bytes of a connection that wait for the system to take them, before more content follows. */
export const http2QueuedBytesMax = 128 * KIB;
/** Content that is copied behind the head of its frame, and frames that are copied together. */
export const http2CopiedBytesMax = 4 * KIB;
export const http2JoinedBytesMax = 16 * KIB;
/** A piece of streamed content or of a file. */
export const http2WriteBytes = 64 * KIB;
/** Answers to frames without a request that wait for a client that does not read. */
export const http2ControlBytesMax = 64 * KIB;
/** All frames that wait for a client that does not read, and sends frames nevertheless. */
export const http2UnreadBytesMax = MIB;

/** Streams that ended lately, which a client may still name in a frame. */
export const http2EndedStreamsMax = 256;
/** A client may reset this many requests at once, and this many more in each second, as nghttp2. */
export const http2ResetsMax = 1_000;
export const http2ResetsPerSecond = 33;
/** In each period of this length, it may … */
export const http2CountingMs = 10_000;
/** … send this many PING and SETTINGS frames … */
export const http2IdleFramesMax = 100;
/** … as many frames that are invalid, without content, or above the number of open requests … */
export const http2InvalidFramesMax = 100;
/** … as many frames without effect: priorities of RFC 7540, and frames on streams that ended … */
export const http2VainFramesMax = 100_000;
/** … and take this many pieces of content that are shorter than the shortest sensible one. */
export const http2TinyPiecesMax = 1_000;
export const http2TinyPieceBytes = 256;
/** Such pieces of a request's content that wait for a reader. */
export const http2UnreadTinyPiecesMax = 16_384;
/** The interval between two checks of all connections for timeouts. */
export const http2CheckMs = 5_000;
/** At a stop, the server waits for clients whose last answer ended within this time. */
export const http2LeaveMs = 10_000;

/** Encoded response fields that are kept, and the longest value of one. */
export const encodedFieldsMax = 4_096;
export const encodedValueCharactersMax = 256;
