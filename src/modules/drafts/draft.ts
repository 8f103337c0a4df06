import { previewCookie } from '../../core/http/preview-cookie.ts';
import {
  type Change,
  type Family,
  type RevertibleFamily,
  isRevertible,
} from '../../core/log/change.ts';
import { keyOf } from '../../core/log/encoding.ts';
import type { Bounds } from '../../core/values/bounds.ts';
import { type JsonObject, isJsonObject } from '../../core/values/json/json.ts';
import type { NamedMoment } from '../../core/values/time.ts';

const pair = /(?:^|;)\s*waymark_draft=([\w.-]{1,200})(?=;|$)/;
const anyPair = /(?:^|;)\s*waymark_draft=[^;]*/g;

/** The states of a draft: only an open one takes changes and can be read. */
export const draftStates = ['open', 'published', 'discarded'] as const;

/** A named set of changes that is not live (docs/design/drafts.md). */
export interface SiteDraft {
  readonly id: string;
  readonly name: string;
  readonly comment?: string;
  readonly state: (typeof draftStates)[number];
  /** When it was made, ISO 8601 UTC, and who made it. */
  readonly created: string;
  readonly by: string;
  /** What was said about it, the oldest first. */
  readonly comments?: readonly DraftNote[];
  /** When it was submitted for review last, and by whom. */
  readonly submitted?: Omit<DraftNote, 'text'>;
  /** The latest approval of each key, with its seq: it covers the changes before it. */
  readonly approvals?: readonly (Omit<DraftNote, 'text'> & { readonly seq: number })[];
  /** The links that show it. */
  readonly previews?: readonly DraftPreview[];
  /** When it is to be published; only while it is open. */
  readonly schedule?: DraftSchedule;
  /** Set once it is no longer open: when, by whom, and the transaction that published it. */
  readonly closed?: string;
  readonly closed_by?: string;
  readonly txn?: string;
  /** Seq of its newest change, and of its insert, which its keys in the store begin with. */
  readonly seq: number;
  readonly insertedSeq: number;
}

/** A publication at a time (docs/design/drafts.md#schedules). */
export interface DraftSchedule extends NamedMoment, ScheduledWork {
  /** Who scheduled it, and the seq of that change. */
  readonly by: string;
  readonly seq: number;
  /** When it has failed, ISO 8601 UTC, and why. Only a new schedule is tried again. */
  readonly failed?: { readonly at: string; readonly reason: string };
}

/** What a schedule does at its time: the publication that was confirmed. */
interface ScheduledWork {
  readonly digest: string;
  readonly resolve?: Readonly<Record<string, 'draft' | 'live'>>;
  readonly others?: 'draft' | 'live';
}

/** The schedule of a draft that is still to be carried out; undefined for none. */
export function waitingSchedule({ state, schedule }: SiteDraft): DraftSchedule | undefined {
  return state === 'open' && schedule?.failed === undefined ? schedule : undefined;
}

/** A link that shows a draft until a time (ISO 8601 UTC). */
export interface DraftPreview {
  readonly id: string;
  /** SHA-256 of its secret, lower-case hex. */
  readonly hash: string;
  readonly expires: string;
  /** The id of the key that made it, with which it ends; older ones do not have it. */
  readonly by?: string;
  /** The bound key that made it: the link ends while that key does not see the draft. */
  readonly reader?: { readonly bounds: Bounds; readonly keyId: string | undefined };
}

/** A comment on a draft: when (ISO 8601 UTC), by whom, and the text. */
interface DraftNote {
  readonly at: string;
  readonly by: string;
  readonly text: string;
}

/** The families of records that a draft can change. A secret follows its hook. */
export type DraftedFamily = RevertibleFamily | 'secret';

/** The data of a row of the family `draftchange`: a change that counts in one draft only. */
interface DraftChangeData {
  readonly draft: string;
  readonly family: DraftedFamily;
  readonly id: string;
  readonly data: JsonObject;
  /** The idempotency key of the request, for the draft's publication. */
  readonly vk?: { readonly vk: string; readonly requestHash: string };
}

/** Whether a draft can change the records of a family. */
export function isDrafted(family: Family): family is DraftedFamily {
  return family === 'secret' || isRevertible(family);
}

/** The id of the log's rows for a record in a draft: no other record has it. */
export function draftChangeId(draft: string, id: string): string {
  return `${draft}-${id}`;
}

/** The change that a row of the family `draftchange` makes in its draft; undefined for others. */
export function changeInDraft(
  row: Change,
): { readonly draft: string; readonly change: Change & { family: DraftedFamily } } | undefined {
  if (row.family !== 'draftchange') return undefined;
  const { draft, family, id, data } = row.data as unknown as DraftChangeData;
  return { draft, change: { ...row, family, id, data: isJsonObject(data) ? data : {} } };
}

/** The idempotency key of the request that wrote a row of the family `draftchange`. */
export function vkInDraft({ data }: Change): DraftChangeData['vk'] {
  return (data as unknown as DraftChangeData).vk;
}

/** The vk of a request as a draft claims it: each draft has vks of its own. */
export function draftVk(draft: string, vk: string): string {
  return `draft ${draft} ${vk}`;
}

/**
 * The key of a draft in `draftstate`: drafts that have ended stay, and a reader of the open ones
 * must not read those.
 */
export function draftStateKey({ state, id }: Pick<SiteDraft, 'state' | 'id'>): Buffer {
  return keyOf(`${state} ${id}`);
}

/** The token in the Cookie of a request; undefined without one. */
export function previewToken(cookie: string | undefined): string | undefined {
  return cookie?.includes(previewCookie) === true ? pair.exec(cookie)?.[1] : undefined;
}

/** A Cookie without the token, which no source may see. */
export function withoutPreview(cookie: string): string {
  return cookie.replaceAll(anyPair, '').replace(/^;\s*/, '').trim();
}
