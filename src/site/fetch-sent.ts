import type { Fields } from '../http/request.ts';
import { requestFields, type Sending } from './fetch-fields.ts';
import type { FetchPlan } from './fetch-source.ts';

/** What requestFields says. */
export type SentFields = (plan: FetchPlan, request: Sending, hasBody: boolean) => readonly string[];

/** A list of fields, and what it was made of. */
interface Sent {
  readonly plan: FetchPlan;
  readonly address: string;
  readonly origin: string;
  readonly sent: readonly string[];
}

/**
 * Finds out which fields a source is sent: once where a client asks in the same words again over
 * its connection, whose fields are the same object then (server/known-heads.ts).
 */
export function createSentFields(via: string): SentFields {
  const known = new WeakMap<Fields, Sent>();
  return (plan, request, hasBody) => {
    if (hasBody) return requestFields(plan, request, hasBody, via);
    const { fields, address, origin } = request;
    const before = known.get(fields);
    const isSame = before?.plan === plan && before.address === address && before.origin === origin;
    if (isSame) return before.sent;
    const sent = requestFields(plan, request, hasBody, via);
    known.set(fields, { plan, address, origin, sent });
    return sent;
  };
}
