import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { wrongKeysPerMinuteMax } from '../../src/modules/keys/limits.ts';
import { anonymousWritesPerMinuteMax } from '../../src/modules/tables/rows/limits.ts';
import {
  readBodyBytesMax,
  requestTimeoutMs,
  socketFrameBytesMax,
} from '../../src/core/operations/limits.ts';
import { connectionsMax } from '../../src/core/config/limits.ts';
import { sections } from '../../src/core/config/schema.ts';
import {
  headerBlockBytesMax,
  headerFieldsMax,
  rangesMax,
  requestLineBytesMax,
} from '../../src/core/http/limits.ts';
import {
  uploadsAtOnceMax,
  uploadsWaitingMax,
  uploadWaitMs,
} from '../../src/modules/assets/limits.ts';
import { providerRequestsMax, providerTimeoutMs } from '../../src/modules/login/limits.ts';
import { rendersWaitingMax } from '../../src/modules/rendering/limits.ts';
import { limitMessages, type LimitName } from '../../src/core/values/limit.ts';
import { jsonDepthMax } from '../../src/core/values/limits.ts';
import { fetchesPerAddressMax } from '../../src/modules/proxy/limits.ts';
import * as access from '../../src/modules/access/limits.ts';
import * as h1 from '../../src/core/server/h1/limits.ts';
import * as h2 from '../../src/core/server/h2/limits.ts';
import * as server from '../../src/core/server/limits.ts';
import * as websocket from '../../src/core/server/websocket/limits.ts';
import { liveReadersMax, liveRowsMax, stateReadersMax } from '../../src/core/report/limits.ts';
import { outboxMaxDefault } from '../../src/core/log/limits.ts';
import { sizeText } from '../../src/core/values/units.ts';
import { project } from './sources.ts';

const count = (value: number): string => value.toLocaleString('en-US');
const size = (bytes: number): string => sizeText(bytes).replace(/(?<=\d)(?=[A-Z])/, ' ');
const seconds = (ms: number): string => `${ms / 1_000} s`;

const bytesPerSecond = `${server.leastRate.bytesPerSecond} bytes`;

/** The figures of each limit in the code, which the page of limits has to name. */
const figures: Readonly<Record<LimitName, readonly string[]>> = {
  connections: [count(connectionsMax), count(server.reservedDescriptors)],
  connections_per_address: [count(Number(sections.server.connections_per_address.defaultText))],
  open_files: [],
  handshake_time: [seconds(h1.tlsHandshakeTimeoutMs)],
  header_time: [seconds(server.headersTimeoutMs)],
  request_time: [seconds(requestTimeoutMs)],
  slow_content: [bytesPerSecond, seconds(server.leastRate.windowMs)],
  target_size: [size(requestLineBytesMax)],
  header_size: [size(headerBlockBytesMax), count(headerFieldsMax)],
  content_size: [size(server.operationBodyBytesMax), size(readBodyBytesMax)],
  content_coding: [],
  input_structure: [
    `${jsonDepthMax} levels`,
    ...[server.jsonValuesMax, server.readValuesMax, server.formPairsMax].map(count),
  ],
  requests_held: [
    size(server.requestsHeldBytesMax),
    size(server.requestsHeldWithoutKeyBytesMax),
    size(server.requestsHeldPerAddressBytesMax),
  ],
  unread_content: [size(server.unreadBodyBytesMax)],
  unread_answer: [seconds(server.stalledMs)],
  slow_answer: [bytesPerSecond, seconds(server.leastRate.windowMs)],
  unread_answers: [
    size(server.unreadPieceBytesMin),
    size(server.unreadBytesMax),
    size(server.unreadWithoutKeyBytesMax),
    size(server.unreadPerAddressBytesMax),
  ],
  pipelined: [count(h1.pipelinedRequestsMax)],
  fetches: [count(fetchesPerAddressMax)],
  ranges: [count(rangesMax)],
  http2_streams: [count(h2.http2StreamsMax), count(h2.http2ConcurrentStreamsMax)],
  http2_resets: [count(h2.http2ResetsMax), count(h2.http2ResetsPerSecond)],
  http2_pings: [count(h2.http2IdleFramesMax), seconds(h2.http2CountingMs)],
  http2_frames: [count(h2.http2InvalidFramesMax), count(h2.http2TinyPiecesMax)],
  http2_heads: [seconds(server.headersTimeoutMs)],
  websocket_frames: [size(socketFrameBytesMax), count(websocket.socketFragmentsMax)],
  websocket_pings: [count(websocket.socketPingsMax)],
  renderings: [count(rendersWaitingMax)],
  websocket_unread: [size(websocket.socketBufferedBytesMax)],
  uploads: [count(uploadsAtOnceMax), count(uploadsWaitingMax), seconds(uploadWaitMs)],
  sign_ins: [count(providerRequestsMax), seconds(providerTimeoutMs)],
  live_access: [count(liveReadersMax), count(liveRowsMax)],
  live_state: [count(stateReadersMax)],
  subscriptions: [
    count(server.subscriptionsMax),
    count(server.subscriptionsWithoutKeyMax),
    count(server.subscriptionsPerAddressMax),
  ],
  tunnels: [count(server.tunnelsMax), count(server.tunnelsPerAddressMax)],
  wrong_keys: [count(wrongKeysPerMinuteMax)],
  wrong_passwords: [count(access.wrongPerAddressMax), count(access.wrongPerNameMax)],
  password_checks: [count(access.checksRunningMax), count(access.checksWaitingMax)],
  outbox: [count(outboxMaxDefault.entries), size(outboxMaxDefault.bytes)],
  anonymous_writes: [count(anonymousWritesPerMinuteMax)],
};

test('the reference has a row for every limit that clients run into, with the figures of the code', () => {
  const page = readFileSync(join(project, 'docs/reference/limits.md'), 'utf8');
  const rows = new Map(
    [...page.matchAll(/^\| `(\w+)` +\|([^\n]*)$/gm)].map(([, name = '', row = '']) => [name, row]),
  );
  assert.deepEqual([...rows.keys()].sort(), Object.keys(limitMessages).sort());
  for (const [name, texts] of Object.entries(figures)) {
    for (const text of texts) {
      assert.ok(
        new RegExp(`(?<![\\d,.])${text}(?!,?\\d)`).test(rows.get(name) ?? ''),
        `the row of \`${name}\` does not say ${text}`,
      );
    }
  }
});
