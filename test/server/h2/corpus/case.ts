import { fieldBlock, flags, frame, uint32 } from '../raw-client.ts';

/** Names and values of a header section, in their order. */
export type Fields = readonly (readonly [name: string, value: string])[];

/** Between frames: an answer to those before is waited for, to its head or to its end. */
export const begun = 'begun';
export const answered = 'answered';

/** Frames behind the preface, and when they are sent. */
export type Sent = readonly (Buffer | typeof begun | typeof answered)[];

/**
 * What is sent, under the section of RFC 9113 or RFC 7541 that it is about, and what comes of it:
 * what the server says of connection or streams before it answers a PING behind the frames, or
 * `went on`. `why` tells of an outcome that is not the one h2spec expects.
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
/** Waits for its content. */
export const post: Fields = [
  [':method', 'POST'],
  [':scheme', 'https'],
  [':path', '/svc1/userinterface/get'],
  [':authority', 'localhost'],
];

/** The fields of a GET without one of them, or with another value of it. */
export const without = (name: string): Fields => get.filter(([one]) => one !== name);
export const replaced = (name: string, value: string): Fields =>
  get.map(([one, before]) => [one, one === name ? value : before]);

/** HEADERS of a whole request; `fields` behind those of a GET. */
export const ask = (stream: number, fields: Fields = []): Buffer =>
  frame('HEADERS', whole, stream, fieldBlock([...get, ...fields]));
/** HEADERS of a whole request that has these fields only. */
export const only = (fields: Fields): Buffer => frame('HEADERS', whole, 1, fieldBlock(fields));
/** HEADERS of a request that goes on. */
export const open = (stream: number, fields: Fields = []): Buffer =>
  frame('HEADERS', END_HEADERS, stream, fieldBlock([...post, ...fields]));
export const data = (stream: number, text: string | Buffer = '', flag = 0): Buffer =>
  frame('DATA', flag, stream, text);
export const reset = (stream: number): Buffer => frame('RST_STREAM', 0, stream, uint32(8));

export const priority = (stream: number, parent: number, weight: number): Buffer =>
  frame('PRIORITY', 0, stream, Buffer.concat([uint32(parent), Buffer.of(weight - 1)]));

/** The block of a GET, and where it is cut in two. */
export const block = fieldBlock(get);
export const half = block.length >> 1;
