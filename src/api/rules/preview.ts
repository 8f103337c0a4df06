import { preferredLanguage } from '../../http/negotiation.ts';
import type { VisitorTraits } from '../../breadcrumbs/condition.ts';
import { previewFields } from '../../breadcrumbs/conditions/table.ts';
import type { Fields } from '../../http/request.ts';
import { Failure } from '../../model/failure.ts';
import { hasScope } from '../../model/key.ts';
import type { Location } from '../../model/visitor.ts';
import type { Visitor } from '../../model/visitor.ts';
import { bucketOf, seedOf } from '../../visitors/bucket.ts';
import type { Call } from '../operation.ts';

/** A visitor as somebody describes one: what is left out is not known of it. */
export type Preview = Readonly<Record<string, string | number>>;

/**
 * The part of an input schema that describes a visitor (docs/design/operations.md#explain,
 * explain).
 */
export const previewProperties = Object.fromEntries(
  Object.entries(previewFields).map(([name, { schema }]) => [name, schema]),
);

/** The members of some input that describe a visitor. */
export function previewOf(v: object): Preview {
  const sent = Object.entries(v) as [string, string | number | null | undefined][];
  return Object.fromEntries(
    sent.filter(
      (entry): entry is [string, string | number] =>
        Object.hasOwn(previewFields, entry[0]) && (entry[1] ?? null) !== null,
    ),
  );
}

/** What a preview needs to know besides. */
interface PreviewSurroundings {
  readonly nowMs: number;
  /** The `[node] place` that answers. */
  readonly place: string | undefined;
  /** Where an address is. */
  readonly locationOf: (address: string) => Promise<Location>;
}

/** A visitor, with the header fields of its request. */
export interface Previewed {
  readonly visitor: Visitor;
  readonly fields: Fields;
}

/**
 * The visitor of a description. Rejects with `invalid`, naming the field, for what cannot be.
 */
export async function previewVisitor(
  preview: Preview,
  { nowMs, place, locationOf }: PreviewSurroundings,
): Promise<Previewed> {
  const { fields = {}, ...traits } = traitsOf(preview);
  const { user, roles = [], address = '' } = traits;
  if (roles.length > 0 && user === undefined) {
    throw new Failure('invalid', 'A role belongs to a user: give `user` as well.', {
      field: 'role',
    });
  }
  const found = address === '' ? undefined : await locationOf(address);
  const location: Location = {
    country: traits.country ?? found?.country,
    regions: traits.regions ?? found?.regions ?? [],
    cities: traits.cities ?? found?.cities ?? [],
  };
  const seed = seedOf({}, address);
  const visitor = described({
    address,
    nowMs: traits.nowMs ?? nowMs,
    language: () => preferredLanguage(fields['accept-language']),
    devices: () => traits.devices ?? new Set(),
    seed: () => seed,
    bucket: (ruleId) => traits.bucket ?? bucketOf(seed, ruleId),
    prepare: () => undefined,
    user: () => (user === undefined ? undefined : { name: user, roles }),
    location: () => location,
    place: () => traits.place ?? place,
    field: (name) => fields[name],
  });
  return { visitor, fields };
}

/**
 * Another visitor in place of the caller, where one is described; undefined where none is. What
 * others see is for callers who may read: a page for some is not to be had by saying that one is
 * one of them.
 */
export async function previewFor(
  v: object,
  { caller, visitor }: Pick<Call, 'caller' | 'visitor'>,
  {
    nowMs = visitor.nowMs,
    locationOf,
  }: Pick<PreviewSurroundings, 'locationOf'> & { readonly nowMs: number | undefined },
): Promise<Previewed | undefined> {
  const preview = previewOf(v);
  const [field] = Object.keys(preview);
  if (field === undefined) return undefined;
  if (!hasScope(caller, 'read')) {
    throw new Failure(
      caller.keyId === undefined ? 'unauthenticated' : 'forbidden',
      'To see what another visitor sees needs an API key with the scope read.',
      { field },
    );
  }
  return previewVisitor(preview, { nowMs, place: visitor.place(), locationOf });
}

/** What all the fields of a description together say of the visitor. */
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

function described(traits: Omit<Visitor, 'with'>): Visitor {
  const { nowMs } = traits;
  return { ...traits, with: (other) => described({ ...traits, nowMs: other.nowMs ?? nowMs }) };
}
