import type { ExpectedReply } from '../../core/pipeline/source.ts';
import type { CachedResponse } from './cached-response.ts';
import { ageMs, remainingMs, reuseOf } from './freshness.ts';
import type { RequestDirectives } from './directives.ts';

/** Explains what the cache would do with a request, and else its source. */
export function explainCached(
  cached: CachedResponse | undefined,
  explained: ExpectedReply,
  { directives, nowMs }: { readonly directives: RequestDirectives; readonly nowMs: number },
): ExpectedReply {
  if (cached === undefined)
    return withNote(explained, 'The cache has no response to this request.');
  const { freshness, shownStatus: status } = cached.answer;
  const age = seconds(ageMs(freshness, nowMs));
  const remaining = remainingMs(freshness, nowMs);
  switch (reuseOf(freshness, directives, nowMs)) {
    case 'fresh':
      return {
        status,
        notes: [`The cache has a response, ${age} old and fresh for ${seconds(remaining)} more.`],
      };
    case 'stale':
    case 'while_revalidating':
      return {
        status,
        notes: [
          `The cache has a response, ${seconds(-remaining)} stale; it validates it meanwhile.`,
        ],
      };
    case 'validate':
      return withNote(explained, `The cache has a response, ${age} old; it validates it first.`);
  }
}

/** Explains that the cache takes no part in a request because of a field. */
export function explainBypass(explained: ExpectedReply, field: string): ExpectedReply {
  const note = `The cache takes no part: applications read another request in the field ${field}.`;
  return withNote(explained, note);
}

function withNote(explained: ExpectedReply, note: string): ExpectedReply {
  return { ...explained, notes: [...(explained.notes ?? []), note] };
}

function seconds(ms: number): string {
  return `${Math.floor(ms / 1000)} s`;
}
