import assert from 'node:assert/strict';
import { Readable } from 'node:stream';
import { suite, test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Sent } from '../../../../src/core/pipeline/exchange.ts';
import {
  type Counted,
  Http2Connection,
  http2QueuedBytesMax,
  http2UnreadBytesMax,
} from '../../../../src/core/server/h2/connection.ts';
import { encodeFields } from '../../../../src/core/server/h2/hpack/encoder.ts';
import { SharedBytes, http2WindowBytesMax } from '../../../../src/core/server/h2/receive-window.ts';
import type { Http2RequestHead } from '../../../../src/core/server/h2/request-head.ts';
import { StreamExchange } from '../../../../src/core/server/h2/stream-exchange.ts';
import type { BytesTaken, Stream } from '../../../../src/core/server/h2/stream.ts';
import type { Peer } from '../../../../src/core/values/network/peer.ts';
import { Random } from '../../../fuzz/random.ts';
import {
  type Frame,
  fieldBlock,
  flags,
  frame,
  preface,
  readFrame,
  settings,
  uint32,
} from './raw-client.ts';

const someone: Peer = {
  listener: 'tcp',
  address: '192.0.2.1',
  local: () => 'localhost',
  tls: undefined,
};

/** A connection without a socket: what it was given, and what it says. */
function openConnection({
  answer = () => undefined,
  windows = new SharedBytes(2 ** 30),
}: { answer?: (stream: Stream, head: Http2RequestHead) => void; windows?: SharedBytes } = {}) {
  const said: string[] = [];
  const frames: Frame[] = [];
  const taken: BytesTaken[] = [];
  let written = Buffer.alloc(0);
  const counts: Partial<Record<Counted, number>> = {};
  const connection = new Http2Connection({
    isSecure: true,
    windows,
    sink: {
      write: (pieces, done) => {
        written = Buffer.concat([written, ...pieces]);
        for (let next = readFrame(written); next !== undefined; next = readFrame(written)) {
          frames.push(next);
          written = written.subarray(9 + next.payload.length);
        }
        taken.push(done);
      },
      end: () => said.push('end'),
    },
    events: {
      request: (stream, head) => {
        said.push(`${stream.id} ${head.method} ${head.url} ${head.fields.join('|')}`);
        let content = '';
        stream.reader = {
          data: (bytes) => {
            if (bytes.length < 100) content += bytes.toString();
            stream.consumed(bytes.length);
          },
          end: (trailers) => said.push(`${stream.id} ended ${content} ${trailers.join()}`),
          close: () => said.push(`${stream.id} closed`),
        };
        answer(stream, head);
        return true;
      },
      idle: () => undefined,
      counted: (what) => (counts[what] = (counts[what] ?? 0) + 1),
      failed: (message) => said.push(`failed: ${message}`),
    },
  });
  return {
    connection,
    said,
    frames,
    counts,
    /** Has the system take all written bytes. */
    take: () => {
      for (const done of taken.splice(0)) done(true);
      connection.flush();
    },
    /** Closes the connection, of which the system takes no more. */
    lose: () => {
      connection.close();
      for (const done of taken.splice(0)) done(false);
    },
  };
}

const ask = (
  stream: number,
  path: string,
  { method = 'GET', more = [], flag = flags.END_STREAM | flags.END_HEADERS }: Asking = {},
) => {
  const head = [
    [':method', method],
    [':scheme', 'https'],
    [':path', path],
    [':authority', 'localhost'],
  ] as const;
  return frame('HEADERS', flag, stream, fieldBlock([...head, ...more]));
};
interface Asking {
  readonly method?: string;
  readonly more?: readonly (readonly [string, string])[];
  readonly flag?: number;
}
const opening = Buffer.concat([Buffer.from(preface), frame('SETTINGS', 0, 0)]);
const widely = Buffer.concat([
  Buffer.from(preface),
  frame('SETTINGS', 0, 0, settings([4, 2 ** 31 - 1])),
  frame('WINDOW_UPDATE', 0, 0, uint32(2 ** 31 - 1 - 65_535)),
]);

