import type { Json, JsonObject } from '../../../../src/core/values/json/json.ts';
import type { State } from './ledger.ts';
import { asText } from './values.ts';
import type { World } from './world.ts';

/** The schema of the only table of the server, which records have as `meta`. */
export const tableSchema: JsonObject = {
  type: 'object',
  properties: { name: { type: 'string' } },
};

/** The table's name. */
export const tableName = 'products';

/** The stored fields of a record. */
export function ownFields({ id, fields, unknowns }: State): JsonObject {
  return {
    id,
    ...Object.fromEntries(fields),
    ...(unknowns.size > 0 && { _unknowns_: Object.fromEntries(unknowns) }),
  };
}

/** A record in the answer of read. */
export function shown(world: Pick<World, 'origin'>, state: State): JsonObject {
  return { ...ownFields(state), ...serverFields(world, state), seq: state.seq };
}

function serverFields({ origin }: Pick<World, 'origin'>, { fields }: State): JsonObject {
  const engine = fields.get('engine');
  return {
    ...(typeof engine === 'string' && {
      enginereference: `${origin}/svc1/engines/${engine}`,
    }),
    ...(fields.get('table') === tableName && { meta: tableSchema }),
  };
}

/** A record in the answer of list, with the length of its content. */
export function listed(world: World, state: State): JsonObject {
  const { content, ...record } = shown(world, state);
  return content === undefined ? record : { ...record, content_bytes: lengthOf(content) };
}

function lengthOf(content: Json): number {
  if (typeof content === 'string') return Buffer.byteLength(content);
  return Buffer.from(asText((content as JsonObject).base64), 'base64').length;
}

/**
 * A record as a running page sees it, without secrets
 * (docs/design/operations.md#one-definition).
 */
export function rendered(world: World, state: State, path: string): JsonObject {
  const { _unknowns_, enginecomments, enginedata, ...open } = ownFields(state);
  const { source, headers, ...data } = (enginedata ?? {}) as JsonObject;
  const isHidden = open.kind === 'content.fetch' || open.kind === 'resolve';
  const own = asText(open.path);
  const isWildcard = own.startsWith('/') && own.endsWith('*');
  return {
    ...open,
    ...(enginedata !== undefined && !isHidden && { enginedata: data }),
    ...(isWildcard && { capture: path.slice(own.length - 1) }),
    ...serverFields(world, state),
    seq: state.seq,
  };
}
