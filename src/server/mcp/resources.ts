import { isJsonObject, type JsonObject } from '../../model/json/json.ts';
import { Failure } from '../../model/failure.ts';
import type { DocsFiles } from '../../pages/docs-files.ts';
import { resourcesPerPage, resourceUriCharactersMax } from './limits.ts';

/** A resource in a list (resources/list). */
interface Resource {
  readonly uri: string;
  readonly name: string;
  readonly mimeType: string;
}

/** A page of the list of resources. */
interface ResourcePage {
  readonly resources: readonly Resource[];
  readonly nextCursor?: string;
}

/** Runs an operation that reads, as the caller of the request; resolves to its data. */
type RunRead = (name: string, v: JsonObject) => Promise<unknown>;

const docsUri = 'waymark://docs/';
const rulesUri = 'waymark://rules/';

/** The forms of the addresses of resources (RFC 6570). */
export const resourceTemplates = [
  {
    uriTemplate: `${docsUri}{+page}`,
    name: 'documentation',
    description: 'A page of the documentation of this server: how-to/drafts.md.',
    mimeType: 'text/markdown',
  },
  {
    uriTemplate: `${rulesUri}{id}`,
    name: 'page rule',
    description: 'A page rule with all of its fields, by its id.',
    mimeType: 'application/json',
  },
] as const;

/**
 * A page of the list: the pages of the documentation, then the page rules. Rejects with `invalid`
 * for a cursor that no page has, and as userinterface.list does.
 */
export async function listResources(
  docs: DocsFiles,
  run: RunRead,
  cursor = 'docs 0',
): Promise<ResourcePage> {
  const [kind, place = ''] = cursor.slice(0, resourceUriCharactersMax).split(' ');
  if (kind === 'docs' && /^\d{1,6}$/.test(place)) return docsPage(docs, Number(place));
  if (kind === 'rules') return rulesPage(run, place);
  throw new Failure('invalid', 'There is no page of the list with this cursor.', {
    field: 'cursor',
  });
}

function docsPage(docs: DocsFiles, first: number): ResourcePage {
  const pages = [...docs.keys()].filter((path) => path.endsWith('.md'));
  const end = first + resourcesPerPage;
  return {
    resources: pages.slice(first, end).map((path) => ({
      uri: docsUri + path,
      name: `docs: ${path.replace(/\.md$/, '')}`,
      mimeType: 'text/markdown',
    })),
    nextCursor: end < pages.length ? `docs ${end}` : 'rules ',
  };
}

async function rulesPage(run: RunRead, after: string): Promise<ResourcePage> {
  const v = { limit: resourcesPerPage, ...(after !== '' && { after }) };
  const data = await run('svc1.userinterface.list', v);
  const { rows, next } = data as {
    readonly rows: readonly {
      readonly id: string;
      readonly origin?: string;
      readonly path?: string;
    }[];
    readonly next: string | null;
  };
  return {
    resources: rows.map(({ id, origin = '', path = '' }) => ({
      uri: rulesUri + id,
      name: `page rule: ${origin === '*' ? '' : origin}${path}`,
      mimeType: 'application/json',
    })),
    ...(next !== null && { nextCursor: `rules ${next}` }),
  };
}

/** What a resource contains: text of this server's documentation, or data of the site. */
type ResourceContent =
  | { readonly kind: 'docs'; readonly text: string }
  | { readonly kind: 'data'; readonly data: JsonObject };

/** Reads a resource. Rejects with `not_found`, and as userinterface.read does. */
export async function readResource(
  docs: DocsFiles,
  run: RunRead,
  uri: string,
): Promise<ResourceContent> {
  if (uri.length <= resourceUriCharactersMax && uri.startsWith(docsUri)) {
    const path = uri.slice(docsUri.length);
    const found = path.endsWith('.md') ? docs.get(path) : undefined;
    if (found !== undefined) return { kind: 'docs', text: found.file.bytes.toString() };
  }
  if (uri.length <= resourceUriCharactersMax && uri.startsWith(rulesUri)) {
    const data = await run('svc1.userinterface.read', { id: uri.slice(rulesUri.length) });
    if (isJsonObject(data)) return { kind: 'data', data };
  }
  const shown = JSON.stringify(uri.slice(0, 80));
  throw new Failure('not_found', `There is no resource ${shown}. resources/list has all.`);
}