/** A visit: a page, a form with trailer fields, a split head, a PING, and an early end. */
const visit = Buffer.concat([
  opening,
  ask(1, '/', {
    more: [
      ['cookie', 'a=b'],
      ['cookie', 'c=d'],
    ],
  }),
  frame('PING', 0, 0, 'are you?'),
  ask(3, '/form', { method: 'POST', flag: flags.END_HEADERS }),
  frame(
    'DATA',
    flags.PADDED,
    3,
    Buffer.concat([Buffer.of(3), Buffer.from('half'), Buffer.alloc(3)]),
  ),
  frame('DATA', 0, 3, ' and half'),
  frame('HEADERS', 5, 3, fieldBlock([['x-sum', '1']])),
  ask(5, '/long', { flag: flags.END_STREAM }).subarray(0, 9 + 20),
]);
// The length of the last frame is that of the part.
visit.writeUIntBE(20, visit.length - 29, 3);
const rest = ask(5, '/long').subarray(9 + 20);
const wholeVisit = Buffer.concat([
  visit,
  frame('CONTINUATION', flags.END_HEADERS, 5, rest),
  frame('RST_STREAM', 0, 1, uint32(8)),
]);

suite('a connection', () => {
  test('gives the same requests however its bytes are cut', () => {
    const expected = openConnection();
    expected.connection.receive(wholeVisit);
    assert.deepEqual(expected.said, [
      '1 GET / host|localhost|cookie|a=b; c=d',
      '3 POST /form host|localhost|transfer-encoding|chunked',
      '3 ended half and half x-sum,1',
      '5 GET /long host|localhost',
      '1 closed',
    ]);
    for (let cut = 1; cut < wholeVisit.length; cut += 1) {
      const { connection, said, frames } = openConnection();
      connection.receive(wholeVisit.subarray(0, cut));
      connection.receive(wholeVisit.subarray(cut));
      assert.deepEqual(said, expected.said, `cut at ${cut}`);
      assert.deepEqual(
        frames.map(({ type, stream }) => [type, stream]),
        expected.frames.map(({ type, stream }) => [type, stream]),
      );
    }
    const slow = openConnection();
    for (const byte of wholeVisit) slow.connection.receive(Buffer.of(byte));
    assert.deepEqual(slow.said, expected.said);
  });

  test('answers bytes that no client sends without an exception, and soon ends', () => {
    const random = new Random(7);
    for (let round = 0; round < 3_000; round += 1) {
      const { connection, said } = openConnection({
        answer: (stream) => {
          stream.head(encodeFields(200, []));
          stream.end(() => undefined, Buffer.alloc(random.below(2_000)));
        },
      });
      const bytes = Buffer.from(wholeVisit);
      for (let change = 0; change < 1 + random.below(4); change += 1) {
        bytes[24 + random.below(bytes.length - 24)] = random.below(256);
      }
      const at = random.below(bytes.length);
      connection.receive(bytes.subarray(0, at));
      connection.receive(bytes.subarray(at));
      assert.ok(said.length < 40);
      connection.close();
      assert.equal(connection.streams.size, 0);
    }
  });

  test('sends urgent answers first, others in order, and incremental ones in turns', () => {
    const { connection, frames, take } = openConnection({
      answer: (stream) => {
        stream.head(encodeFields(200, []));
        stream.end(() => undefined, Buffer.alloc(60_000));
      },
    });
    const priority = (value: string) => ({ more: [['priority', value]] as const });
    connection.receive(
      Buffer.concat([
        widely,
        ask(1, '/image', priority('u=5')),
        ask(3, '/later', priority('u=3')),
        ask(5, '/style', priority('u=0')),
        ask(7, '/one', priority('u=4, i')),
        ask(9, '/two', priority('u=4, i')),
        ask(11, '/moved', priority('u=7')),
        // PRIORITY_UPDATE (RFC 9218 §7.1).
        frame(16, 0, 0, Buffer.concat([uint32(11), Buffer.from('u=1')])),
      ]),
    );
    for (let turn = 0; turn < 10; turn += 1) take();
    const order = frames.filter(({ type }) => type === 'DATA').map(({ stream }) => stream);
    const runs = order.filter((stream, at) => stream !== order[at - 1]);
    assert.deepEqual(runs, [5, 11, 3, 7, 9, 7, 9, 7, 9, 7, 9, 1]);
  });

  test('does not blame its client for pieces that the server itself made short', () => {
    const { connection, counts, frames, take } = openConnection({
      answer: (stream) => {
        stream.head(encodeFields(200, []));
        for (let piece = 0; piece < 2_000; piece += 1) stream.write(Buffer.from('abc'));
      },
    });
    connection.receive(Buffer.concat([widely, ask(1, '/events')]));
    for (let turn = 0; turn < 10; turn += 1) take();
    assert.equal(frames.filter(({ type }) => type === 'DATA').length, 2_000);
    assert.equal(counts.tiny, undefined);
  });

  test('measures a round trip for content, and not for each short message', () => {
    const { connection, frames } = openConnection();
    const pings = () => frames.filter(({ type }) => type === 'PING').length;
    connection.receive(Buffer.concat([widely, ask(1, '/upload', { flag: flags.END_HEADERS })]));
    for (let message = 0; message < 50; message += 1) {
      connection.receive(frame('DATA', 0, 1, 'a short message'));
    }
    assert.equal(pings(), 0);
    connection.receive(frame('DATA', 0, 1, Buffer.alloc(16_000)));
    assert.equal(pings(), 1);
  });

  test('writes no more than the system takes', () => {
    const { connection, frames, take } = openConnection({
      answer: (stream) => {
        stream.head(encodeFields(200, []));
        stream.end(() => undefined, Buffer.alloc(10_000_000));
      },
    });
    connection.receive(Buffer.concat([widely, ask(1, '/huge')]));
    const bytes = () =>
      frames.reduce((sum, { type, payload }) => sum + (type === 'DATA' ? payload.length : 0), 0);
    assert.ok(bytes() <= http2QueuedBytesMax + 16_384, `${bytes()}`);
    for (let turn = 0; turn < 100; turn += 1) take();
    assert.equal(bytes(), 10_000_000);
  });

  for (const [what, answer] of [
    [
      'heads of answers',
      (stream: Stream) => {
        stream.head(encodeFields(200, ['x-long', 'x'.repeat(300)]), true);
      },
    ],
    [
      'refusals',
      (stream: Stream) => {
        stream.reset('REFUSED_STREAM');
      },
    ],
  ] as const) {
    test(`holds a limited number of ${what} for a client that does not read`, () => {
      const { connection, frames, take } = openConnection({ answer });
      connection.receive(opening);
      take();
      let id = 1;
      for (; !connection.isEnded && id < 1_000_000; id += 2) {
        connection.receive(ask(id, '/', { method: 'HEAD' }));
      }
      const last = frames.at(-1);
      assert.equal(last?.type, 'GOAWAY');
      assert.equal(last.payload.readUInt32BE(4), 11);
      assert.ok(connection.queuedBytes <= http2UnreadBytesMax + 1_000);
      // One that reads may ask as often.
      const other = openConnection({ answer });
      other.connection.receive(opening);
      for (let asked = 1; asked <= id; asked += 2) {
        other.connection.receive(ask(asked, '/', { method: 'HEAD' }));
        if (asked % 101 === 0) other.take();
      }
      assert.ok(!other.connection.isEnded);
    });
  }

  test('does not keep a whole chunk for a short piece of content in it', () => {
    const pieces: Buffer[] = [];
    const { connection } = openConnection({
      answer: (stream) => {
        stream.reader = {
          data: (bytes) => pieces.push(bytes),
          end: () => undefined,
          close: () => undefined,
        };
      },
    });
    connection.receive(Buffer.concat([opening, ask(1, '/', { method: 'POST', flag: 4 })]));
    const priority = frame('PRIORITY', 0, 1, Buffer.alloc(5));
    const others = Array.from({ length: 4_000 }, () => priority);
    const chunk = Buffer.concat([frame('DATA', 0, 1, 'short'), ...others]);
    connection.receive(Buffer.concat([chunk, frame('DATA', 0, 1, Buffer.alloc(16_000))]));
    const [short, long] = pieces;
    assert.equal(short?.toString(), 'short');
    assert.equal(short.buffer.byteLength, 5);
    assert.equal(long?.length, 16_000);
  });

  test('warns a client before it goes, and answers what crosses the warning', () => {
    const { connection, frames, said } = openConnection({
      answer: (stream) => {
        stream.head(encodeFields(204, []), true);
      },
    });
    connection.receive(Buffer.concat([opening, ask(1, '/a')]));
    connection.leave({ isAnnounced: true });
    connection.flush();
    const [warning, ping] = frames.slice(-2);
    assert.equal(warning?.type, 'GOAWAY');
    assert.equal(warning.payload.readUInt32BE(0), 2 ** 31 - 1);
    assert.equal(ping?.type, 'PING');
    connection.receive(ask(3, '/crossing'));
    assert.ok(!said.includes('end'));
    connection.receive(Buffer.concat([frame('PING', flags.ACK, 0, ping.payload), ask(5, '/late')]));
    const last = frames.at(-1);
    assert.equal(last?.type, 'GOAWAY');
    assert.equal(last.payload.readUInt32BE(0), 3);
    assert.deepEqual(
      said.filter((line) => / GET |^end$/.test(line)).map((line) => line.split(' ')[2] ?? line),
      ['/a', '/crossing', 'end'],
    );
  });
});

