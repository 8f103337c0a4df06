import type { Failure, FailureCode } from '../../values/failure.ts';
import type { Operation } from '../operation.ts';

/** The pages about failures whose message cannot say everything; by default there is none. */
const pages: Readonly<Partial<Record<FailureCode, string>>> = {
  unauthenticated: 'how-to/keys-and-scopes.html',
  forbidden: 'how-to/keys-and-scopes.html',
  conflict: 'reference/errors.html#conflict',
  precondition_failed: 'reference/errors.html#precondition_failed',
  unprocessable: 'reference/errors.html#unprocessable',
  too_large: 'reference/limits.html',
  rate_limited: 'reference/limits.html',
  bad_gateway: 'how-to/fetched-content.html',
  gateway_timeout: 'how-to/fetched-content.html',
  storage_full: 'how-to/troubleshoot.html',
};

/** What decides which page helps with the failure of an operation. */
export type DocumentedOperation = Pick<Operation, 'name' | 'effect'>;

/**
 * The page, below `/svc1/docs/`, that helps with the failure of an operation: of its limit, of its
 * problems, of the operation if its input is invalid, or of the code. Undefined if none does; the
 * operation is undefined for a path that is none.
 */
export function docsOf(
  operation: DocumentedOperation | undefined,
  { code, limit, problems }: Pick<Failure, 'code' | 'limit' | 'problems'>,
): string | undefined {
  if (limit !== undefined) return `reference/limits.html#${limit}`;
  if (problems !== undefined && operation?.effect === 'writes') {
    return 'reference/errors.html#problems-of-a-write';
  }
  if (code !== 'invalid' || operation === undefined) return pages[code];
  // As docs/site/markdown.ts makes the fragment of a heading.
  return `reference/operations.html#${operation.name.replaceAll('.', '')}`;
}
