import { useEffect, useRef, useState } from 'preact/hooks';
import { comparedChunks, comparedLists } from '../../../src/modules/compare/comparison.ts';
import { type Json, call } from '../api/api.ts';
import { useAction } from '../components/loading.ts';
import { Busy, CopyCurl, Fault, Field } from '../components/ui.tsx';
import { texts } from '../texts.ts';

const t = texts.drafts;

interface Answer {
  readonly status: number;
  readonly source: string;
  readonly target?: string;
  readonly line?: string;
  readonly failure?: string;
}

interface Branch {
  readonly conditions: readonly Json[];
  readonly status?: number;
  readonly target?: string;
  readonly failure?: string;
}

interface Row {
  readonly url?: string;
  readonly key?: string;
  readonly differs: readonly string[];
  readonly headers?: readonly string[];
  readonly diff?: string;
  readonly branches?: readonly {
    readonly branch: string;
    readonly live?: Branch;
    readonly draft?: Branch;
  }[];
  readonly live: Answer;
  readonly draft: Answer;
}

interface Comparison {
  readonly compared: number;
  readonly differing: number;
  readonly rows: readonly Row[];
  readonly total: number;
  readonly next: string | null;
}

type List = (typeof comparedLists)[number] | 'given';

/** Rows that the screen shows; a browser takes seconds for thousands of differences. */
const shownRowsMax = 500;

const nothing: Comparison = { compared: 0, differing: 0, rows: [], total: 0, next: null };

/** Compares page by page; `found` is what all pages so far have. */
function useComparison(id: string, list: List, urls: string) {
  const [found, setFound] = useState<Comparison>();
  const action = useAction(() => undefined);
  const compare = async (): Promise<string> => {
    let sum = nothing;
    setFound(undefined);
    const chunks = list === 'given' ? comparedChunks(urls) : [undefined];
    for (const chunk of chunks) {
      const v = { draft: id, ...(chunk === undefined ? { list } : { urls: chunk }) };
      let after: string | null = '';
      while (after !== null) {
        const place: { after?: string } = after === '' ? {} : { after };
        const page: Comparison = await call<Comparison>('draft.compare', { ...v, ...place });
        sum = {
          ...page,
          compared: sum.compared + page.compared,
          differing: sum.differing + page.differing,
          rows: [...sum.rows, ...page.rows].slice(0, shownRowsMax),
          total: chunk === undefined ? page.total : sum.total + page.total,
        };
        setFound(sum);
        after = page.next;
      }
    }
    if (chunks.length === 0) setFound(nothing);
    return '';
  };
  return { found, compare, ...action };
}

/** The URLs and breadcrumbs that answer otherwise in the draft; `isAsked` compares at once. */
export function Compare({ id, isAsked }: { id: string; isAsked: boolean }) {
  const [urls, setUrls] = useState('');
  const [list, setList] = useState<List>('changes');
  const { found, compare, error, isRunning, run } = useComparison(id, list, urls);
  const shown = { draft: id, ...(list === 'given' ? { urls } : { list }) };
  const section = useRef<HTMLElement>(null);
  useEffect(() => {
    if (isAsked) void run(compare);
  }, [isAsked]);
  // Before that, the list of changes above it grows.
  const isThere = isAsked && found !== undefined && !isRunning;
  useEffect(() => {
    if (isThere) section.current?.scrollIntoView();
  }, [isThere]);
  return (
    <section ref={section} class="compare">
      <div class="panel-head">
        <h2>{t.compareTitle}</h2>
        <CopyCurl shown={['draft.compare', shown]} />
      </div>
      <p class="note">{t.compareLead}</p>
      <div class="draft-form">
        <Field label={t.compareList}>
          <select
            value={list}
            onChange={({ currentTarget }) => {
              setList(currentTarget.value as List);
            }}
          >
            {([...comparedLists, 'given'] as const).map((one) => (
              <option key={one} value={one}>
                {t.compareLists[one]}
              </option>
            ))}
          </select>
        </Field>
        {list === 'given' ? (
          <Field label={t.compareUrls}>
            <textarea
              rows={4}
              class="mono"
              spellcheck={false}
              placeholder="/"
              value={urls}
              onInput={({ currentTarget }) => {
                setUrls(currentTarget.value);
              }}
            />
          </Field>
        ) : null}
        <p>
          <button type="button" disabled={isRunning} onClick={() => void run(compare)}>
            {t.compare}
          </button>
        </p>
      </div>
      <Fault error={error} />
      {isRunning ? <Busy text={t.comparing(found?.compared ?? 0, found?.total)} /> : null}
      {found === undefined ? null : <Found found={found} isRunning={isRunning} />}
    </section>
  );
}

