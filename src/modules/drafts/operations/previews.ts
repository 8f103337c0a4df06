import { createHash, timingSafeEqual } from 'node:crypto';
import type { Decision, LoggedDraft, Reads, Store } from '../../../core/log/store.ts';
import { authorise } from '../../../core/operations/execute.ts';
import { currentKey } from '../../../core/operations/keys/authenticate.ts';
import { authorOf, changeAuthorOf, defineOperation } from '../../../core/operations/operation.ts';
import {
  commitOnce,
  keyedRequest,
  reportResult,
} from '../../../core/operations/records/idempotency.ts';
import { vkMember } from '../../../core/operations/records/schema.ts';
import { Failure } from '../../../core/values/failure.ts';
import { type JsonObject, isJsonObject } from '../../../core/values/json/json.ts';
import type { StaticOutput } from '../../../core/values/json/static.ts';
import { keyEndMs } from '../../../core/values/key.ts';
import { isDraftSeen, openDraftSeen } from '../bounds.ts';
import type { DraftPreview, SiteDraft } from '../draft.ts';
import { isKeyId } from '../preview-trust.ts';
import { draftProperty } from './drafts.ts';
import { storedDrafts } from '../log/family.ts';

/** Previews of a draft at the same time, and how long each works. */
const draftPreviewsMax = 100;
const previewSecondsDefault = 7 * 86_400;
const previewSecondsMax = 90 * 86_400;

/** The parts that previews need. */
interface PreviewParts {
  readonly store: Store;
  readonly newId: () => string;
  readonly randomBytes: (count: number) => Buffer;
  /** Milliseconds since 1970. */
  readonly now: () => number;
  readonly view: { readonly base: string; readonly publicUrl: string | undefined };
}

const text = { type: 'string' } as const;

const previewSchema = {
  title: 'DraftPreview',
  type: 'object',
  required: ['id', 'expires'],
  properties: {
    id: { ...text, description: 'For draft.revoke.' },
    url: {
      ...text,
      description: 'Opens the site as the draft has it. Shown once, and by no repeat with its vk.',
    },
    expires: { ...text, format: 'date-time' },
  },
} as const;

type ShownPreview = StaticOutput<typeof previewSchema>;

/**
 * draft.preview: makes a link with which a browser sees the site as an open draft has it. A repeat
 * with the same vk makes no other link, and has the answer without it.
 */
export const previewDraft = defineOperation({
  name: 'svc1.draft.preview',
  scope: 'draft',
  effect: 'writes',
  summary: 'Makes a link that shows the site as an open draft has it, until it ends.',
  input: {
    type: 'object',
    required: ['draft'],
    properties: {
      draft: draftProperty,
      seconds: {
        type: 'integer',
        nullable: true,
        minimum: 1,
        maximum: previewSecondsMax,
        description: `How long the link works; by default ${previewSecondsDefault}.`,
      },
    },
  },
  envelope: { vk: vkMember },
  output: previewSchema,
  failures: ['not_found', 'conflict'],
  run:
    ({ store, newId, randomBytes, now, view }: PreviewParts) =>
    async ({ draft: name, seconds = previewSecondsDefault }, call) => {
      // The link shows the draft.
      authorise({ name: 'svc1.draft.preview', scope: 'read' }, call.caller);
      const secret = randomBytes(32).toString('base64url');
      const { bounds, keyId } = call.caller;
      // The link is worth no more than the key that makes it.
      const key = keyId === undefined ? undefined : store.key(keyId);
      const endMs = Math.min(now() + 1_000 * seconds, key === undefined ? Infinity : keyEndMs(key));
      const expires = new Date(endMs).toISOString();
      const preview: DraftPreview = {
        ...{ id: newId(), hash: hashOf(secret).toString('hex'), expires },
        ...(keyId !== undefined && { by: keyId }),
        ...(bounds !== undefined && { reader: { bounds, keyId } }),
      };
      const site = view.publicUrl ?? call.origin;
      const request = keyedRequest('draft.preview', { draft: name, seconds }, call);
      const decide = (reads: Reads, claim: Pick<LoggedDraft, 'vk'>): Decision<JsonObject> => {
        const { id, previews = [] } = openDraftSeen({ store, reads }, name, call.caller);
        if (previews.filter((one) => isCurrent(one, now())).length >= draftPreviewsMax) {
          const message = `A draft has at most ${draftPreviewsMax} previews. Revoke one.`;
          throw new Failure('conflict', message, { field: 'draft' });
        }
        const data = { preview: { ...preview } as unknown as JsonObject };
        const url = `${site}${view.base}/svc1/preview/${id}.${secret}`;
        return {
          drafts: [{ family: 'draft', id, action: 'edit', data, ...claim }],
          answer: () => ({ id: preview.id, url, expires }),
        };
      };
      const again = (reads: Reads, seq: number): JsonObject => {
        const made = reads.change(seq)?.data.preview as unknown as DraftPreview;
        return { id: made.id, expires: made.expires };
      };
      const by = { by: authorOf(call), via: call.via, request };
      const { data, ...result } = reportResult(
        await commitOnce(store, by, { again, decide }),
        request,
      );
      return { ...result, data: data as unknown as ShownPreview };
    },
});

