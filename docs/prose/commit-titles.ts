import { spawnSync } from 'node:child_process';

/** More characters than this are cut off in `git log --oneline` and in many web views. */
const titleCharactersMax = 72;

/** The verbs with which titles begin. A new one is welcome, in the imperative. */
const verbs = new Set(
  `accept add adopt allow answer apply ask assert await batch begin bound bring build bundle cache
  call cap carry change check choose clean clear close coalesce collect commit compare compress
  compute connect contain continue convert copy correct count cover cut decide decode declare decline
  deliver derive describe detect disable divide document draw drop emit enable encode encrypt end enforce
  escape evict expect expire explain export expose extend extract fetch find finish fix flush fold follow
  forbid forget format fuzz give group guard handle hand hide hold honour identify ignore import
  include index inherit insert inline invalidate join keep know key kill lead leave let limit link list
  load lock log look lower make map mark mask match measure mend merge migrate mirror model mount move name narrow
  note offer open order parse pass pause permit pick place poll prefer prepare preserve print prove
  publish purge put queue raise rank rate read rebuild record redirect reduce refuse register
  reject release reload remember remove rename render renew repeat replace reply report require
  reset resolve respect restart restore resume retry return reuse revert revoke rewrite rotate run
  say schedule search select send separate serve set share shorten show sign simplify skip sort
  speak split spread start state stop store stream strip sum support suspend swap take tell test
  throttle time track translate trim trust try turn type undo unify update upgrade use validate
  verify wait walk warn watch widen wrap write`.split(/\s+/),
);

/** Returns what is wrong with the title of a commit, or undefined. */
export function titleProblem(title: string): string | undefined {
  if (title.length > titleCharactersMax) {
    return `has ${title.length} characters; ${titleCharactersMax} are allowed`;
  }
  const said = /^[\w@./{},*-]+(?:, [\w@./{},*-]+)*: (\S+)/.exec(title)?.[1];
  if (said === undefined) return 'does not begin with a folder and a colon, as `cache: …`';
  if (verbs.has(said)) return undefined;
  return `begins with "${said}", which is not a verb in the imperative that commit-titles.ts has`;
}

/**
 * Returns a line for each commit since the last release whose title breaks a rule; none outside of
 * a Git repository. A commit with the title `release: VERSION` is a release; merges are left out.
 */
export function commitTitleProblems(): readonly string[] {
  const log = (...words: string[]): string => {
    const git = spawnSync('git', ['log', '--no-merges', ...words], { encoding: 'utf8' });
    return git.status === 0 ? git.stdout : '';
  };
  const release = log('-1', '--format=%H', '--grep=^release: ').trim();
  if (release === '') return [];
  const commits = log('--format=%h %s', `${release}..HEAD`).split('\n');
  return commits.flatMap((line) => {
    const [, id, title] = /^(\w+) (.*)$/.exec(line) ?? [];
    const problem = title === undefined ? undefined : titleProblem(title);
    return problem === undefined ? [] : [`commit ${id}: "${title}" ${problem}`];
  });
}
