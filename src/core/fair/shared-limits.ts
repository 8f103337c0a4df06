import { MIB } from '../values/units.ts';
import { SharedLimit } from './shared-limit.ts';
import { UnreadAnswers } from './unread-answers.ts';

/**
 * Subscriptions of all websockets of a process; of callers without a key, of one address without a
 * key; and of one websocket. A key, too, holds no more than is left for others.
 */
export const subscriptionsMax = 1_000;
export const subscriptionsWithoutKeyMax = 750;
export const subscriptionsPerAddressMax = 128;

/**
 * Bytes of unanswered requests in memory, limited in the same way: bodies of operations and
 * messages of websockets, complete or not. A piece costs a little more than its bytes.
 */
export const requestsHeldBytesMax = 256 * MIB;
export const requestsHeldWithoutKeyBytesMax = 64 * MIB;
export const requestsHeldPerAddressBytesMax = 8 * MIB;

/** Bytes of unread answers in memory, limited in the same way. */
export const unreadBytesMax = 256 * MIB;
export const unreadWithoutKeyBytesMax = 192 * MIB;
export const unreadPerAddressBytesMax = 96 * MIB;

/** Websockets to sources, of one process and of one address. */
export const tunnelsMax = 4_096;
export const tunnelsPerAddressMax = 1_024;

/** The limits that all clients of a process share. */
export interface SharedLimits {
  /** Subscriptions of websockets. */
  readonly subscriptions: SharedLimit;
  /** Bytes of unanswered requests: bodies of operations, messages of websockets. */
  readonly requests: SharedLimit;
  readonly unread: UnreadAnswers;
  /** Websockets to sources; their clients have no API key. */
  readonly tunnels: SharedLimit;
}

/** Makes the shared limits of a process. */
export function createSharedLimits(): SharedLimits {
  return {
    subscriptions: new SharedLimit({
      what: 'subscriptions',
      limit: 'subscriptions',
      held: 'long',
      max: subscriptionsMax,
      withoutKeyMax: subscriptionsWithoutKeyMax,
      perAddressMax: subscriptionsPerAddressMax,
    }),
    requests: new SharedLimit({
      what: 'large requests that are not answered yet',
      limit: 'requests_held',
      held: 'long',
      max: requestsHeldBytesMax,
      withoutKeyMax: requestsHeldWithoutKeyBytesMax,
      perAddressMax: requestsHeldPerAddressBytesMax,
    }),
    tunnels: new SharedLimit({
      what: 'websockets to this site',
      limit: 'tunnels',
      held: 'long',
      max: tunnelsMax,
      perAddressMax: tunnelsPerAddressMax,
    }),
    unread: new UnreadAnswers(
      new SharedLimit({
        what: 'answers that are not read yet',
        limit: 'unread_answers',
        held: 'long',
        max: unreadBytesMax,
        withoutKeyMax: unreadWithoutKeyBytesMax,
        perAddressMax: unreadPerAddressBytesMax,
      }),
    ),
  };
}
