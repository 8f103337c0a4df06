// The fuzz run of HTTP/2: connections without a socket get the frames of the corpus in a random
// order, cut, repeated and changed. `npm run fuzz:http2 [-- SECONDS [SEED]]`; the same seed makes the same
// choices. It fails if one throws, writes what is no frame, keeps a stream after its end, begins
// more streams than it allows, or uses more than 200 ms of CPU time for a piece of bytes.
import assert from 'node:assert/strict';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { Http2Connection, http2ConcurrentStreamsMax } from '../../src/core/server/h2/connection.ts';
import { encodeFields } from '../../src/core/server/h2/hpack/encoder.ts';
import { SharedBytes } from '../../src/core/server/h2/receive-window.ts';
import type { BytesTaken, Stream } from '../../src/core/server/h2/stream.ts';
import { extensionCases } from '../core/server/h2/corpus/extensions.ts';
import { frameCases } from '../core/server/h2/corpus/frames.ts';
import { hpackCases } from '../core/server/h2/corpus/hpack.ts';
import { messageCases } from '../core/server/h2/corpus/messages.ts';
import { frame, preface } from '../core/server/h2/raw-client.ts';
import { Random } from './random.ts';

const seconds = Number(process.argv[2] ?? 60);
const seed = Number(process.argv[3] ?? Date.now() % 1_000_000_000);
const pieceMs = 200;
/** The largest frame that the server may send: the client has announced no larger ones. */
const frameBytesMax = 16_384;

const cases = [...frameCases, ...messageCases, ...hpackCases, ...extensionCases];
const seeds = cases.flatMap(([, , sent]) => sent.filter((one) => typeof one !== 'string'));
const opening = Buffer.concat([Buffer.from(preface), frame('SETTINGS', 0, 0, '')]);

const random = new Random(seed);
const endMs = performance.now() + 1_000 * seconds;
let [connections, frames, longestMs] = [0, 0, 0];
process.stdout.write(`${seconds} s with seed ${seed}, from ${seeds.length} frames\n`);
while (performance.now() < endMs) {
  try {
    converse(bytesOfClient());
  } catch (error) {
    process.stdout.write(`Found by connection ${connections}, seed ${seed}:\n`);
    throw error;
  }
  connections += 1;
  // What waits for the end of a turn would otherwise stay in memory.
  if (connections % 100 === 0) await nextTurn();
}
process.stdout.write(
  `${connections} connections with ${frames} frames; the longest piece used ${longestMs.toFixed(1)} ms. Nothing found.\n`,
);

/** The frames of a client: some of the corpus, most of them changed. */
function bytesOfClient(): Buffer {
  const parts: Buffer[] = random.chance(0.98) ? [opening] : [];
  const count = 1 + random.below(40);
  for (let one = 0; one < count; one += 1) {
    const part = Buffer.from(seeds[random.below(seeds.length)] ?? '');
    frames += 1;
    if (random.chance(0.5)) part.writeUInt32BE(random.below(16), 5);
    if (random.chance(0.2)) part[4] = random.below(256);
    if (random.chance(0.1)) part[3] = random.below(18);
    if (random.chance(0.2)) part[random.below(part.length)] = random.below(256);
    parts.push(random.chance(0.02) ? part.subarray(0, random.below(part.length)) : part);
    if (random.chance(0.1)) parts.push(part);
  }
  return Buffer.concat(parts);
}

/** Sends bytes in pieces to a connection that answers, and that ends by itself or is closed. */
function converse(bytes: Buffer): void {
  const taken: BytesTaken[] = [];
  let written: Buffer = Buffer.alloc(0);
  let counted = 0;
  const windows = new SharedBytes(2 ** 27);
  const connection = new Http2Connection({
    isSecure: true,
    windows,
    sink: {
      write: (pieces, done) => {
        written = withoutFrames(Buffer.concat([written, ...pieces]));
        taken.push(done);
      },
      end: () => undefined,
    },
    events: {
      request: (stream) => {
        answer(stream);
        return random.chance(0.98);
      },
      idle: () => undefined,
      counted: () => {
        counted += 1;
        if (counted > 200) connection.end('ENHANCE_YOUR_CALM');
      },
      failed: () => undefined,
    },
  });
  for (let at = 0; at < bytes.length;) {
    const size = random.chance(0.5) ? bytes.length : 1 + random.below(200);
    const startedUs = process.threadCpuUsage().user;
    connection.receive(bytes.subarray(at, at + size));
    const usedMs = (process.threadCpuUsage().user - startedUs) / 1_000;
    longestMs = Math.max(longestMs, usedMs);
    // The first connections run before V8 has compiled the code.
    if (connections > 1_000) assert.ok(usedMs < pieceMs, `a piece took ${usedMs} ms`);
    assert.ok(connection.streams.size <= http2ConcurrentStreamsMax);
    if (random.chance(0.5)) for (const done of taken.splice(0)) done(true);
    at += size;
  }
  for (const done of taken.splice(0)) done(true);
  connection.close();
  assert.equal(connection.streams.size, 0, 'a stream outlives its connection');
  assert.ok(written.length === 0, 'the last frame is not whole');
}

function answer(stream: Stream): void {
  stream.reader = {
    data: (bytes) => {
      if (random.chance(0.9)) stream.consumed(bytes.length);
    },
    end: () => undefined,
    close: () => {
      assert.ok(stream.isClosed);
    },
  };
  const block = encodeFields(200, ['x-a', 'b']);
  const content = Buffer.alloc(random.below(random.chance(0.1) ? 100_000 : 2_000));
  const choice = random.below(6);
  if (choice === 0) return;
  if (choice === 1) stream.head(block, true);
  else if (choice === 2) stream.reset('INTERNAL_ERROR');
  else if (choice === 3) {
    stream.head(block);
    stream.write(content);
    stream.end(
      () => undefined,
      content,
      random.chance(0.3) ? encodeFields(undefined, ['x', 'y']) : undefined,
    );
  } else stream.whole({ block, date: undefined }, content, () => undefined);
}

/** Checks the frames of the server; returns the part of one that is not whole. */
function withoutFrames(given: Buffer): Buffer {
  let at = 0;
  while (given.length - at >= 9) {
    const length = given.readUIntBE(at, 3);
    assert.ok(length <= frameBytesMax, `a frame of ${length} bytes`);
    assert.ok((given[at + 3] ?? 255) <= 9, `a frame of type ${given[at + 3]}`);
    if (given.length - at < 9 + length) break;
    at += 9 + length;
  }
  return Buffer.from(given.subarray(at));
}