/** draft.revoke: ends a preview at once. Refuses with `not_found` for one that there is not. */
export const revokePreview = defineOperation({
  name: 'svc1.draft.revoke',
  scope: 'draft',
  effect: 'writes',
  summary: 'Ends a preview of a draft at once.',
  input: {
    type: 'object',
    required: ['draft', 'id'],
    properties: { draft: draftProperty, id: { ...text, description: 'The id of the preview.' } },
  },
  output: { type: 'object', required: ['id'], properties: { id: text } },
  failures: ['not_found', 'conflict'],
  run:
    ({ store }: Pick<PreviewParts, 'store'>) =>
    async ({ draft: name, id: preview }, call) => {
      await store.commit(changeAuthorOf(call), (reads) => {
        const { id, previews = [] } = openDraftSeen({ store, reads }, name, call.caller);
        if (previews.every((one) => one.id !== preview)) {
          throw new Failure('not_found', 'The draft has no such preview.', { field: 'id' });
        }
        return {
          drafts: [{ family: 'draft', id, action: 'edit', data: { revoked: preview } }],
          answer: () => undefined,
        };
      });
      return { kind: 'data', data: { id: preview } };
    },
});

/** The open draft that the token of a preview shows, with its end in milliseconds since 1970. */
export function previewedDraft(
  store: Store,
  token: string,
  nowMs: number,
): { readonly draft: SiteDraft; readonly endMs: number } | undefined {
  const [id = '', secret = ''] = token.split('.');
  const draft = store.of(storedDrafts).draft(id);
  if (draft?.state !== 'open') return undefined;
  const hash = hashOf(secret);
  const found = draft.previews?.find((one) => {
    return isCurrent(one, nowMs) && timingSafeEqual(Buffer.from(one.hash, 'hex'), hash);
  });
  if (found === undefined) return undefined;
  const { reader, expires } = found;
  const by = makerOf(store, draft, found);
  if (by !== undefined && currentKey(store, by, nowMs) === undefined) return undefined;
  // Others may have changed more in the draft than its key sees.
  if (reader !== undefined && !isDraftSeen({ store, reads: store }, draft, reader))
    return undefined;
  return { draft, endMs: Date.parse(expires) };
}

/** The key that made a preview, if it was one: of an older preview, the log knows it. */
function makerOf(
  store: Pick<Store, 'rows'>,
  draft: SiteDraft,
  { id, by }: DraftPreview,
): string | undefined {
  if (by !== undefined) return by;
  const made = store.rows('draft', draft.id).find(({ data: { preview } }) => {
    return isJsonObject(preview) && preview.id === id;
  });
  return made !== undefined && isKeyId(made.by) ? made.by : undefined;
}

function isCurrent({ expires }: DraftPreview, nowMs: number): boolean {
  return Date.parse(expires) > nowMs;
}

function hashOf(secret: string): Buffer {
  return createHash('sha256').update(secret).digest();
}
