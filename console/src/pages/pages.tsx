import { useEffect, useState } from 'preact/hooks';
import { call, firstOrigin, type JsonObject, may, mayDesign } from '../api/api.ts';
import { useLive } from '../api/live.ts';
import { ReadOnly } from '../frame/read-only.tsx';
import { goTo, leftRow, linkTo, type Route } from '../route.ts';
import { texts } from '../texts.ts';
import { useLoad, usePages } from '../components/loading.ts';
import { ListFrame, ListSearch } from '../components/list.tsx';
import { ScreenHead, When, type Shown } from '../components/ui.tsx';
import { VirtualList } from '../components/virtual-list.tsx';
import './pages.css';

const t = texts.pages;

/** The kinds of page rule. */
export const kinds = [
  'content',
  'content.fetch',
  'resolve',
  'insert-record',
  'edit-record',
  'delete-record',
] as const;

const kindChoices = [['', t.anyKind], ...kinds.map((one) => [one, one] as const)] as const;

interface TreeNode {
  readonly name: string;
  readonly path: string;
  readonly folder: boolean;
  readonly mount?: string;
  readonly answers?: 'file' | 'rule' | 'fetched';
  readonly rules: readonly {
    readonly id: string;
    readonly kind: string;
    readonly source?: string;
    readonly shadowed?: string;
  }[];
}

interface TreePage {
  readonly origins?: readonly string[];
  readonly rows: readonly TreeNode[];
  readonly next: string | null;
  readonly hidden_mounts?: readonly string[];
  readonly truncated?: boolean;
}

/** The parameters of the list in the URL; without any, the screen shows the tree. */
interface ListQuery {
  readonly text?: string;
  readonly kind?: string;
  readonly sort?: string;
}

/** All page rules: as a tree of paths, or as a list that a search selects and a column sorts. */
export function Pages({ route: { params } }: { route: Route }) {
  const origin = params.get('origin') ?? firstOrigin();
  const path = params.get('path') ?? '/';
  const query: ListQuery = Object.fromEntries(
    ['text', 'kind', 'sort'].flatMap((name) => {
      const value = params.get(name) ?? '';
      return value === '' ? [] : [[name, value]];
    }),
  );
  const isList = Object.keys(query).length > 0;
  const shown: Shown = isList
    ? ['userinterface.list', { ...query }]
    : ['userinterface.tree', { origin, path }];
  return (
    <>
      <ScreenHead title={t.title} shown={shown}>
        <a
          class="quiet-button"
          href={isList ? linkTo('/pages') : linkTo('/pages', { sort: 'path' })}
        >
          {isList ? t.asTree : t.asList}
        </a>
        {may('draft') ? (
          <a class="quiet-button" href={linkTo('/pages/replace', { find: query.text })}>
            {t.replace}
          </a>
        ) : null}
        {mayDesign() ? (
          <a class="main-button" href={linkTo('/pages/new', { origin, path })}>
            {t.fresh}
          </a>
        ) : null}
      </ScreenHead>
      <ReadOnly />
      <ListSearch
        path="/pages"
        params={{ ...query }}
        label={t.search}
        choices={[{ name: 'kind', label: t.kind, options: kindChoices }]}
      />
      {isList ? (
        <Results key={`${query.text ?? ''} ${query.kind ?? ''}`} query={query} />
      ) : (
        <Tree key={`${origin} ${path}`} origin={origin} path={path} />
      )}
    </>
  );
}

function Tree({ origin, path }: { origin: string; path: string }) {
  const live = useLive(['changes', 'times']);
  const origins = useLoad(
    (signal) => call<TreePage>('userinterface.tree', {}, { signal }),
    [],
    live,
  );
  const known = origins.data?.origins ?? [];
  const all = known.includes(origin) ? known : [origin, ...known];
  return (
    <>
      <div class="tree-head">
        <label class="inline-field">
          {t.origins}
          <select
            value={origin}
            onChange={({ currentTarget }) => {
              goTo('/pages', { origin: currentTarget.value, path: '/' });
            }}
          >
            {all.map((one) => (
              <option key={one} value={one}>
                {one === '*' ? t.anyOrigin : one}
              </option>
            ))}
          </select>
        </label>
        <Trail origin={origin} path={path} />
      </div>
      <Nodes origin={origin} path={path} live={live} />
    </>
  );
}

