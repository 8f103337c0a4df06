import { spawnSync } from 'node:child_process';
import { globSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { commitTitleProblems } from './commit-titles.ts';
import { fileProblems } from './prose.ts';

/**
 * `npm run lint` checks the spelling (cspell, with docs/prose/words.txt), the words (terms.ts) and
 * the length of sentences in documentation, messages and comments, except those of tests, and the
 * titles of the commits since the last release.
 */
const project = fileURLToPath(new URL('../..', import.meta.url));
process.chdir(project);

const files = globSync([
  '*.md',
  'docs/**/*.md',
  'src/**/*.{md,ts}',
  'console/src/**/*.{ts,tsx}',
  'docs/reference/*.ts',
  'bench/*.md',
  'bench/**/*.ts',
  'packaging/*.ts',
]).sort();

const problems = [
  ...files.flatMap((path) =>
    fileProblems(path).map(({ line, message }) => `${path}:${line} ${message}`),
  ),
  ...commitTitleProblems(),
];
const spelling = spawnSync(
  process.execPath,
  [
    fileURLToPath(import.meta.resolve('cspell/bin.mjs')),
    '--no-progress',
    '--no-summary',
    '--cache',
    '--cache-strategy=content',
    '--cache-location=node_modules/.cache/cspell',
    ...files,
  ],
  { encoding: 'utf8' },
);
process.stdout.write(`${problems.join('\n')}${problems.length > 0 ? '\n' : ''}${spelling.stdout}`);
process.stderr.write(spelling.stderr);
if (spelling.status !== 0 && spelling.stdout !== '') {
  process.stdout.write('A word that is right belongs in docs/prose/words.txt.\n');
}
process.exitCode = problems.length > 0 || spelling.status !== 0 ? 1 : 0;
