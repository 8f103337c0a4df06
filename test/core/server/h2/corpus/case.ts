import { fieldBlock, flags, frame, uint32 } from '../raw-client.ts';

/** Names and values of a header section, in order. */
export type Fields = readonly (readonly [name: string, value: string])[];

/** Between frames: wait for the head (`begun`) or the end (`answered`) of an answer. */
export const begun = 'begun';
export const answered = 'answered';

/** Frames after the preface, and waits between them. */
export type Sent = readonly (Buffer | typeof begun | typeof answered)[];

/**
 * A case: its section of RFC 9113 or RFC 7541, the outcome, and the frames. The outcome lists the
 * GOAWAY, RST_STREAM and responses before the answer to a final PING; `went on` stands for none of
 * these. `why` explains an outcome that h2spec does not expect.
 */
export type Case = readonly [name: string, outcome: string, sent: Sent, why?: string];

const { END_STREAM, END_HEADERS } = flags;
export const whole = END_STREAM | END_HEADERS;

export const get: Fields = [
  [':method', 'GET'],
  [':scheme', 'https'],
  [':path', '/a'],
  [':authority', 'localhost'],
];
/** A request that waits for its content. */
export const post: Fields = [
  [':method', 'POST'],
  [':scheme', 'https'],
  [':path', '/svc1/userinterface/get'],
  [':authority', 'localhost'],
];

/** The fields of a GET without one of them, or with another value for one. */
export const without = (name: string): Fields => get.filter(([one]) => one !== name);
export const replaced = (name: string, value: string): Fields =>
  get.map(([one, before]) => [one, one === name ? value : before]);

/** HEADERS of a whole request; `fields` follow those of a GET. */
export const ask = (stream: number, fields: Fields = []): Buffer =>
  frame('HEADERS', whole, stream, fieldBlock([...get, ...fields]));
/** HEADERS of a whole request with these fields only. */
export const only = (fields: Fields): Buffer => frame('HEADERS', whole, 1, fieldBlock(fields));
/** HEADERS of a request with content. */
export const open = (stream: number, fields: Fields = []): Buffer =>
  frame('HEADERS', END_HEADERS, stream, fieldBlock([...post, ...fields]));
export const data = (stream: number, text: string | Buffer = '', flag = 0): Buffer =>
  frame('DATA', flag, stream, text);
export const reset = (stream: number): Buffer => frame('RST_STREAM', 0, stream, uint32(8));

export const priority = (stream: number, parent: number, weight: number): Buffer =>
  frame('PRIORITY', 0, stream, Buffer.concat([uint32(parent), Buffer.of(weight - 1)]));

/** The field block of a GET, and half its length. */
export const block = fieldBlock(get);
export const half = block.length >> 1;
