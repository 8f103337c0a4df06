import { operations } from '../../../modules.ts';
import type { Failure, FailureCode } from '../../values/failure.ts';

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

const effects = new Map(operations.map(({ name, effect }) => [name, effect]));

/**
 * The page, below `/svc1/docs/`, that helps with the failure of an operation: of its limit, of its
 * problems, of the operation if its input is invalid, or of the code. Undefined if none does.
 */
export function docsOf(
  operation: string,
  { code, limit, problems }: Pick<Failure, 'code' | 'limit' | 'problems'>,
): string | undefined {
  if (limit !== undefined) return `reference/limits.html#${limit}`;
  const effect = effects.get(operation);
  if (problems !== undefined && effect === 'writes') {
    return 'reference/errors.html#problems-of-a-write';
  }
  if (code !== 'invalid' || effect === undefined) return pages[code];
  // As docs/site/markdown.ts makes the fragment of a heading.
  return `reference/operations.html#${operation.replaceAll('.', '')}`;
}
