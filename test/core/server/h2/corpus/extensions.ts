import { fieldBlock, flags, frame, uint32 } from '../raw-client.ts';
import { answered, ask, get, whole, type Case, type Fields } from './case.ts';

const { END_HEADERS } = flags;

/** The type of PRIORITY_UPDATE (RFC 9218 §7.1), and a frame of it. */
const priorityUpdate = 16;
const update = (stream: number, value: string, on = 0) =>
  frame(priorityUpdate, 0, on, Buffer.concat([uint32(stream), Buffer.from(value, 'latin1')]));

const socket: Fields = [
  [':method', 'CONNECT'],
  [':protocol', 'websocket'],
  [':scheme', 'https'],
  [':path', '/svc1/ws'],
  [':authority', 'localhost'],
  ['sec-websocket-version', '13'],
];
/** An extended CONNECT with another value of a field, or without it. */
const opening = (name = '', value?: string) =>
  frame(
    'HEADERS',
    END_HEADERS,
    1,
    fieldBlock(
      socket.flatMap((field) => {
        if (field[0] !== name) return [field];
        return value === undefined ? [] : [[name, value] as const];
      }),
    ),
  );
const prioritized = (value: string): Case => [
  `RFC 9218 4 priority ${value.slice(0, 20)}`,
  'answer 200',
  [ask(1, [['priority', value]])],
];

/** Cases about extensions: websockets (RFC 8441) and priorities (RFC 9218). */
export const extensionCases: readonly Case[] = [
  ['RFC 8441 5 websocket', 'answer 200', [opening()]],
  [
    'RFC 8441 5 websocket with a message',
    'answer 200',
    [opening(), frame('DATA', 0, 1, Buffer.of(0x89, 0x80, 0, 0, 0, 0))],
  ],
  ['RFC 8441 4 without :scheme', 'RST_STREAM PROTOCOL_ERROR', [opening(':scheme')]],
  ['RFC 8441 4 without :path', 'RST_STREAM PROTOCOL_ERROR', [opening(':path')]],
  ['RFC 8441 4 another method', 'RST_STREAM PROTOCOL_ERROR', [opening(':method', 'GET')]],
  ['RFC 8441 4 another protocol', 'answer 501', [opening(':protocol', 'connect-udp')]],
  ['RFC 8441 4 empty :protocol', 'answer 501', [opening(':protocol', '')]],
  [
    'RFC 8441 4 :protocol twice',
    'RST_STREAM PROTOCOL_ERROR',
    [frame('HEADERS', whole, 1, fieldBlock([[':protocol', 'websocket'], ...socket]))],
  ],
  [
    'RFC 8441 4 :protocol of a GET',
    'RST_STREAM PROTOCOL_ERROR',
    [frame('HEADERS', whole, 1, fieldBlock([[':protocol', 'websocket'], ...get]))],
  ],
  [
    'RFC 8441 4 websocket without a host',
    'RST_STREAM PROTOCOL_ERROR',
    [
      frame(
        'HEADERS',
        END_HEADERS,
        1,
        fieldBlock(socket.filter(([name]) => name !== ':authority')),
      ),
    ],
  ],
  ...['u=0', 'u=7, i', 'i=?0', 'u=9', 'u=', ';', 'i;a="', 'u=1,'.repeat(500)].map(prioritized),
  ['RFC 9218 7.1 PRIORITY_UPDATE', 'answer 200', [update(1, 'u=1'), ask(1)]],
  ['RFC 9218 7.1 of an ended stream', 'answer 200', [ask(1), answered, update(1, 'u=1')]],
  ['RFC 9218 7.1 of bytes', 'answer 200', [ask(1), update(1, '\0\xff,,;=')]],
  ['RFC 9218 7.1 without a value', 'answer 200', [ask(1), update(1, '')]],
  ['RFC 9218 7.1 of stream 0', 'GOAWAY PROTOCOL_ERROR', [update(0, 'u=1')]],
  ['RFC 9218 7.1 on a stream', 'GOAWAY PROTOCOL_ERROR', [update(1, 'u=1', 1)]],
  [
    'RFC 9218 7.1 without a stream',
    'GOAWAY FRAME_SIZE_ERROR',
    [frame(priorityUpdate, 0, 0, Buffer.of(0, 0))],
  ],
];