suite('the window for content', () => {
  const post = ask(1, '/up', { method: 'POST', flag: flags.END_HEADERS });

  /** Sends content, and acknowledges PING after each round; returns the windows at the end. */
  function upload(windows: SharedBytes, roundBytes: (window: number) => number) {
    const { connection, frames, said } = openConnection({ windows });
    connection.receive(Buffer.concat([opening, post]));
    let [ofConnection, ofStream] = [65_535, 65_536];
    const read = (): void => {
      for (const { type, stream, payload } of frames.splice(0)) {
        if (type === 'WINDOW_UPDATE' && stream === 0) ofConnection += payload.readUInt32BE(0);
        else if (type === 'WINDOW_UPDATE') ofStream += payload.readUInt32BE(0);
        else if (type === 'PING') connection.receive(frame('PING', flags.ACK, 0, payload));
      }
    };
    for (let round = 0; round < 40; round += 1) {
      let left = roundBytes(Math.min(ofConnection, ofStream));
      while (left > 0) {
        const bytes = Math.min(left, 16_384);
        connection.receive(frame('DATA', 0, 1, Buffer.alloc(bytes)));
        [ofConnection, ofStream, left] = [ofConnection - bytes, ofStream - bytes, left - bytes];
      }
      connection.flush();
      read();
    }
    assert.ok(!said.some((line) => line.startsWith('failed')), said.join());
    return { connection, window: Math.min(ofConnection, ofStream) };
  }

  test('grows while a round trip fills it, up to its limit', () => {
    const { window } = upload(new SharedBytes(2 ** 30), (all) => all);
    assert.ok(window > http2WindowBytesMax / 2 && window <= http2WindowBytesMax, `${window}`);
  });

  test('does not grow for a client that leaves most of it empty', () => {
    const { window } = upload(new SharedBytes(2 ** 30), (all) => all >> 2);
    assert.ok(window <= 65_536, `${window}`);
  });

  test('shares the memory of all connections, and gives it back', () => {
    const windows = new SharedBytes(100_000);
    const { connection, window } = upload(windows, (all) => all);
    assert.ok(window <= 165_536, `${window}`);
    connection.close();
    assert.ok(windows.take(100_000));
  });

  test('does not open for content that nobody reads', () => {
    const { connection, frames } = openConnection({
      answer: (stream) => {
        stream.reader = { data: () => undefined, end: () => undefined, close: () => undefined };
      },
    });
    connection.receive(Buffer.concat([opening, post]));
    for (let sent = 0; sent < 4; sent += 1) {
      connection.receive(frame('DATA', 0, 1, Buffer.alloc(16_000)));
    }
    assert.ok(!frames.some(({ type }) => type === 'WINDOW_UPDATE' || type === 'PING'));
    connection.receive(frame('DATA', 0, 1, Buffer.alloc(16_000)));
    const last = frames.at(-1);
    assert.equal(last?.type, 'GOAWAY');
    assert.equal(last.payload.readUInt32BE(4), 3);
  });
});

