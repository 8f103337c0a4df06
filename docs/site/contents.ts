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
  { title: 'Start', folder: 'start', pages: pagesOf('start', ['install', 'first-site']) },
  { title: 'How to', folder: 'how-to', pages: pagesOf('how-to', []) },
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

/** The Markdown files of a folder: first the named ones, then the others by name. */
function pagesOf(folder: string, first: readonly string[]): readonly string[] {
  const names = readdirSync(`${docsFolder}${folder}`)
    .filter((name) => name.endsWith('.md'))
    .map((name) => name.slice(0, -'.md'.length))
    .sort();
  return [...first, ...names.filter((name) => !first.includes(name))];
}