/** The folders above a path, each as a link. */
function Trail({ origin, path }: { origin: string; path: string }) {
  const parts = path.split('/').slice(0, -1);
  const folders = parts.map((_, at) => `${parts.slice(0, at + 1).join('/')}/`);
  return (
    <nav class="trail" aria-label={t.tree}>
      <a href={linkTo('/pages', { origin, path: '' }).concat('&path=')}>{t.breadcrumbs}</a>
      {folders.map((folder, at) => (
        <a
          key={folder}
          href={linkTo('/pages', { origin, path: folder })}
          aria-current={at === folders.length - 1 ? 'true' : undefined}
        >
          {parts[at] === '' ? '/' : parts[at]}
        </a>
      ))}
    </nav>
  );
}

function Nodes({ origin, path, live }: { origin: string; path: string; live: number }) {
  const [files, setFiles] = useState<Pick<TreePage, 'hidden_mounts' | 'truncated'>>({});
  const pages = usePages<TreeNode, string>(
    async (after) => {
      const page = await call<TreePage>('userinterface.tree', {
        ...{ origin, path, limit: 250, shadows: true },
        ...(after !== undefined && { after }),
      });
      if (after === undefined) setFiles(page);
      return page;
    },
    live,
    leftRow(),
  );
  const { rows, isEnd, more } = pages;
  const { hidden_mounts: hidden = [], truncated: isTruncated = false } = files;
  const notes = [
    ...(hidden.length > 0 ? [t.hiddenMounts(hidden.map((one) => `[disk.${one}]`).join(', '))] : []),
    ...(isTruncated ? [t.truncated] : []),
  ].map((note) => (
    <p key={note} class="note">
      {note}
    </p>
  ));
  return (
    <>
      <ListFrame pages={pages} empty={t.empty} emptyHint={t.emptyHint}>
        <VirtualList
          label={t.tree}
          rows={rows}
          isEnd={isEnd}
          keepsPlace
          onEnd={more}
          row={(node) => <NodeRow origin={origin} node={node} />}
        />
      </ListFrame>
      {notes}
    </>
  );
}

function NodeRow({ origin, node }: { origin: string; node: TreeNode }) {
  const { name, path, mount, answers, rules } = node;
  if (node.folder) {
    return (
      <a class="row folder" href={linkTo('/pages', { origin, path })}>
        <span class="row-main" dir="auto">
          {name}
        </span>
      </a>
    );
  }
  const [first] = rules;
  const more = rules.length - 1;
  const shadowed = rules.find((rule) => rule.shadowed !== undefined)?.shadowed;
  const isRest = name === '*' && answers === 'fetched';
  return (
    <a
      class="row"
      href={
        first === undefined
          ? linkTo('/explain', { url: urlOf(origin, path) })
          : `#/pages/${first.id}`
      }
    >
      <span class="row-main" dir="auto">
        {isRest ? t.rest : name === '' ? t.folder : name}
      </span>
      {answers === 'fetched' && first?.source !== undefined ? (
        <span class="quiet tree-source">{t.fetchedFrom(first.source)}</span>
      ) : null}
      {shadowed === undefined ? null : (
        <span class="tag shadowed" title={shadowed}>
          {t.shadowed}
          <span class="unseen">: {shadowed}</span>
        </span>
      )}
      {mount === undefined ? null : (
        <span class="tag file" title={`[disk.${mount}]`}>
          {t.file}
        </span>
      )}
      {first === undefined ? null : <span class="tag">{first.kind}</span>}
      {more > 0 ? <span class="tag">+{more}</span> : null}
    </a>
  );
}

