import { Failure } from '../values/failure.ts';
import { type Databases, schemaVersion } from './databases.ts';

/** The names of the members of the identity in the database `meta`. */
export const identityFields = {
  id: 'log',
  generation: 'generation',
  follows: 'follows',
  partial: 'partial',
} as const;

/** The log of a data folder among the logs of all nodes. */
export interface LogIdentity {
  /** Equal for a log and its copies; a purge of secrets gives the log another one. */
  readonly id: string;
  /** How often a copy of the log has replaced it as the log of the centre. */
  readonly generation: number;
  /** The node whose log it is a copy of; undefined for a log of its own. */
  readonly follows: Followed | undefined;
}

/** The origin of a copy of a log. */
interface Followed {
  /** The URL of the node. */
  readonly central: string;
  /** Whether the copy was begun by a version that may have ignored some of its rows. */
  readonly isOlder: boolean;
  /** Whether the first copy is incomplete, so that the node must not serve it. */
  readonly isPartial: boolean;
}

/** The identity that the databases have; the id is '' in a folder of an older version. */
export function identityOf(databases: Pick<Databases, 'meta'>): LogIdentity {
  const { meta } = databases;
  const id = meta.get(identityFields.id) ?? '';
  const generation = Number(meta.get(identityFields.generation) ?? 0);
  return { id, generation, follows: followsOf(databases) };
}

/** The centre whose log this one copies; undefined for a log of its own. */
export function followsOf({ meta }: Pick<Databases, 'meta'>): LogIdentity['follows'] {
  const [, schema = '', central = ''] =
    /^(\d+) (.+)$/.exec(meta.get(identityFields.follows) ?? '') ?? [];
  if (central === '') return undefined;
  const isPartial = meta.get(identityFields.partial) !== undefined;
  return { central, isOlder: Number(schema) < schemaVersion, isPartial };
}

/** Gives a log that has no id one. The caller runs it in a write transaction. */
export function putIdentity({ meta }: Pick<Databases, 'meta'>, id: string): void {
  if (meta.get(identityFields.id) === undefined) meta.putSync(identityFields.id, id);
}

/** The failure of a change in a copy. */
export function copyFailure({ central }: Followed): Failure {
  return new Failure(
    'conflict',
    `The data of this node is a copy of that of ${central}: make the change there.`,
  );
}