suite('after GOAWAY of the client', () => {
  test('its further requests, and their content, are counted and not answered', () => {
    const { connection, counts, said } = openConnection();
    connection.receive(opening);
    connection.receive(ask(1, '/'));
    connection.receive(frame('GOAWAY', 0, 0, Buffer.alloc(8)));
    for (let stream = 3; stream < 23; stream += 2) {
      connection.receive(ask(stream, '/', { method: 'POST', flag: flags.END_HEADERS }));
      for (let piece = 0; piece < 5; piece += 1) connection.receive(frame('DATA', 0, stream, 'x'));
    }
    assert.deepEqual([counts.invalid, counts.vain], [10, 50]);
    assert.deepEqual(said, ['1 GET / host|localhost']);
  });
});

suite('an answer whose end the system has not taken when the connection dies', () => {
  const ways: Readonly<Record<string, (exchange: StreamExchange) => Sent | Promise<Sent>>> = {
    'as one piece': (exchange) =>
      exchange.respond({
        status: 200,
        fields: [],
        body: { kind: 'bytes', bytes: Buffer.alloc(10_000) },
        source: 'page',
      }),
    'as a stream': (exchange) =>
      exchange.respond({
        status: 200,
        fields: [],
        body: {
          kind: 'stream',
          stream: Readable.from([Buffer.alloc(10_000)]),
          bytesLength: 10_000,
        },
        source: 'page',
      }),
  };
  for (const [way, respond] of Object.entries(ways)) {
    for (const isTaken of [false, true]) {
      test(`is ${isTaken ? 'sent' : 'not sent'} if the bytes ${isTaken ? 'were' : 'were not'} taken, ${way}`, async () => {
        let exchange: StreamExchange | undefined;
        let sent: Sent | Promise<Sent> | undefined;
        const { connection, frames, take, lose } = openConnection({
          answer: (stream, head) => {
            const parts = { peer: someone, arrival: { atMs: 0 }, now: () => 0 };
            exchange = new StreamExchange(stream, head, parts);
            sent = respond(exchange);
          },
        });
        connection.receive(opening);
        connection.receive(ask(1, '/'));
        const isEnd = (one: Frame): boolean => (one.flags & flags.END_STREAM) !== 0;
        while (!frames.some((one) => one.type === 'DATA' && isEnd(one))) {
          take();
          await nextTurn();
        }
        if (isTaken) take();
        lose();
        const { cut } = (await sent) ?? { cut: true };
        assert.deepEqual([exchange?.isSent, exchange?.isOver], [isTaken, true]);
        // Nobody waits for a short answer, which is handed over whole.
        if (way === 'as a stream') assert.equal(cut, !isTaken);
      });
    }
  }
});
