import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { connectionsMax } from '../../src/core/config/limits.ts';
import {
  requestsHeldBytesMax,
  requestsHeldPerAddressBytesMax,
  requestsHeldWithoutKeyBytesMax,
  subscriptionsMax,
  subscriptionsPerAddressMax,
  subscriptionsWithoutKeyMax,
  tunnelsMax,
  tunnelsPerAddressMax,
  unreadBytesMax,
  unreadPerAddressBytesMax,
  unreadPieceBytesMin,
  unreadWithoutKeyBytesMax,
} from '../../src/core/fair/shared-limits.ts';
import {
  headerBlockBytesMax,
  headerFieldsMax,
  requestLineBytesMax,
} from '../../src/core/http/limits.ts';
import { rangesMax } from '../../src/core/http/representation/ranges.ts';
import { outboxMaxDefault } from '../../src/modules/nodes/log/outbox-entries.ts';
import { outboundConnectionsMax } from '../../src/core/outbound/h1/http1-client.ts';
import { http2RequestsMax } from '../../src/core/outbound/h2/http2-client.ts';
import { wrongKeysPerMinuteMax } from '../../src/core/operations/keys/authenticate.ts';
import {
  readBodyBytesMax,
  requestTimeoutMs,
  socketFrameBytesMax,
} from '../../src/core/operations/limits.ts';
import { reservedDescriptors } from '../../src/core/server/h1/connection-limiter.ts';
import { tlsHandshakeTimeoutMs } from '../../src/core/server/h1/timeouts.ts';
import { http2ConcurrentStreamsMax } from '../../src/core/server/h2/connection.ts';
import {
  http2CountingMs,
  http2IdleFramesMax,
  http2InvalidFramesMax,
  http2ResetsMax,
  http2ResetsPerSecond,
  http2StreamsMax,
  http2TinyPiecesMax,
} from '../../src/core/server/h2/connections.ts';
import {
  formPairsMax,
  headersTimeoutMs,
  jsonValuesMax,
  leastRate,
  operationBodyBytesMax,
  readValuesMax,
  stalledMs,
  unreadBodyBytesMax,
} from '../../src/core/server/limits.ts';
import { socketBufferedBytesMax, socketPingsMax } from '../../src/core/server/websocket/session.ts';
import { socketFragmentsMax } from '../../src/core/server/websocket/socket.ts';
import { type LimitName, limitMessages } from '../../src/core/values/limit.ts';
import { jsonDepthMax } from '../../src/core/values/limits.ts';
import { sizeText } from '../../src/core/values/units.ts';
import {
  checksRunningMax,
  checksWaitingMax,
  wrongPerAddressMax,
  wrongPerNameMax,
} from '../../src/modules/access/passwords.ts';
import {
  uploadWaitMs,
  uploadsAtOnceMax,
  uploadsWaitingMax,
} from '../../src/modules/assets/upload/upload-content.ts';
import { providerTimeoutMs } from '../../src/modules/login/limits.ts';
import { providerRequestsMax } from '../../src/modules/login/provider.ts';
import { placeWaitMs, placesWaitingMax } from '../../src/core/outbound/server-places.ts';
import { rendersWaitingMax } from '../../src/modules/rendering/template-threads.ts';
import { liveReadersMax, liveRowsMax } from '../../src/modules/status/live-access.ts';
import { stateReadersMax } from '../../src/modules/status/state-watcher.ts';
import { anonymousWritesPerMinuteMax } from '../../src/modules/tables/rows/anonymous-writes.ts';
import { project } from './sources.ts';
import { sections } from '../ini.ts';

const count = (value: number): string => value.toLocaleString('en-US');
const size = (bytes: number): string => sizeText(bytes).replace(/(?<=\d)(?=[A-Z])/, ' ');
const seconds = (ms: number): string => `${ms / 1_000} s`;

const bytesPerSecond = `${leastRate.bytesPerSecond} bytes`;

/** The figures of each limit in the code, which the page of limits has to name. */
const figures: Readonly<Record<LimitName, readonly string[]>> = {
  connections: [count(connectionsMax), count(reservedDescriptors)],
  connections_per_address: [count(Number(sections.server?.connections_per_address?.defaultText))],
  open_files: [],
  handshake_time: [seconds(tlsHandshakeTimeoutMs)],
  header_time: [seconds(headersTimeoutMs)],
  request_time: [seconds(requestTimeoutMs)],
  slow_content: [bytesPerSecond, seconds(leastRate.windowMs)],
  target_size: [size(requestLineBytesMax)],
  header_size: [size(headerBlockBytesMax), count(headerFieldsMax)],
  content_size: [size(operationBodyBytesMax), size(readBodyBytesMax)],
  content_coding: [],
  input_structure: [
    `${jsonDepthMax} levels`,
    ...[jsonValuesMax, readValuesMax, formPairsMax].map(count),
  ],
  requests_held: [
    size(requestsHeldBytesMax),
    size(requestsHeldWithoutKeyBytesMax),
    size(requestsHeldPerAddressBytesMax),
  ],
  unread_content: [size(unreadBodyBytesMax)],
  unread_answer: [seconds(stalledMs)],
  slow_answer: [bytesPerSecond, seconds(leastRate.windowMs)],
  unread_answers: [
    size(unreadPieceBytesMin),
    size(unreadBytesMax),
    size(unreadWithoutKeyBytesMax),
    size(unreadPerAddressBytesMax),
  ],
  fetches: [
    count(outboundConnectionsMax),
    count(http2RequestsMax),
    count(placesWaitingMax),
    seconds(placeWaitMs),
  ],
  ranges: [count(rangesMax)],
  http2_streams: [count(http2StreamsMax), count(http2ConcurrentStreamsMax)],
  http2_resets: [count(http2ResetsMax), count(http2ResetsPerSecond)],
  http2_pings: [count(http2IdleFramesMax), seconds(http2CountingMs)],
  http2_frames: [count(http2InvalidFramesMax), count(http2TinyPiecesMax)],
  http2_heads: [seconds(headersTimeoutMs)],
  websocket_frames: [size(socketFrameBytesMax), count(socketFragmentsMax)],
  websocket_pings: [count(socketPingsMax)],
  renderings: [count(rendersWaitingMax)],
  websocket_unread: [size(socketBufferedBytesMax)],
  uploads: [count(uploadsAtOnceMax), count(uploadsWaitingMax), seconds(uploadWaitMs)],
  sign_ins: [count(providerRequestsMax), seconds(providerTimeoutMs)],
  live_access: [count(liveReadersMax), count(liveRowsMax)],
  live_state: [count(stateReadersMax)],
  subscriptions: [
    count(subscriptionsMax),
    count(subscriptionsWithoutKeyMax),
    count(subscriptionsPerAddressMax),
  ],
  tunnels: [count(tunnelsMax), count(tunnelsPerAddressMax)],
  wrong_keys: [count(wrongKeysPerMinuteMax)],
  wrong_passwords: [count(wrongPerAddressMax), count(wrongPerNameMax)],
  password_checks: [count(checksRunningMax), count(checksWaitingMax)],
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
