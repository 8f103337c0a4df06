import type { FieldList } from '../../core/http/reply.ts';
import type { StoredEntry } from './storage/record.ts';
import type { PageWithSource } from '../../core/http/content/page-reply.ts';
import type { ClockReading, Freshness } from './freshness.ts';
import type { ContentFile } from './content-file.ts';

/** A stored range: first and last byte, and the length of the whole representation. */
export interface StoredRange {
  readonly first: number;
  readonly last: number;
  readonly completeLength: number;
}

/** A response as it is stored on disk. Its content is stored separately. */
export interface StoredResponse {
  /** Identifies the content: a freshened response keeps its id. */
  readonly id: string;
  /** The URL that clients request, as spelledUrl makes it. */
  readonly url: string;
  /** Id of the page rule that fetched it, and a hash of the settings that affect the response. */
  readonly rule: string;
  readonly plan: string;
  /** The status of the source, and the one that clients see. */
  readonly status: number;
  readonly shownStatus: number;
  /** As clients see them, without Age. */
  readonly fields: FieldList;
  readonly freshness: Freshness;
  /** The names in its Vary, and the values of selectingKey that select it (RFC 9111 §4.1). */
  readonly varyNames: readonly string[];
  readonly selecting: readonly string[];
  /** Undefined for a whole representation (§3.3). */
  readonly range: StoredRange | undefined;
  readonly bytesLength: number;
  /** When it was stored; undefined before. */
  readonly storedAt?: ClockReading;
}

/** A stored response in the memory of a process. */
export interface CachedResponse {
  readonly answer: StoredResponse;
  /** Its row in the storage; undefined while it is being written. */
  row: StoredEntry<StoredResponse> | undefined;
  /** Its content with its constant fields; undefined if it is not loaded. */
  page: PageWithSource | undefined;
  /** The file of content that is too long for memory. */
  readonly file: ContentFile | undefined;
  /** When its use was last recorded, in seconds since 1970. */
  usedSecond: number;
}

/** The content of a cached response if it is ready to be sent. */
export function contentOf({ page, file }: CachedResponse): Buffer | ContentFile | undefined {
  return page?.bytes ?? file;
}

/** Whether a newer response answers all requests that an older one of the same URL answers. */
export function isReplacedBy(answer: StoredResponse, newer: StoredResponse): boolean {
  if (answer.rule !== newer.rule) return false;
  if (answer.plan !== newer.plan) return true;
  if (newer.range !== undefined && answer.range === undefined) return false;
  const isSameVary = answer.varyNames.join() === newer.varyNames.join();
  return isSameVary && answer.selecting.every((key) => newer.selecting.includes(key));
}
