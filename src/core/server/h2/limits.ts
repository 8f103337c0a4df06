import { KIB } from '../../values/units.ts';

/** The content of a frame, in both directions: the initial value of SETTINGS_MAX_FRAME_SIZE. */
export const http2FrameBytesMax = 16 * KIB;

/** Bytes of a request's content that may arrive before the server reads them: at first … */
export const http2WindowBytes = 64 * KIB;

export const http2JoinedBytesMax = 16 * KIB;

export const http2TinyPieceBytes = 256;