/** The URL of a path of the tree; without an origin, it is one of this site. */
function urlOf(origin: string, path: string): string {
  const encoded = path.split('/').map(encodeURIComponent).join('/');
  return `${origin === '*' ? '' : origin}${encoded}`;
}

interface ListPage {
  readonly rows: readonly (JsonObject & {
    id: string;
    path: string;
    origin: string;
    kind: string;
  })[];
  readonly next: string | null;
}

/** The list that a query selects; a change of the order keeps the heads and their focus. */
function Results({ query }: { query: ListQuery }) {
  return (
    <div class="rule-list">
      <ListHeads query={query} />
      <Found key={query.sort} query={query} />
    </div>
  );
}

function Found({ query }: { query: ListQuery }) {
  const pages = usePages<ListPage['rows'][number], string>(
    (after, limit) =>
      call<ListPage>('userinterface.list', {
        ...{ ...query, limit },
        ...(after !== undefined && { after }),
      }),
    useLive(['changes', 'times']),
    leftRow(),
  );
  const { rows, isEnd, isLoading, error, more } = pages;
  const isSearch = query.text !== undefined || query.kind !== undefined;
  // A page without rows is no end: the server has examined a part of the rules.
  useEffect(() => {
    if (!isEnd && !isLoading && error === undefined && rows.length < 50) more();
  });
  return (
    <>
      <ListFrame pages={pages} empty={isSearch ? t.noMatch : t.empty} busy={t.searching}>
        <VirtualList
          label={t.list}
          rows={rows}
          isEnd={isEnd}
          keepsPlace
          onEnd={more}
          row={({ id, path, origin, kind }) => (
            <a class="row rule-columns" href={`#/pages/${id}`}>
              <span class="row-main" dir="auto">
                {path}
              </span>
              <span class="quiet rule-wide">{origin === '*' ? '' : origin}</span>
              <span>
                <span class="tag">{kind}</span>
              </span>
              <span class="quiet rule-wide">
                <InsertTime id={id} />
              </span>
            </a>
          )}
        />
        {rows.length === 0 ? null : (
          <p class="note" role="status">
            {t.found(rows.length, isEnd)}
          </p>
        )}
      </ListFrame>
    </>
  );
}

/** The columns of the list; those that an index sorts are links. */
function ListHeads({ query }: { query: ListQuery }) {
  const { sort = 'inserted' } = query;
  const head = (
    name: string,
    { up, down, first }: { up: string; down: string; first: string },
  ): preact.JSX.Element => {
    const order = sort === up ? 'ascending' : sort === down ? 'descending' : 'none';
    const next = sort === first ? (first === up ? down : up) : first;
    return (
      <span role="columnheader" aria-sort={order}>
        <a href={linkTo('/pages', { ...query, sort: next })}>
          {name}
          <span aria-hidden="true">
            {order === 'ascending' ? ' ↑' : order === 'descending' ? ' ↓' : ''}
          </span>
        </a>
      </span>
    );
  };
  return (
    <div role="table" class="rule-table" aria-label={t.sort}>
      <div role="row" class="rule-heads rule-columns">
        {head(t.columns.path, { up: 'path', down: '-path', first: 'path' })}
        <span role="columnheader" class="rule-wide">
          {t.columns.origin}
        </span>
        <span role="columnheader" class="rule-wide">
          {t.columns.kind}
        </span>
        {head(t.columns.inserted, { up: 'inserted', down: '-inserted', first: '-inserted' })}
      </div>
    </div>
  );
}

/** When a page rule was inserted: its id, a UUIDv7, begins with that time (RFC 9562 §5.7). */
function InsertTime({ id }: { id: string }) {
  if (id[14] !== '7') return null;
  const ms = parseInt(id.replace('-', '').slice(0, 12), 16);
  return <When time={new Date(ms).toISOString()} />;
}
