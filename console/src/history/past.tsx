import { useEffect, useMemo } from 'preact/hooks';
import { call } from '../api/api.ts';
import { useLoad, usePages } from '../components/loading.ts';
import { Rendered } from '../components/rendered.tsx';
import { useUrlValue } from '../components/url-field.tsx';
import { goTo, linkTo, type Route } from '../route.ts';
import { texts } from '../texts.ts';
import { Busy, Fault, ScreenHead, When } from '../components/ui.tsx';
import type { ChangeRow } from './changes.tsx';
import '../components/panes.css';

const t = texts.past;

interface PastRule {
  readonly id: string;
  readonly origin: string;
  readonly path: string;
  readonly kind: string;
}

interface Moment {
  readonly at: number;
  /** The folder that the tree shows. */
  readonly folder: string;
  /** The page that is shown, and its origin. */
  readonly page: string | undefined;
  readonly origin: string;
}

/** The site at a moment of its past: a slider over all changes, the paths then, and a page then. */
export function Past({ route: { params } }: { route: Route }) {
  const status = useLoad((signal) => call<{ seq: number }>('server.status', {}, { signal }), []);
  const newest = status.data?.seq;
  if (newest === undefined) {
    return (
      <>
        <ScreenHead title={t.title} />
        <Fault error={status.error} onRetry={status.reload} />
        {status.error === undefined ? <Busy /> : null}
      </>
    );
  }
  const given = Number(params.get('at') ?? newest);
  const at = Number.isInteger(given) ? Math.min(newest, Math.max(1, given)) : newest;
  const moment: Moment = {
    at,
    folder: params.get('folder') ?? '/',
    page: params.get('page') ?? undefined,
    origin: params.get('origin') ?? '*',
  };
  return (
    <>
      <ScreenHead
        title={t.title}
        lead={t.lead}
        back={{ href: '#/history', name: texts.nav.history }}
        shown={['userinterface.list', { as_of: String(at), path: moment.folder }]}
      />
      <Slider moment={moment} newest={newest} />
      <div class="panes">
        <PathsThen key={`${at} ${moment.folder}`} moment={moment} />
        {moment.page === undefined ? (
          <p class="note">{t.choose}</p>
        ) : (
          <PageThen moment={moment} page={moment.page} isNow={at === newest} />
        )}
      </div>
    </>
  );
}

function toMoment(moment: Moment, changed: Partial<Moment>, replace = false): void {
  goTo('/history/past', { ...moment, ...changed }, replace);
}

/** The slider; the screen follows when it stands still, so that dragging requests nothing. */
function Slider({ moment, newest }: { moment: Moment; newest: number }) {
  const { value, setValue, sent } = useUrlValue(moment.at);
  useEffect(() => {
    if (value === moment.at) return undefined;
    const timer = setTimeout(() => {
      sent(value);
      toMoment(moment, { at: value }, true);
    }, 250);
    return () => {
      clearTimeout(timer);
    };
    // A link may have changed the folder or the page while the slider moves.
  }, [value, linkTo('', { ...moment })]);
  const step = (by: number) => () => {
    setValue((before) => Math.min(newest, Math.max(1, before + by)));
  };
  return (
    <div class="past-slider">
      <button type="button" aria-label={t.earlier} disabled={value <= 1} onClick={step(-1)}>
        ‹
      </button>
      <input
        type="range"
        aria-label={t.slider}
        aria-valuetext={t.change(value)}
        min={1}
        max={newest}
        value={value}
        onInput={({ currentTarget }) => {
          setValue(Number(currentTarget.value));
        }}
      />
      <button type="button" aria-label={t.later} disabled={value >= newest} onClick={step(1)}>
        ›
      </button>
      <ChangeAt seq={moment.at} isNow={moment.at === newest} />
    </div>
  );
}

