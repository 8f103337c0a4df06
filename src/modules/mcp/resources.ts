import { Failure } from '../../core/values/failure.ts';
import { type JsonObject, isJsonObject } from '../../core/values/json/json.ts';
import type { DocsFiles } from '../docs/docs-files.ts';

/** Resources in one page of a list. */
const resourcesPerPage = 100;

/** Characters of the address of a resource, and of the cursor of a list. */
const resourceUriCharactersMax = 1_024;

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

/** What the caller of the request may read of the site. */
export interface ResourceReads {
  /** Whether its key may call an operation. */
  readonly mayRun: (name: string) => boolean;
  /** Runs an operation that reads; resolves to its data. */
  readonly run: (name: string, v: JsonObject) => Promise<unknown>;
  /** Counts a request that runs no operation. Throws `rate_limited`. */
  readonly count: () => void;
}

const [listName, readName] = ['svc1.userinterface.list', 'svc1.userinterface.read'] as const;

const docsUri = 'waymark://docs/';
const rulesUri = 'waymark://rules/';

const docsTemplate = {
  uriTemplate: `${docsUri}{+page}`,
  name: 'documentation',
  description: 'A page of the documentation of this server: how-to/drafts.md.',
  mimeType: 'text/markdown',
};
const rulesTemplate = {
  uriTemplate: `${rulesUri}{id}`,
  name: 'page rule',
  description: 'A page rule with all of its fields, by its id.',
  mimeType: 'application/json',
};

/** The forms of the addresses of resources (RFC 6570) that a caller may read. */
export function templatesFor({ mayRun }: ResourceReads): readonly (typeof docsTemplate)[] {
  return mayRun(readName) ? [docsTemplate, rulesTemplate] : [docsTemplate];
}

/**
 * A page of the list: the pages of the documentation, then the page rules if the key may list
 * them. Rejects with `invalid` for a cursor that no page has, `rate_limited`, and as
 * userinterface.list does.
 */
export async function listResources(
  docs: DocsFiles,
  reads: ResourceReads,
  cursor = 'docs 0',
): Promise<ResourcePage> {
  const [kind, place = ''] = cursor.slice(0, resourceUriCharactersMax).split(' ');
  if (kind === 'docs' && /^\d{1,6}$/.test(place)) return docsPage(docs, reads, Number(place));
  if (kind === 'rules') return rulesPage(reads, place);
  throw new Failure('invalid', 'There is no page of the list with this cursor.', {
    field: 'cursor',
  });
}

function docsPage(docs: DocsFiles, reads: ResourceReads, first: number): ResourcePage {
  reads.count();
  const pages = [...docs.keys()].filter((path) => path.endsWith('.md'));
  const end = first + resourcesPerPage;
  return {
    resources: pages.slice(first, end).map((path) => ({
      uri: docsUri + path,
      name: `docs: ${path.replace(/\.md$/, '')}`,
      mimeType: 'text/markdown',
    })),
    ...(end < pages.length
      ? { nextCursor: `docs ${end}` }
      : reads.mayRun(listName) && { nextCursor: 'rules ' }),
  };
}

async function rulesPage({ run }: ResourceReads, after: string): Promise<ResourcePage> {
  const v = { limit: resourcesPerPage, ...(after !== '' && { after }) };
  const data = await run(listName, v);
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

/** Reads a resource. Rejects with `not_found`, `rate_limited`, and as userinterface.read does. */
export async function readResource(
  docs: DocsFiles,
  { run, count }: ResourceReads,
  uri: string,
): Promise<ResourceContent> {
  if (uri.length <= resourceUriCharactersMax && uri.startsWith(docsUri)) {
    const path = uri.slice(docsUri.length);
    const found = path.endsWith('.md') ? docs.get(path) : undefined;
    if (found !== undefined) count();
    if (found !== undefined) return { kind: 'docs', text: found.file.bytes.toString() };
  }
  if (uri.length <= resourceUriCharactersMax && uri.startsWith(rulesUri)) {
    const data = await run(readName, { id: uri.slice(rulesUri.length) });
    if (isJsonObject(data)) return { kind: 'data', data };
  }
  const shown = JSON.stringify(uri.slice(0, 80));
  throw new Failure('not_found', `There is no resource ${shown}. resources/list has all.`);
}
