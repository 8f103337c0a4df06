import { preferredLanguage } from '../../../core/http/representation/negotiation.ts';
import type { VisitorTraits } from '../../../core/pipeline/conditions/condition.ts';
import type { JsonObject } from '../../../core/values/json/json.ts';
import { previewFields } from '../../../core/pipeline/conditions/table.ts';
import type { Fields } from '../../../core/http/request.ts';
import { Failure } from '../../../core/values/failure.ts';
import { hasScope } from '../../../core/values/key.ts';
import type { Location } from '../../../core/http/visitor.ts';
import type { Visitor } from '../../../core/http/visitor.ts';
import { bucketOf, seedOf } from '../../visitors/bucket.ts';
import type { Call } from '../../../core/operations/operation.ts';
import { unknownAddress } from '../../../core/values/network/peer.ts';

/** The properties of a visitor in an input; a property that is left out is unknown. */
export type Preview = Readonly<Record<string, string | number>>;

/** The part of an input schema that describes a visitor (docs/design/operations.md#explain). */
export const previewProperties: Readonly<Record<string, JsonObject>> = Object.fromEntries(
  Object.entries(previewFields).map(([name, { schema }]) => [name, schema]),
);

/** The members of an input that describe a visitor. */
export function previewOf(v: object): Preview {
  const sent = Object.entries(v) as [string, string | number | null | undefined][];
  return Object.fromEntries(
    sent.filter(
      (entry): entry is [string, string | number] =>
        Object.hasOwn(previewFields, entry[0]) && (entry[1] ?? null) !== null,
    ),
  );
}

/** Whether an input describes a visitor. */
export function isPreview(v: object): boolean {
  return Object.keys(previewOf(v)).length > 0;
}

/** The time that an input describes, in milliseconds since 1970; undefined for that of the call. */
export function previewTimeMs(v: object): number | undefined {
  return traitsOf(previewOf(v)).nowMs;
}

/** The dependencies of a preview. */
interface PreviewContext {
  readonly nowMs: number;
  /** The `[node] place` of this server. */
  readonly place: string | undefined;
  /** The location of an address. */
  readonly locationOf: (address: string) => Promise<Location>;
}

/** A visitor, with the header fields of its request. */
export interface Previewed {
  readonly visitor: Visitor;
  readonly fields: Fields;
}

/**
 * The visitor that a preview describes. It decides conditions and words only: what the caller may
 * read stays the same (docs/design/operations.md#previews). Rejects with `invalid` for an
 * impossible value.
 */
export async function previewVisitor(
  preview: Preview,
  { nowMs, place, locationOf }: PreviewContext,
): Promise<Previewed> {
  const { fields = {}, ...traits } = traitsOf(preview);
  const { user, roles = [], address = unknownAddress } = traits;
  if (roles.length > 0 && user === undefined) {
    throw new Failure('invalid', 'A role belongs to a user: give `user` as well.', {
      field: 'role',
    });
  }
  const found = address === unknownAddress ? undefined : await locationOf(address);
  const location: Location = {
    country: traits.country ?? found?.country,
    regions: traits.regions ?? found?.regions ?? [],
    cities: traits.cities ?? found?.cities ?? [],
  };
  const known = { nowMs: traits.nowMs ?? nowMs, location, fields };
  const visitor = describedVisitor({ ...(place !== undefined && { place }), ...traits }, known);
  return { visitor, fields };
}

/** A visitor about whom nothing is known. */
export function unknownVisitor(nowMs: number): Visitor {
  const location = { country: undefined, regions: [], cities: [] };
  return describedVisitor({}, { nowMs, location, fields: {} });
}

function describedVisitor(
  traits: VisitorTraits,
  {
    nowMs,
    location,
    fields,
  }: { readonly nowMs: number; readonly location: Location; readonly fields: Fields },
): Visitor {
  const { user, roles = [], address = unknownAddress } = traits;
  const seed = seedOf({}, address);
  return fixedVisitor({
    address,
    nowMs,
    language: () => preferredLanguage(fields['accept-language']),
    devices: () => traits.devices ?? new Set(),
    seed: () => seed,
    bucket: (ruleId) => traits.bucket ?? bucketOf(seed, ruleId),
    prepare: () => undefined,
    user: () => (user === undefined ? undefined : { name: user, roles }),
    signedInUser: () => undefined,
    location: () => location,
    place: () => traits.place,
    certificate: () => undefined,
    field: (name) => fields[name],
  });
}

/**
 * The visitor that an input describes, instead of the caller; undefined if it describes none. Only
 * callers with the scope read may see pages of other visitors: otherwise a caller could see a page
 * for some users by naming one of them.
 */
export async function previewFor(
  v: object,
  { caller, visitor }: Pick<Call, 'caller' | 'visitor'>,
  {
    nowMs = visitor.nowMs,
    locationOf,
  }: Pick<PreviewContext, 'locationOf'> & { readonly nowMs: number | undefined },
): Promise<Previewed | undefined> {
  const preview = previewOf(v);
  const [field] = Object.keys(preview);
  if (field === undefined) return undefined;
  if (!hasScope(caller, 'read')) {
    throw new Failure(
      caller.keyId === undefined ? 'unauthenticated' : 'forbidden',
      `${field} needs an API key with the scope read. Send one, or leave ${field} out.`,
      { field },
    );
  }
  return previewVisitor(preview, { nowMs, place: visitor.place(), locationOf });
}

/** The traits of a visitor from all fields of a preview. */
function traitsOf(preview: Preview): VisitorTraits {
  let all: VisitorTraits = {};
  for (const [name, value] of Object.entries(preview)) {
    const field = previewFields[name];
    const traits = field?.traits(value);
    if (traits === undefined) {
      throw new Failure('invalid', `${name} must be ${field?.form ?? 'left out'}.`, {
        field: name,
      });
    }
    all = { ...all, ...traits, fields: { ...all.fields, ...traits.fields } };
  }
  return all;
}

function fixedVisitor(traits: Omit<Visitor, 'with'>): Visitor {
  const { nowMs } = traits;
  return { ...traits, with: (other) => fixedVisitor({ ...traits, nowMs: other.nowMs ?? nowMs }) };
}
