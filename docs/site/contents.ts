import { readdirSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

/** A section of the documentation: its title, its folder, and its pages in order. */
export interface Section {
  readonly title: string;
  /** The folder below docs/; empty for pages in docs/ itself. */
  readonly folder: string;
  /** File names without `.md`; `README` becomes `index`. */
  readonly pages: readonly string[];
  /** Whether scripts write the pages (docs/reference); the others are files. */
  readonly isGenerated?: true;
}

/** The folder docs/ of the project. */
export const docsFolder = fileURLToPath(new URL('..', import.meta.url));

/** Pages of docs/reference that scripts write, in the order of the navigation. */
export const referencePages = [
  'page-rules',
  'enginedata',
  'conditions',
  'hooks',
  'events',
  'operations',
  'ini-file',
  'sample-ini',
  'commands',
  'errors',
  'metrics',
  'schemas',
] as const;

/** The sections in the order of the navigation. */
export const sections: readonly Section[] = [
  { title: 'Start', folder: 'start', pages: ['install', 'first-site', 'tour', 'running-a-site'] },
  ...howToSections(),
  {
    title: 'Reference',
    folder: 'reference',
    pages: [...referencePages, ...pagesOf('reference', [])],
    isGenerated: true,
  },
  { title: 'Explanation', folder: 'explanation', pages: pagesOf('explanation', []) },
  { title: 'Glossary', folder: '', pages: ['glossary'] },
  { title: 'Design', folder: 'design', pages: pagesOf('design', ['README']) },
];

/** How-tos by what people want, in the order of the navigation. */
function howToSections(): readonly Section[] {
  const groups: Readonly<Record<string, string>> = {
    'Serve files': 'files single-page-app compression headers access rates many-sites',
    'Put it before an application': 'start/in-front-of-an-app start/behind-nginx fetched-content',
    'Redirect and move':
      'redirects moving-from-nginx moving-from-caddy moving-from-apache moving-from-netlify',
    'Pages and links': 'console drafts schedules assets breadcrumbs generic-pages undo mcp',
    'Data and hooks':
      'records webhooks form-to-receiver rows-on-another-server postgresql typescript-client ' +
      'write-a-module',
    'Run it':
      'tls keys-and-scopes sign-in command-line logs visits monitoring troubleshoot backup upgrade ' +
      'purge-secrets several-machines cluster',
  };
  const sections = Object.entries(groups).map(([title, names]) => {
    const pages = names.split(' ').map((name) => (name.includes('/') ? name : `how-to/${name}`));
    return { title, folder: '', pages };
  });
  const grouped = new Set(sections.flatMap(({ pages }) => pages));
  const other = pagesOf('how-to', []).filter((name) => !grouped.has(`how-to/${name}`));
  if (other.length === 0) return sections;
  throw new Error(`docs/site/contents.ts has no group for how-to/${other.join(', how-to/')}.`);
}

/** The Markdown files of a folder: first the named ones, then the others by name. */
function pagesOf(folder: string, first: readonly string[]): readonly string[] {
  const names = readdirSync(`${docsFolder}${folder}`)
    .filter((name) => name.endsWith('.md'))
    .map((name) => name.slice(0, -'.md'.length))
    .sort();
  return [...first, ...names.filter((name) => !first.includes(name))];
}
