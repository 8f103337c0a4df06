import type { FieldList, Reply } from '../http/reply.ts';
import type { Row } from './storage/record.ts';
import type { HeldPage } from '../http/held-page.ts';
import type { ClockReading } from './clock.ts';
import type { ContentFile } from './content-file.ts';
import type { Freshness } from './freshness.ts';

/** A part of a representation that is there: first and last byte, and the length of all of it. */
export interface StoredRange {
  readonly first: number;
  readonly last: number;
  readonly completeLength: number;
}

/** An answer of a source as it is kept; its content is kept beside it. */
export interface StoredResponse {
  /** Its own, for as long as its content is the same. */
  readonly id: string;
  /** The visible URL that it is an answer for: the primary key (RFC 9111 §2). */
  readonly url: string;
  /** Id of the page rule that asked for it, and a hash of what in it decides what is answered. */
  readonly rule: string;
  readonly plan: string;
  /** The status that the source gave it, and the one that clients see. */
  readonly status: number;
  readonly shownStatus: number;
  /** As clients see them, without Age. */
  readonly fields: FieldList;
  readonly freshness: Freshness;
  /** The names in its Vary, and for which texts of selectingKey it is the answer (§4.1). */
  readonly varyNames: readonly string[];
  readonly selecting: readonly string[];
  /** Undefined for a whole representation (§3.3). */
  readonly range: StoredRange | undefined;
  readonly bytesLength: number;
  /** When it was put into the storage; undefined before. */
  readonly storedAt?: ClockReading;
}

/** A kept answer as a process has it in memory. */
export interface CachedResponse {
  readonly answer: StoredResponse;
  /** Its place in the storage; undefined while it is on its way there. */
  row: Row<StoredResponse> | undefined;
  /** Its content, under the fields that never change; undefined where it is not at hand. */
  page: HeldPage | undefined;
  /** Where its content is if it is too long to be at hand. */
  readonly file: ContentFile | undefined;
  /** Seconds since 1970 when it was last noted that it was used. */
  usedSecond: number;
  /** The answer to most who ask within one second, made once. */
  whole: { readonly second: number; readonly reply: Reply } | undefined;
}

/** The content of a kept answer, as far as it can be sent at this moment. */
export function contentOf({ page, file }: CachedResponse): Buffer | ContentFile | undefined {
  return page?.bytes ?? file;
}

/** Whether a new answer stands for all that an older one of the same URL stood for. */
export function isReplacedBy(answer: StoredResponse, newer: StoredResponse): boolean {
  if (answer.rule !== newer.rule) return false;
  if (answer.plan !== newer.plan) return true;
  if (newer.range !== undefined && answer.range === undefined) return false;
  const isSameVary = answer.varyNames.join() === newer.varyNames.join();
  return isSameVary && answer.selecting.every((key) => newer.selecting.includes(key));
}
