import type { EngineConfig } from '../../core/config/config.ts';
import {
  type PublicFile,
  escapeHtml,
  plainPage,
  publicFile,
} from '../../core/http/content/page.ts';
import { prefersHtml } from '../../core/http/representation/negotiation.ts';
import { builtInEngines } from '../rules/rule.ts';
import type { PublicFiles } from './public-files.ts';

/** The index pages below `{base}/svc1`, for people and for programs (docs/design/requests.md). */
export interface IndexPages {
  /**
   * Returns the index at a path below `{base}/svc1`, in the accepted form; undefined without one.
   */
  file(path: string, accept: string | undefined): PublicFile | undefined;
}

/** An entry of an index; one without `href` has no page of its own. */
interface IndexEntry {
  readonly href?: string | undefined;
  readonly title: string;
  /** The name of an engine. */
  readonly name?: string;
  /** The media type, if it is not HTML. */
  readonly type?: string;
}

/** An index in both of its forms. */
interface IndexPage {
  readonly html: PublicFile;
  readonly json: PublicFile;
}

/** Makes the indexes of a configuration. */
export function createIndexPages({
  base,
  engines,
  publicFiles,
  hasDocs,
  console,
}: {
  readonly base: string;
  readonly engines: readonly EngineConfig[];
  readonly publicFiles: Pick<PublicFiles, 'file'>;
  /** Whether the documentation is built. */
  readonly hasDocs: boolean;
  /** The address of the console; undefined without one. */
  readonly console: string | undefined;
}): IndexPages {
  const below = (path: string): string => `${base}/svc1${path}`;
  const service = indexPage('Waymark', 'What this server has to offer besides its site.', 'links', [
    ...(console === undefined ? [] : [{ href: console, title: 'Console' }]),
    ...(hasDocs ? [{ href: below('/docs/'), title: 'Documentation' }] : []),
    ...optionalPages
      .filter(({ path }) => publicFiles.file(path) !== undefined)
      .map(({ path, title }) => ({ href: below(path), title })),
    { href: below('/engines'), title: 'Engines of generic pages' },
    { href: below('/openapi.json'), title: 'Operations over HTTP: OpenAPI', type: json },
    { href: below('/asyncapi.json'), title: 'Operations over websocket: AsyncAPI', type: json },
    { href: below('/health'), title: 'Health: whether this server answers', type: json },
    { href: below('/metrics'), title: 'Metrics for Prometheus', type: 'text/plain' },
  ]);
  const references = [
    ...builtInEngines.map((name) => ({ name, reference: below(`/engines/${name}`) })),
    ...engines.map(({ name, reference }) => ({ name, reference })),
  ];
  const enginePage = indexPage(
    'Engines',
    'What shows the generic pages of this server, each with its documentation.',
    'engines',
    references.map(({ name, reference }) => ({ name, title: name, href: reference })),
  );
  const pages: ReadonlyMap<string, IndexPage> = new Map([
    ['', service],
    ['/', service],
    ['/engines', enginePage],
    ['/engines/', enginePage],
  ]);
  return {
    file(path, accept) {
      const page = pages.get(path);
      return prefersHtml(accept) ? page?.html : page?.json;
    },
  };
}

const json = 'application/json';

/** Pages that exist in some installations only. */
const optionalPages = [
  { path: '/webhooks', title: 'Webhooks: what a server that receives them has to know' },
];

function indexPage(
  title: string,
  sentence: string,
  member: string,
  entries: readonly IndexEntry[],
): IndexPage {
  const items = entries.map(({ href, title: text }) => {
    const shown = escapeHtml(text);
    return `<li>${href === undefined ? shown : `<a href="${escapeHtml(href)}">${shown}</a>`}</li>`;
  });
  const page = plainPage(title, sentence, `\n<ul>\n${items.join('\n')}\n</ul>`);
  return {
    html: publicFile('text/html; charset=utf-8', Buffer.from(page)),
    json: publicFile(json, Buffer.from(JSON.stringify({ [member]: entries }))),
  };
}