function Found({ found, isRunning }: { found: Comparison; isRunning: boolean }) {
  const { compared, differing, rows } = found;
  return (
    <>
      <p role="status">{isRunning ? '' : t.compared(compared, differing)}</p>
      <ol class="draft-changes">
        {rows.map((row, at) => (
          <li key={`${at} ${row.url ?? row.key ?? ''}`}>
            <Difference row={row} />
          </li>
        ))}
      </ol>
      {differing > rows.length ? <p class="note">{t.unlisted(differing - rows.length)}</p> : null}
    </>
  );
}

function Difference({ row }: { row: Row }) {
  const { url, key, differs, headers, diff, branches = [], live, draft } = row;
  return (
    <>
      <p>
        <b>{url ?? key}</b>{' '}
        {differs.map((what) => (
          <span key={what} class="tag">
            {what}
          </span>
        ))}{' '}
        <span class="quiet">{headers?.join(', ')}</span>
      </p>
      <Answers live={answerLines(live, diff)} draft={answerLines(draft, diff)} />
      {diff === undefined ? null : (
        <pre class="side" role="group" aria-label={t.compareLines} tabIndex={0}>
          {shownLines(diff).map((line, at) => (
            <span key={at} class={lineClass(line)}>
              {line}
              {'\n'}
            </span>
          ))}
        </pre>
      )}
      {branches.map((one) => (
        <div key={one.branch}>
          <p class="note">{one.branch}</p>
          <div class="diff-sides">
            <Side name={t.now} lines={branchLines(one.live)} />
            <Side name={t.drafted} lines={branchLines(one.draft)} />
          </div>
        </div>
      ))}
    </>
  );
}

type Line = string | undefined;

/** The lines of a diff, without those that are about line ends and not about the text. */
function shownLines(diff: string): readonly string[] {
  return diff
    .trimEnd()
    .split('\n')
    .filter((line) => !line.startsWith('\\ No newline'));
}

function lineClass(line: string): string | undefined {
  if (line.startsWith('+')) return 'added';
  return line.startsWith('-') ? 'removed' : undefined;
}

/** Both answers; nothing if only the lines of the content differ. */
function Answers({ live, draft }: { live: readonly Line[]; draft: readonly Line[] }) {
  if (live.join('\n') === draft.join('\n')) return null;
  return (
    <div class="diff-sides">
      <Side name={t.now} lines={live} />
      <Side name={t.drafted} lines={draft} />
    </div>
  );
}

function answerLines(
  { status, source, target, line, failure }: Answer,
  diff: string | undefined,
): readonly Line[] {
  const first = diff === undefined ? line : undefined;
  return [`${status} ${source}`, target && `→ ${target}`, first, failure];
}

function branchLines(branch: Branch | undefined): readonly Line[] {
  if (branch === undefined) return [t.nothing];
  const { conditions, status, target, failure } = branch;
  const written = conditions.filter((one) => one !== null).map((one) => JSON.stringify(one));
  return [...written, status?.toString(), target && `→ ${target}`, failure];
}

function Side({ name, lines }: { name: string; lines: readonly Line[] }) {
  return (
    <div>
      <span class="quiet">{name}</span>
      <pre class="side" role="group" aria-label={name} tabIndex={0}>
        {lines.filter((one) => one !== undefined && one !== '').join('\n')}
      </pre>
    </div>
  );
}
