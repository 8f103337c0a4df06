import { flags, frame, settings, uint32 } from '../raw-client.ts';
import {
  answered,
  ask,
  begun,
  block,
  data,
  half,
  open,
  priority,
  reset,
  whole,
  type Case,
} from './case.ts';

const { END_STREAM, END_HEADERS, PADDED, PRIORITY, ACK } = flags;

/** An initial window of 0: the stream of an answer stays open. */
const held = frame('SETTINGS', 0, 0, settings([4, 0]));
const update = (stream: number) => frame('WINDOW_UPDATE', 0, stream, uint32(1));
const lateContinuation = frame('CONTINUATION', END_HEADERS, 1, block);

/** Cases about streams and frames: RFC 9113 §4 to §7. */
export const frameCases: readonly Case[] = [
  ['4.1 frame of an unknown type', 'answer 200', [frame(0x16, 0, 0, 'x'), ask(1)]],
  ['4.1 unknown flag', 'answer 200', [frame('PING', 0x16, 0, 'abcdefgh'), ask(1)]],
  ['4.1 reserved bit', 'answer 200', [frame('PING', 0, 0x80000000, 'abcdefgh'), ask(1)]],
  ['4.2 DATA of 2^14', 'answer 400', [open(1), data(1, Buffer.alloc(16_384), END_STREAM)]],
  [
    '4.2 DATA of more',
    'GOAWAY FRAME_SIZE_ERROR',
    [open(1), data(1, Buffer.alloc(16_385), END_STREAM)],
  ],
  ['4.2 HEADERS of more', 'GOAWAY FRAME_SIZE_ERROR', [ask(1, [['x-a', 'x'.repeat(16_400)]])]],
  [
    '4.3 unreadable block',
    'GOAWAY COMPRESSION_ERROR',
    [frame('HEADERS', whole, 1, Buffer.of(0x40))],
  ],
  [
    '4.3 PRIORITY in a block',
    'GOAWAY PROTOCOL_ERROR',
    [
      frame('HEADERS', END_STREAM, 1, block.subarray(0, half)),
      frame('PRIORITY', 0, 1, Buffer.alloc(5)),
      frame('CONTINUATION', END_HEADERS, 1, block.subarray(half)),
    ],
  ],
  [
    '4.3 HEADERS of another stream in a block',
    'GOAWAY PROTOCOL_ERROR',
    [frame('HEADERS', END_STREAM, 1, block.subarray(0, half)), ask(3)],
  ],
  ['5.1 idle: DATA', 'GOAWAY PROTOCOL_ERROR', [data(1, 'x', END_STREAM)]],
  ['5.1 idle: RST_STREAM', 'GOAWAY PROTOCOL_ERROR', [reset(1)]],
  ['5.1 idle: WINDOW_UPDATE', 'GOAWAY PROTOCOL_ERROR', [frame('WINDOW_UPDATE', 0, 1, uint32(100))]],
  [
    '5.1 idle: CONTINUATION',
    'GOAWAY PROTOCOL_ERROR',
    [frame('CONTINUATION', END_HEADERS, 1, block)],
  ],
  [
    '5.1 half closed: DATA',
    'answer 200, RST_STREAM STREAM_CLOSED',
    [held, ask(1), begun, data(1, 'x', END_STREAM)],
  ],
  [
    '5.1 half closed: HEADERS',
    'answer 200, RST_STREAM STREAM_CLOSED',
    [held, ask(1), begun, ask(1)],
  ],
  [
    '5.1 half closed: CONTINUATION',
    'answer 200, GOAWAY PROTOCOL_ERROR',
    [held, ask(1), begun, frame('CONTINUATION', END_HEADERS, 1, block)],
  ],
  [
    '5.1 closed: DATA after RST_STREAM',
    'RST_STREAM STREAM_CLOSED',
    [open(1), reset(1), data(1, 'x', END_STREAM)],
  ],
  ['5.1 closed: HEADERS after RST_STREAM', 'RST_STREAM STREAM_CLOSED', [open(1), reset(1), ask(1)]],
  [
    '5.1 closed: CONTINUATION after RST_STREAM',
    'GOAWAY PROTOCOL_ERROR',
    [open(1), reset(1), frame('CONTINUATION', END_HEADERS, 1, block)],
  ],
  ['5.1 closed: WINDOW_UPDATE', 'answer 200', [ask(1), frame('WINDOW_UPDATE', 0, 1, uint32(1))]],
  [
    '5.1 closed: DATA',
    'answer 200, GOAWAY STREAM_CLOSED',
    [ask(1), answered, data(1, 'x', END_STREAM)],
  ],
  ['5.1 closed: HEADERS', 'answer 200, GOAWAY STREAM_CLOSED', [ask(1), answered, ask(1)]],
  [
    '5.1 closed: CONTINUATION',
    'answer 200, GOAWAY PROTOCOL_ERROR',
    [ask(1), answered, lateContinuation],
  ],
  ['5.1 closed: PRIORITY', 'answer 200', [ask(1), answered, priority(1, 0, 256)]],
  ['5.1 half closed: WINDOW_UPDATE', 'answer 200', [held, ask(1), begun, update(1)]],
  ['5.1 half closed: PRIORITY', 'answer 200', [held, ask(1), begun, priority(1, 0, 256)]],
  ['5.1 half closed: RST_STREAM', 'answer 200', [held, ask(1), begun, reset(1)]],
  ['5.1.1 even identifier', 'GOAWAY PROTOCOL_ERROR', [ask(2)]],
  ['5.1.1 smaller identifier', 'answer 200, GOAWAY PROTOCOL_ERROR', [ask(5), answered, ask(3)]],
  [
    '5.3.1 HEADERS that depends on itself',
    'GOAWAY PROTOCOL_ERROR',
    [frame('HEADERS', whole | PRIORITY, 1, Buffer.concat([uint32(1), Buffer.of(10), block]))],
  ],
  [
    '5.3.1 PRIORITY that depends on itself',
    'RST_STREAM PROTOCOL_ERROR, answer 200',
    [frame('PRIORITY', 0, 1, Buffer.concat([uint32(1), Buffer.of(10)])), ask(1)],
  ],
  ['5.3 PRIORITY on an idle stream', 'went on', [priority(1, 0, 256)]],
  ['5.3 PRIORITY of weight 1', 'answer 200', [priority(1, 0, 1), ask(1)]],
  ['5.3 PRIORITY with a parent', 'answer 200', [priority(3, 1, 16), ask(3)]],
  ['5.3 PRIORITY, exclusive', 'answer 200', [priority(3, 0x80000001, 16), ask(1)]],
  ['5.3 PRIORITY on a higher stream', 'answer 200', [priority(5, 0, 16), ask(3)]],
  [
    '5.5 unknown frame in a block',
    'GOAWAY PROTOCOL_ERROR',
    [
      frame('HEADERS', END_STREAM, 1, block.subarray(0, half)),
      frame(0x16, 0, 0, 'x'),
      frame('CONTINUATION', END_HEADERS, 1, block.subarray(half)),
    ],
  ],
  ['6.1 DATA on stream 0', 'GOAWAY PROTOCOL_ERROR', [data(0, 'x')]],
  ['6.1 DATA on stream 0 beside a request', 'GOAWAY PROTOCOL_ERROR', [open(1), data(0, 'x')]],
  ['6.1 DATA in several frames', 'answer 400', [open(1), data(1, '{'), data(1, '', END_STREAM)]],
  [
    '6.1 padded',
    'answer 400',
    [open(1), frame('DATA', END_STREAM | PADDED, 1, Buffer.of(3, 0x7b, 0, 0, 0))],
  ],
  [
    '6.1 padding as long as the frame',
    'GOAWAY PROTOCOL_ERROR',
    [open(1), frame('DATA', END_STREAM | PADDED, 1, Buffer.of(6, 1, 2, 3, 4, 5))],
  ],
  ['6.2 HEADERS on stream 0', 'GOAWAY PROTOCOL_ERROR', [frame('HEADERS', whole, 0, block)]],
  [
    '6.2 padding as long as the frame',
    'GOAWAY PROTOCOL_ERROR',
    [frame('HEADERS', whole | PADDED, 1, Buffer.concat([Buffer.of(block.length + 1), block]))],
  ],
  [
    '6.2 padded and with priority',
    'answer 200',
    [
      frame(
        'HEADERS',
        whole | PADDED | PRIORITY,
        1,
        Buffer.concat([Buffer.of(3), uint32(0), Buffer.of(1), block, Buffer.alloc(3)]),
      ),
    ],
  ],
  ['6.3 PRIORITY on stream 0', 'GOAWAY PROTOCOL_ERROR', [frame('PRIORITY', 0, 0, Buffer.alloc(5))]],
  [
    '6.3 PRIORITY of another length',
    'answer 200, GOAWAY FRAME_SIZE_ERROR',
    [ask(1), answered, frame('PRIORITY', 0, 1, Buffer.alloc(4))],
  ],
  ['6.4 RST_STREAM on stream 0', 'GOAWAY PROTOCOL_ERROR', [reset(0)]],
  [
    '6.4 RST_STREAM of another length',
    'GOAWAY FRAME_SIZE_ERROR',
    [open(1), frame('RST_STREAM', 0, 1, Buffer.alloc(3))],
  ],
  [
    '6.5 acknowledgement with content',
    'GOAWAY FRAME_SIZE_ERROR',
    [frame('SETTINGS', ACK, 0, settings([3, 1]))],
  ],
  ['6.5 SETTINGS on a stream', 'GOAWAY PROTOCOL_ERROR', [frame('SETTINGS', 0, 1)]],
  [
    '6.5 SETTINGS of another length',
    'GOAWAY FRAME_SIZE_ERROR',
    [frame('SETTINGS', 0, 0, Buffer.alloc(3))],
  ],
  ['6.5.2 ENABLE_PUSH 2', 'GOAWAY PROTOCOL_ERROR', [frame('SETTINGS', 0, 0, settings([2, 2]))]],
  [
    '6.5.2 INITIAL_WINDOW_SIZE 2^31',
    'GOAWAY FLOW_CONTROL_ERROR',
    [frame('SETTINGS', 0, 0, settings([4, 0x80000000]))],
  ],
  [
    '6.5.2 MAX_FRAME_SIZE 2^14 - 1',
    'GOAWAY PROTOCOL_ERROR',
    [frame('SETTINGS', 0, 0, settings([5, 16_383]))],
  ],
  [
    '6.5.2 MAX_FRAME_SIZE 2^24',
    'GOAWAY PROTOCOL_ERROR',
    [frame('SETTINGS', 0, 0, settings([5, 1 << 24]))],
  ],
  ['6.5.2 unknown setting', 'answer 200', [frame('SETTINGS', 0, 0, settings([0xff, 1])), ask(1)]],
  ['6.7 PING', 'went on', [frame('PING', 0, 0, 'abcdefgh')]],
  ['6.7 PING on a stream', 'GOAWAY PROTOCOL_ERROR', [frame('PING', 0, 1, 'abcdefgh')]],
  ['6.7 PING of another length', 'GOAWAY FRAME_SIZE_ERROR', [frame('PING', 0, 0, 'abcdef')]],
  ['6.7 acknowledged PING', 'answer 200', [frame('PING', ACK, 0, 'abcdefgh'), ask(1)]],
  ['6.8 GOAWAY', 'GOAWAY NO_ERROR', [frame('GOAWAY', 0, 0, Buffer.alloc(8))]],
  ['6.8 GOAWAY on a stream', 'GOAWAY PROTOCOL_ERROR', [frame('GOAWAY', 0, 1, Buffer.alloc(8))]],
  ['6.9 WINDOW_UPDATE', 'answer 200', [update(0), ask(1)]],
  ['6.9 WINDOW_UPDATE of 0', 'GOAWAY PROTOCOL_ERROR', [frame('WINDOW_UPDATE', 0, 0, uint32(0))]],
  [
    '6.9 WINDOW_UPDATE of 0 on a stream',
    'RST_STREAM PROTOCOL_ERROR',
    [open(1), frame('WINDOW_UPDATE', 0, 1, uint32(0))],
  ],
  [
    '6.9 WINDOW_UPDATE of another length',
    'GOAWAY FRAME_SIZE_ERROR',
    [frame('WINDOW_UPDATE', 0, 0, Buffer.alloc(3))],
  ],
  [
    '6.9.1 window of the connection above 2^31 - 1',
    'GOAWAY FLOW_CONTROL_ERROR',
    [
      frame('WINDOW_UPDATE', 0, 0, uint32(0x7fffffff)),
      frame('WINDOW_UPDATE', 0, 0, uint32(0x7fffffff)),
    ],
  ],
  [
    '6.9.1 window of a stream above 2^31 - 1',
    'RST_STREAM FLOW_CONTROL_ERROR',
    [
      open(1),
      frame('WINDOW_UPDATE', 0, 1, uint32(0x7fffffff)),
      frame('WINDOW_UPDATE', 0, 1, uint32(0x7fffffff)),
    ],
  ],
  [
    '6.9.2 setting that takes a window above 2^31 - 1',
    'GOAWAY FLOW_CONTROL_ERROR',
    [
      open(1),
      frame('WINDOW_UPDATE', 0, 1, uint32(0x7fff0000)),
      frame('SETTINGS', 0, 0, settings([4, 0x7fffffff])),
    ],
  ],
  [
    '6.10 CONTINUATION',
    'answer 200',
    [
      frame('HEADERS', END_STREAM, 1, block.subarray(0, half)),
      frame('CONTINUATION', END_HEADERS, 1, block.subarray(half)),
    ],
  ],
  [
    '6.10 CONTINUATION behind the last one',
    'answer 200, GOAWAY PROTOCOL_ERROR',
    [
      frame('HEADERS', END_STREAM, 1, block.subarray(0, half)),
      frame('CONTINUATION', END_HEADERS, 1, block.subarray(half)),
      answered,
      frame('CONTINUATION', END_HEADERS, 1, block.subarray(half)),
    ],
  ],
  [
    '6.10 CONTINUATION behind DATA',
    'GOAWAY PROTOCOL_ERROR',
    [open(1), data(1, 'x'), lateContinuation],
  ],
  [
    '6.10 several CONTINUATION',
    'answer 200',
    [
      frame('HEADERS', END_STREAM, 1, block.subarray(0, 5)),
      frame('CONTINUATION', 0, 1, block.subarray(5, half)),
      frame('CONTINUATION', END_HEADERS, 1, block.subarray(half)),
    ],
  ],
  [
    '6.10 CONTINUATION, then DATA',
    'GOAWAY PROTOCOL_ERROR',
    [
      frame('HEADERS', END_STREAM, 1, block.subarray(0, half)),
      frame('CONTINUATION', 0, 1, ''),
      data(1, 'x'),
    ],
  ],
  [
    '6.10 CONTINUATION on stream 0',
    'GOAWAY PROTOCOL_ERROR',
    [
      frame('HEADERS', END_STREAM, 1, block.subarray(0, half)),
      frame('CONTINUATION', END_HEADERS, 0, block.subarray(half)),
    ],
  ],
  [
    '6.10 CONTINUATION after the end of a block',
    'answer 200, GOAWAY PROTOCOL_ERROR',
    [ask(1), answered, frame('CONTINUATION', END_HEADERS, 1, '')],
  ],
  [
    '7 GOAWAY with an unknown code',
    'GOAWAY NO_ERROR',
    [frame('GOAWAY', 0, 0, Buffer.concat([uint32(0), uint32(0xff)]))],
  ],
  [
    '7 RST_STREAM with an unknown code',
    'answer 200',
    [open(1), frame('RST_STREAM', 0, 1, uint32(0xff)), ask(3)],
  ],
];
