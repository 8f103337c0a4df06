import type { LimitName } from '../../../../src/core/values/limit.ts';

const connection = 'counts what one connection does: it ends that connection and no other';
const request = 'counts what one request has: it ends that request and no other';
const counted = 'is a rate of one address, and the row of wrong API keys has the mechanism';

/** The limits of the log that no row has, and why none is needed. */
export const limitsWithoutRow: Readonly<Partial<Record<LimitName, string>>> = {
  connections: 'has `connections_per_address` below it, a fifth of it for an address',
  connections_per_address: 'is a limit of one address',
  open_files: 'is a limit of the system; `connections` is half of it',
  handshake_time: connection,
  header_time: connection,
  request_time: request,
  slow_content: request,
  target_size: request,
  header_size: request,
  content_size: request,
  content_coding: request,
  input_structure: request,
  unread_content: connection,
  ranges: request,
  http2_resets: connection,
  http2_pings: connection,
  http2_frames: connection,
  http2_heads: connection,
  http2_streams: 'has as many for an address as it has connections, a fifth of all',
  wrong_passwords: counted,
  outbox: 'is the disk of a counter, which the operator sizes; its keys are few and known',
  websocket_frames: connection,
  websocket_pings: connection,
  websocket_unread: connection,
};

const cache = 'is a cache: who loses an entry gets it made again, in a turn of its own';
const ofOne = 'is a limit of one connection, session or answer';
const batch = 'is the size of one step of work that goes on';
const own = 'is filled by the server itself';

/** Constants that sound like a shared bound and are none, and why. */
export const constantsWithoutRow: Readonly<Record<string, string>> = {
  visitKeysBufferedMax: 'counts pages of the site, which no stranger names; more are counted later',
  cacheHeldBytesMax: cache,
  arrivingHeldBytesMax: ofOne,
  cacheHeldFileBytesMax: cache,
  evictedAtOnceMax: batch,
  reportedQueuesMax: own,
  apiSocketBufferedBytesMax: ofOne,
  listingStatsAtOnceMax: batch,
  logFileWaitingBytesMax: own,
  syslogWaitingMessagesMax: own,
  syslogWaitingBytesMax: own,
  loginSessionsMax: 'are 100,000, of which a person has 20 and the oldest ones end',
  localSessionsMax: 'are sessions of the console on the machine itself, of an operator',
  expiredAtOnceMax: batch,
  appliedAtOnceMax: batch,
  appliedAtOnceBytesMax: batch,
  mirrorsOpenMax: 'are copies that nobody waits for: without a place, none is sent',
  pagesBufferedMax: 'counts pages of the site, which no stranger names',
  commitQueueMax: 'holds changes that are written together in the next turn, within milliseconds',
  socketBufferedBytesMax: ofOne,
  socketSubscriptionsMax: ofOne,
  tlsSessionsMax: cache,
  corkedConnectionsMax: batch,
  socketRequestsInFlightMax: ofOne,
  connectionsMax: 'has `connections_per_address` below it, a fifth of it for an address',
  openCheckPagesMax: batch,
  openCheckAttemptsMax: batch,
  waitingMembersMax: request,
  heldBackMsMax: batch,
  sessionsPerKeyMax: ofOne,
  sessionsPerPersonMax: ofOne,
  sessionsRememberedMax: cache,
  queuedSpansMax: 'are spans that a collector gets: those beyond it are left out, and counted',
  waitingRequestsMax: batch,
  waitingCountedMax: request,
  queuedReadMax: batch,
  openCallsMax:
    'is above the requests that an address may have open; it bounds modules that never end',
  sessionsPerMinuteMax: counted,
  pendingRepliesMax: 'has a bucket of the worker itself for those beyond it',
};
