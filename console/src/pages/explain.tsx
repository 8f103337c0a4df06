import { useState } from 'preact/hooks';
import { call, fetchPage, service, type JsonObject } from '../api/api.ts';
import { useLoad } from '../components/loading.ts';
import { SitePreview } from '../components/preview.tsx';
import {
  previewInput,
  VisitorFields,
  visitorOf,
  type VisitorField,
} from '../components/visitor-fields.tsx';
import { goTo, linkTo, type Route } from '../route.ts';
import { texts } from '../texts.ts';
import { Busy, Fault, Field, ScreenHead } from '../components/ui.tsx';
import { useUrlValue } from '../components/url-field.tsx';

const t = texts.explain;

interface Candidate {
  readonly mount?: string;
  readonly id?: string;
  readonly kind?: string;
  readonly origin: string;
  readonly path: string;
  readonly lost?: { readonly code: string; readonly says: string };
  readonly branches?: readonly {
    readonly branch: string;
    readonly lost?: { readonly says: string };
  }[];
}

type SourceName = keyof typeof t.sources;

interface Explanation {
  readonly says: string;
  readonly status: number | null;
  readonly request: { readonly origin?: string; readonly path?: string; readonly query?: string };
  readonly winner: { readonly source: SourceName; readonly id?: string } | null;
  readonly tried: readonly {
    readonly source: SourceName;
    readonly key?: string;
    readonly candidates: readonly Candidate[];
    readonly omitted?: number;
  }[];
  readonly notes: readonly string[];
}

/** The properties of the visitor that the form offers. */
const offered: readonly VisitorField[] = ['device', 'lang', 'country', 'user', 'role', 'at'];

/** Which source answers an address for a visitor, and why the others do not. */
export function Explain({ route: { params } }: { route: Route }) {
  const input = Object.fromEntries(params);
  const key = params.toString();
  const explained = useLoad(
    async (signal) => {
      if (key === '') return undefined;
      const v = full(input);
      return { key, found: await call<Explanation>('userinterface.explain', v, { signal }) };
    },
    [key],
  );
  // The explanation of the former question, with the new visitor, would request another page.
  const explanation = explained.data?.key === key ? explained.data.found : undefined;
  const isAsked = key !== '';
  return (
    <>
      <ScreenHead
        title={t.title}
        lead={t.lead}
        shown={isAsked ? ['userinterface.explain', full(input)] : undefined}
      />
      <Question input={input} />
      {isAsked ? null : <p class="note">{t.empty}</p>}
      <Fault error={explained.error} onRetry={explained.reload} />
      {isAsked && explanation === undefined && explained.error === undefined ? <Busy /> : null}
      {explanation === undefined ? null : <Answer explanation={explanation} input={input} />}
    </>
  );
}

/** A path of this site as a whole URL, as explain takes it. */
function full(input: Readonly<Record<string, string>>): Record<string, string> {
  const { url = '/', ...visitor } = input;
  return { ...visitor, url: URL.parse(url, service.origin)?.href ?? url };
}

function Question({ input }: { input: Readonly<Record<string, string>> }) {
  const field = useUrlValue(input, (one) => linkTo('/explain', one));
  const { value: draft, setValue: setDraft } = field;
  const set = (name: string, value: string): void => {
    setDraft((before) => ({ ...before, [name]: value }));
  };
  const isVisitorGiven = Object.keys(input).some((name) => name !== 'url');
  return (
    <form
      class="question"
      onSubmit={(event) => {
        event.preventDefault();
        field.sent(draft);
        goTo('/explain', draft);
      }}
    >
      <div class="search">
        <input
          type="search"
          aria-label={t.url}
          placeholder={t.url}
          spellcheck={false}
          required
          value={draft.url ?? ''}
          onInput={({ currentTarget }) => {
            set('url', currentTarget.value);
          }}
        />
        <button type="submit" class="main-button">
          {t.submit}
        </button>
      </div>
      <details open={isVisitorGiven}>
        <summary>{t.visitor}</summary>
        <div class="fields">
          <VisitorFields
            names={offered}
            visitor={visitorOf(draft)}
            onInput={(visitor) => {
              setDraft((before) => ({ ...before, ...visitor }));
            }}
          />
          <Field label={t.asOf}>
            <input
              type="text"
              spellcheck={false}
              value={draft.as_of ?? ''}
              onInput={({ currentTarget }) => {
                set('as_of', currentTarget.value);
              }}
            />
          </Field>
        </div>
      </details>
    </form>
  );
}