/** The newest change of a moment. */
function ChangeAt({ seq, isNow }: { seq: number; isNow: boolean }) {
  const { data } = useLoad(
    (signal) =>
      call<{ rows: readonly ChangeRow[] }>(
        'change.list',
        { until: String(seq), limit: 1 },
        { signal },
      ),
    [seq],
  );
  const [row] = data?.rows ?? [];
  return (
    <p class="note" role="status">
      {t.change(seq)}
      {isNow ? ` (${texts.history.now})` : ''}
      {row === undefined ? null : (
        <>
          {' · '}
          <When time={row.dtu_stored} /> · {row.title ?? row.id} {texts.history.actions[row.action]}{' '}
          {t.by} <a href={linkTo('/history', { txn: row.txn })}>{row.by_name ?? row.by}</a>
        </>
      )}
    </p>
  );
}

/** The paths of a folder at a moment: its pages, and the folders below it. */
function PathsThen({ moment }: { moment: Moment }) {
  const { at, folder } = moment;
  const { rows, isEnd, isLoading, error, more } = usePages<PastRule, string>((after) =>
    call('userinterface.list', {
      ...{ as_of: String(at), path: folder, limit: 500 },
      ...(after !== undefined && { after }),
    }),
  );
  const { folders, pages } = useMemo(() => entriesOf(rows, folder), [rows.length, folder]);
  const parent = folder.slice(0, folder.lastIndexOf('/', folder.length - 2) + 1);
  return (
    <section aria-label={t.paths}>
      <h2>{folder}</h2>
      <Fault error={error} />
      <ul class="attempts">
        {folder === '/' ? null : (
          <li>
            <a class="attempt" href={linkTo('/history/past', { ...moment, folder: parent })}>
              ‹ {parent}
            </a>
          </li>
        )}
        {folders.map(([name, count]) => (
          <li key={name}>
            <a class="attempt" href={linkTo('/history/past', { ...moment, folder: folder + name })}>
              <b class="row-main" dir="auto">
                {name}
              </b>{' '}
              <span class="tag">{count.toLocaleString()}</span>
            </a>
          </li>
        ))}
        {pages.map(({ id, path, origin, kind }) => (
          <li key={id}>
            <a
              class="attempt"
              aria-current={path === moment.page && origin === moment.origin ? 'true' : undefined}
              href={linkTo('/history/past', { ...moment, page: path, origin })}
            >
              <span class="row-main" dir="auto">
                {path.slice(folder.length) || texts.pages.folder}
              </span>{' '}
              <span class="tag">{kind}</span>
            </a>
          </li>
        ))}
      </ul>
      {isEnd && rows.length === 0 ? <p class="note">{t.none}</p> : null}
      {isLoading ? <Busy /> : null}
      {isEnd || isLoading ? null : (
        <button type="button" onClick={more}>
          {texts.states.more}
        </button>
      )}
    </section>
  );
}

function entriesOf(rows: readonly PastRule[], folder: string) {
  const folders = new Map<string, number>();
  const pages: PastRule[] = [];
  for (const row of rows) {
    const rest = row.path.slice(folder.length);
    const slash = rest.indexOf('/');
    if (slash === -1) pages.push(row);
    else {
      const name = rest.slice(0, slash + 1);
      folders.set(name, (folders.get(name) ?? 0) + 1);
    }
  }
  const sorted = [...folders].toSorted(([one], [other]) => (one < other ? -1 : 1));
  return { folders: sorted, pages: pages.toSorted((a, b) => (a.path < b.path ? -1 : 1)) };
}

function PageThen({ moment, page, isNow }: { moment: Moment; page: string; isNow: boolean }) {
  const { origin, at } = moment;
  return (
    <section aria-label={page}>
      <h2>{page}</h2>
      <div class="diff-sides">
        <Rendered title={t.then} place={{ origin, path: page, asOf: String(at) }} />
        {isNow ? null : (
          <Rendered title={texts.history.now} place={{ origin, path: page, isLive: true }} />
        )}
      </div>
    </section>
  );
}
