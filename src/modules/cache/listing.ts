import { replyField } from '../../core/http/reply.ts';
import type { CacheListPage, CacheListRow } from './cache-admin.ts';
import type { StoredResponse } from './cached-response.ts';
import { type ClockReading, ageMs, byClock, remainingMs } from './freshness.ts';
import { sentUrlOfKey } from './storage/record.ts';
import type { ListedUrl } from './storage/response-storage.ts';

/** One page of the list of stored responses: whole URLs until `limit` is reached. */
export function listPage(
  urls: Iterable<ListedUrl<StoredResponse>>,
  limit: number,
  clock: ClockReading,
): CacheListPage {
  const rows: CacheListRow[] = [];
  let last: string | undefined;
  for (const { url, rows: kept } of urls) {
    if (rows.length >= limit) return { rows, next: last };
    rows.push(...kept.map(({ entry }) => listed(byClock(entry, clock), clock.nowMs)));
    last = url;
  }
  return { rows, next: undefined };
}

function listed(answer: StoredResponse, nowMs: number): CacheListRow {
  const { url, rule, shownStatus, freshness, varyNames, range, bytesLength } = answer;
  return {
    url: sentUrlOfKey(url),
    rule,
    status: shownStatus,
    contentType: replyField(answer, 'content-type'),
    bytes: bytesLength,
    ageSeconds: Math.floor(ageMs(freshness, nowMs) / 1000),
    freshSeconds: Math.floor(remainingMs(freshness, nowMs) / 1000),
    vary: varyNames,
    range: range && `${range.first}-${range.last}/${range.completeLength}`,
  };
}