function Answer({
  explanation: { says, winner, tried, notes, request },
  input,
}: {
  explanation: Explanation;
  input: Readonly<Record<string, string>>;
}) {
  return (
    <>
      <p class={winner === null ? 'verdict none' : 'verdict'} role="status">
        {withPath(says, winner?.id, tried)}
      </p>
      <h2>{t.precedence}</h2>
      <ol class="precedence">
        {tried.map(({ source, key, candidates, omitted }) => (
          <li
            key={`${source} ${key ?? ''}`}
            class={winner?.source === source ? 'winner' : candidates.length === 0 ? 'skipped' : ''}
          >
            <h3>
              {t.sources[source]} {key === undefined ? null : <code>{key}</code>}
            </h3>
            {candidates.length === 0 ? <p class="note">{t.passes}</p> : null}
            <ul>
              {candidates.map((one) => (
                <CandidateView key={one.id ?? one.mount} candidate={one} />
              ))}
            </ul>
            {omitted === undefined ? null : <p class="note">+ {omitted}</p>}
          </li>
        ))}
      </ol>
      {notes.length === 0 ? null : (
        <>
          <h2>{t.notes}</h2>
          <ul class="notes">
            {notes.map((note) => (
              <li key={note}>{note}</li>
            ))}
          </ul>
        </>
      )}
      {request.path === undefined ? null : <Response request={request} input={input} />}
    </>
  );
}

/** The sentence of the server with the path of a page rule in place of its id. */
function withPath(says: string, id: string | undefined, tried: Explanation['tried']): string {
  const rule = tried.flatMap(({ candidates }) => candidates).find((one) => one.id === id);
  return id === undefined || rule === undefined ? says : says.replace(id, rule.path);
}

function CandidateView({ candidate }: { candidate: Candidate }) {
  const { id, mount, kind, path, lost, branches = [] } = candidate;
  return (
    <li class={lost === undefined ? 'candidate won' : 'candidate'}>
      <p>
        {id === undefined ? <b>[disk.{mount}]</b> : <a href={`#/pages/${id}`}>{path}</a>}
        {kind === undefined ? null : <span class="tag">{kind}</span>}
        {lost === undefined ? <span class="tag good">{t.wins}</span> : null}
      </p>
      {lost === undefined ? null : <p class="note">{lost.says}</p>}
      {branches.map(({ branch, lost: missed }) => (
        <p key={branch} class="note">
          <code>{branch}</code> {missed === undefined ? t.wins : missed.says}
        </p>
      ))}
    </li>
  );
}

interface Fetched {
  readonly status: number;
  readonly fields: readonly (readonly [string, string])[];
  readonly body: string;
  readonly isHtml: boolean;
  /** The place and the visitor of the request. */
  readonly asked: JsonObject;
}

/** Requests the page as get_content answers it: its status, header fields and body. */
async function fetchContent(asked: JsonObject): Promise<Fetched> {
  const response = await fetchPage({ ...asked, headers: { accept: 'text/html,*/*' } });
  if (response.type === 'opaqueredirect') throw new Error(t.redirect);
  const isHtml = response.headers.get('content-type')?.includes('html') === true;
  const body = (await response.text()).slice(0, 200_000);
  return { status: response.status, fields: [...response.headers], body, isHtml, asked };
}

function Response({
  request: { origin = '', path = '', query = '' },
  input,
}: {
  request: Explanation['request'];
  input: Readonly<Record<string, string>>;
}) {
  const [fetched, setFetched] = useState<Fetched>();
  const [error, setError] = useState<unknown>();
  const load = (): void => {
    setError(undefined);
    fetchContent({
      ...{ origin, path, ...(query !== '' && { query }) },
      ...previewInput(visitorOf(input), input.as_of),
    }).then(setFetched, setError);
  };
  return (
    <section>
      <h2>{t.response}</h2>
      <Fault error={error} />
      {fetched === undefined ? (
        <button type="button" onClick={load}>
          {t.show}
        </button>
      ) : (
        <>
          <p class="verdict">
            {t.status} <b>{fetched.status}</b>
          </p>
          <h3>{t.headers}</h3>
          <dl class="facts">
            {fetched.fields.map(([name, value]) => (
              <div key={name}>
                <dt>{name}</dt>
                <dd>
                  <code>{value}</code>
                </dd>
              </div>
            ))}
          </dl>
          {fetched.isHtml ? (
            <>
              <h3>{t.page}</h3>
              <SitePreview
                title={t.page}
                html={fetched.body}
                base={origin + path}
                input={fetched.asked}
              />
            </>
          ) : null}
          <h3>{t.body}</h3>
          <pre class="body" tabIndex={0}>
            {fetched.body}
          </pre>
        </>
      )}
    </section>
  );
}
