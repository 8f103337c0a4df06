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
  unreadWithoutKeyBytesMax,
} from '../server/limits.ts';
import { SharedLimit } from './shared-limit.ts';
import { UnreadAnswers } from './unread-answers.ts';

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
