import type { FieldList, Repeat, Reply } from '../http/reply.ts';
import { asksForLess } from '../http/represent.ts';
import { answerWith } from './answering.ts';
import { receive } from './arrival.ts';
import { keep, type Arrival, type AskingParts } from './asking.ts';
import type { Visit } from './visit.ts';

/** What a source said, and what its client was told; without the content, which is let go of. */
interface Told {
  readonly said: FieldList;
  readonly reply: Omit<Reply, 'body'>;
}

/**
 * Asks once more for what turned out to be for one alone: nothing is looked for that could answer
 * it. What may be kept of an answer is kept all the same, and what is asked behind that is asked
 * `anew`; `arrived` is told of each. Undefined where something is kept already, and for a request
 * with conditions: the source was asked without them, and has them once it is asked for one alone.
 */
export function repeating(
  parts: AskingParts,
  visit: Visit,
  {
    ask,
    anew,
    arrived,
  }: {
    readonly ask: Repeat;
    readonly anew: Repeat;
    readonly arrived: (arrival: Arrival) => void;
  },
): Repeat | undefined {
  if (visit.known.length > 0 || asksForLess(visit.request.fields)) return undefined;
  const { now, answers } = parts;
  // A source that answers in the same words again says the same of caches, and it is told so.
  let newest: Told | undefined;
  let isKept = false;
  return async (asking) => {
    if (isKept) return { ...(await anew(asking)), repeat: undefined };
    const [requestMs, since] = [now(), answers.epoch()];
    const reply = await ask(asking);
    if (newest?.said === reply.fields) {
      return { ...newest.reply, body: reply.body };
    }
    const responseMs = now();
    const received = receive(reply, requestMs, responseMs);
    const arrival: Arrival =
      reply.status === 304
        ? { kind: 'passing', reply: received.reply, why: 'unselected' }
        : keep(parts, { ...visit, since }, received);
    arrived(arrival);
    isKept = arrival.kind === 'kept';
    const answering = { visit, arrival, held: undefined, nowMs: responseMs, isCollapsed: false };
    const answer = answerWith({ ...answering, forwarded: 'uri-miss' });
    const isByWords = arrival.kind === 'passing' && arrival.reply === reply;
    const { body, ...told } = answer;
    newest = isByWords && body === reply.body ? { said: reply.fields, reply: told } : undefined;
    return answer;
  };
}
