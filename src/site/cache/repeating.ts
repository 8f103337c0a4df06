import type { FieldList, Repeat, Reply } from '../../http/reply.ts';
import { answerWith } from './answering.ts';
import { receive } from './arrival.ts';
import { keep, type Arrival, type AskingParts } from './asking.ts';
import type { Visit } from './visit.ts';

/** What a source said, and what its client was told. */
interface Told {
  readonly said: FieldList;
  readonly reply: Reply;
}

/**
 * Asks once more for what turned out to be for one alone: nothing is looked for that could answer
 * it. What may be kept of an answer is kept all the same; `arrived` is told of each. Undefined
 * where something is kept already.
 */
export function repeating(
  parts: AskingParts,
  visit: Visit,
  { ask, arrived }: { readonly ask: Repeat; readonly arrived: (arrival: Arrival) => void },
): Repeat | undefined {
  if (visit.known.length > 0) return undefined;
  const { now, answers } = parts;
  // A source that answers in the same words again says the same of caches, and it is told so.
  let newest: Told | undefined;
  return async (asking) => {
    const [requestMs, since] = [now(), answers.epoch()];
    const reply = await ask(asking);
    if (newest?.said === reply.fields) {
      const { status, fields, source, cache } = newest.reply;
      return { status, fields, body: reply.body, source, ...(cache !== undefined && { cache }) };
    }
    const responseMs = now();
    const received = receive(reply, requestMs, responseMs);
    const arrival: Arrival =
      reply.status === 304
        ? { kind: 'passing', reply: received.reply, why: 'unselected' }
        : keep(parts, { ...visit, since }, received);
    arrived(arrival);
    const answering = { visit, arrival, held: undefined, nowMs: responseMs, isCollapsed: false };
    const answer = answerWith({ ...answering, forwarded: 'uri-miss' });
    const isByWords = arrival.kind === 'passing' && arrival.reply === reply;
    newest =
      isByWords && answer.body === reply.body ? { said: reply.fields, reply: answer } : undefined;
    return answer;
  };
}
