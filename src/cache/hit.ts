import type { Reply } from '../http/reply.ts';
import { asksForLess } from '../http/represent.ts';
import type { ContentRequest } from '../http/request.ts';
import type { CachedResponse } from './cached-response.ts';
import type { Answers } from './answers.ts';
import { toldHit } from './cache-status.ts';
import { remainingMs } from './freshness.ts';
import { heldReply } from './held-reply.ts';

/**
 * The answer to a request that a kept answer fits, as it was kept: a hit (RFC 9111 §4). While it is
 * fresh, others may have it as well until the second is over, as long as nothing else is kept that
 * could be for them.
 */
export function hitReply(
  held: CachedResponse,
  request: Pick<ContentRequest, 'method' | 'fields'>,
  nowMs: number,
  answers: Pick<Answers, 'find'>,
): Reply {
  const second = secondOf(nowMs);
  const make = (): Reply => {
    const { freshness } = held.answer;
    const reply = heldReply(held, request, nowMs, toldHit(freshness, nowMs));
    if (remainingMs(freshness, nowMs) <= 0) return reply;
    const holds = (atMs: number): boolean =>
      secondOf(atMs) === second &&
      remainingMs(freshness, atMs) > 0 &&
      isAllThereIs(held, answers.find(held.answer.url));
    return { ...reply, isReusable: true, holds };
  };
  const isPlain = request.method === 'GET' && !asksForLess(request.fields);
  // What is read from a file is read anew for each.
  if (!isPlain || held.page === undefined) return make();
  if (held.whole?.second !== second) held.whole = { second, reply: make() };
  return held.whole.reply;
}

function secondOf(ms: number): number {
  return Math.floor(ms / 1000);
}

/** Whether a kept answer is still kept, and the others of its URL vary by nothing else. */
function isAllThereIs(held: CachedResponse, known: readonly CachedResponse[]): boolean {
  if (known.length === 1) return known[0] === held;
  const names = held.answer.varyNames.join();
  return known.includes(held) && known.every(({ answer }) => answer.varyNames.join() === names);
}
