import { Failure } from '../../values/failure.ts';
import type { Databases } from '../databases.ts';

/** How far a data folder has applied a shared log. */
export interface SharedPlace {
  /** The id of the shared log. */
  readonly id: string;
  /** The position of the last entry that was applied; 0 for none. */
  readonly position: number;
}

const field = 'shared';
const memberField = 'member';

/** The place of a data folder in a shared log; undefined for the folder of a single machine. */
export function sharedPlace({ meta }: Pick<Databases, 'meta'>): SharedPlace | undefined {
  const [id, position] = meta.get(field)?.split(' ') ?? [];
  return id === undefined ? undefined : { id, position: Number(position) };
}

/** The caller runs it in a write transaction. */
export function putSharedPlace(
  { meta }: Pick<Databases, 'meta'>,
  { id, position }: SharedPlace,
): void {
  meta.putSync(field, `${id} ${position}`);
}

/** The name of the data folder in the cluster, which no other one has; '' outside a cluster. */
export function memberOf({ meta }: Pick<Databases, 'meta'>): string {
  return meta.get(memberField) ?? '';
}

/** The caller runs it in a write transaction. */
export function putMember({ meta }: Pick<Databases, 'meta'>, member: string): void {
  meta.putSync(memberField, member);
}

/**
 * The folder gets another member when it is opened next. The caller runs it in a write transaction.
 */
export function removeMember(databases: Pick<Databases, 'meta'>): void {
  if (memberOf(databases) !== '') databases.meta.removeSync(memberField);
}

/** Makes the folder that of a single machine. The caller runs it in a write transaction. */
export function removeSharedPlace(databases: Pick<Databases, 'meta'>): void {
  databases.meta.removeSync(field);
  removeMember(databases);
}

/** The failure of a change that would be only in this folder. */
export function sharedFailure(): Failure {
  return new Failure(
    'conflict',
    'The data folder is part of a cluster: make the change with the ini file that names the ' +
      'cluster, or end its part by `waymark cluster leave`.',
  );
}
