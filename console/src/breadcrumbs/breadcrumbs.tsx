import { useEffect, useMemo } from 'preact/hooks';
import { call, type JsonObject, mayDesign } from '../api/api.ts';
import { draftOf } from './draft.ts';
import { outcomeText } from './sentences.ts';
import { ReadOnly } from '../frame/read-only.tsx';
import { linkTo, type Route } from '../route.ts';
import { texts } from '../texts.ts';
import { useLoad, usePages } from '../components/loading.ts';
import { ListFrame, ListSearch } from '../components/list.tsx';
import { ScreenHead, shortCount } from '../components/ui.tsx';
import { VirtualList } from '../components/virtual-list.tsx';

const t = texts.breadcrumbs;

/** Breadcrumbs that the list loads, to filter and sort them. */
const rowsMax = 20_000;
const rowsPerPage = 1_000;

type Sort = keyof typeof t.sorts;
const sorts = Object.keys(t.sorts) as Sort[];

interface Rule {
  readonly id: string;
  readonly seq: number;
  readonly path: string;
  readonly origin: string;
  readonly enginedata?: JsonObject;
}

interface VisitedKeys {
  readonly keys: readonly {
    readonly k: string;
    readonly origin: string;
    readonly visits: number;
  }[];
}

/** All breadcrumbs, with where they lead and how often they are followed. */
export function Breadcrumbs({ route: { params } }: { route: Route }) {
  const text = params.get('text') ?? '';
  const sort = sorts.find((one) => one === params.get('sort')) ?? 'visits';
  const pages = usePages<Rule, string>((after) =>
    call('userinterface.list', {
      ...{ kind: 'resolve', limit: rowsPerPage },
      ...(after !== undefined && { after }),
    }),
  );
  const { rows, isEnd, isLoading, error, more } = pages;
  const isFull = rows.length >= rowsMax;
  useEffect(() => {
    if (!isEnd && !isLoading && !isFull && error === undefined) more();
  });
  const visited = useLoad(
    (signal) => call<VisitedKeys>('breadcrumb.visits', { limit: 1_000 }, { signal }),
    [],
  );
  const visits = useMemo(() => {
    const keys = visited.data?.keys ?? [];
    return new Map(keys.map(({ k, origin, visits: count }) => [`${origin}\n${k}`, count]));
  }, [visited.data]);
  const visitsOf = ({ origin, path }: Rule): number => visits.get(`${origin}\n${path}`) ?? 0;
  // Sorting each page of many would take longer than a frame: the first rows, then all.
  const settled = isEnd || isFull ? rows : rows.slice(0, rowsPerPage);
  const shown = useMemo(
    () => sorted(found(settled, text), sort, visitsOf),
    [settled.length, text, sort, visits],
  );
  return (
    <>
      <ScreenHead title={t.title} lead={t.lead} shown={['userinterface.list', { kind: 'resolve' }]}>
        {mayDesign() ? (
          <a class="main-button" href="#/breadcrumbs/new">
            {t.fresh}
          </a>
        ) : null}
      </ScreenHead>
      <ReadOnly />
      <ListSearch
        path="/breadcrumbs"
        params={{ text, sort }}
        label={t.filter}
        choices={[{ name: 'sort', label: t.sort, options: Object.entries(t.sorts) }]}
        isInstant
      />
      <ListFrame pages={pages} empty={t.empty} emptyHint={t.emptyHint}>
        <p class="note" role="status">
          {shown.length === 0 && !isLoading ? t.noneFound : t.count(shown.length, !isFull)}
        </p>
        <VirtualList
          label={t.list}
          rows={shown}
          isEnd={isEnd || isFull}
          keepsPlace
          onEnd={() => undefined}
          row={(rule) => <RuleRow rule={rule} visits={visitsOf(rule)} />}
        />
      </ListFrame>
    </>
  );
}

function found(rows: readonly Rule[], text: string): readonly Rule[] {
  const sought = text.trim().toLowerCase();
  if (sought === '') return rows;
  return rows.filter(({ path, origin, enginedata }) =>
    `${path}\n${origin}\n${JSON.stringify(enginedata ?? {})}`.toLowerCase().includes(sought),
  );
}

function sorted(
  rows: readonly Rule[],
  sort: Sort,
  visitsOf: (rule: Rule) => number,
): readonly Rule[] {
  const byKey = (one: Rule, other: Rule): number => (one.path < other.path ? -1 : 1);
  switch (sort) {
    case 'key':
      return rows.toSorted(byKey);
    case 'newest':
      return rows.toSorted((one, other) => other.seq - one.seq);
    case 'visits':
      return rows
        .map((rule) => ({ rule, visits: visitsOf(rule) }))
        .sort((one, other) => other.visits - one.visits || byKey(one.rule, other.rule))
        .map(({ rule }) => rule);
  }
}

function RuleRow({
  rule: { id, path, origin, enginedata = {} },
  visits,
}: {
  rule: Rule;
  visits: number;
}) {
  const { branches, otherwise } = draftOf(enginedata);
  return (
    <a class="row breadcrumb-row" href={linkTo(`/breadcrumbs/${id}`)}>
      <b class="row-main" dir="auto">
        {path}
      </b>
      <span class="row-main quiet row-summary">{outcomeText(otherwise)}</span>
      {origin === '*' ? null : <span class="quiet row-summary">{origin}</span>}
      {branches.length === 0 ? null : <span class="tag">{t.branches(branches.length)}</span>}
      <span class="row-number" title={t.visits30}>
        {shortCount(visits)}
        <span class="unseen"> {t.visits30}</span>
      </span>
    </a>
  );
}
