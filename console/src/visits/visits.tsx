import { useMemo } from 'preact/hooks';
import { call, isBound } from '../api/api.ts';
import { countryName, languageName } from '../breadcrumbs/sentences.ts';
import { Bars } from '../components/bars.tsx';
import { Chart, type ChartData } from '../components/chart.tsx';
import { useLoad } from '../components/loading.ts';
import { Busy, Fault, ScreenHead, shortCount, Tile } from '../components/ui.tsx';
import { linkTo, type Route } from '../route.ts';
import { texts } from '../texts.ts';
import { ServerParts } from './server-parts.tsx';
import type { Named, VisitSummary } from './summary.ts';

const t = texts.visits;
const dayMs = 86_400_000;
const spanNames = texts.breadcrumbs.spans;
const spans = [7, 30, 90, 365] as const;
const rowsShown = 12;

/** The visits of breadcrumbs that the chart shows beside those of pages. */
interface BreadcrumbSums {
  readonly visits: number;
  readonly days: readonly { readonly visits: number }[];
  readonly keys: readonly {
    readonly k: string;
    readonly origin: string;
    readonly visits: number;
  }[];
}

/** The visits of all pages, or of one, as charts; who was refused, and what fails. */
export function Visits({ route }: { route: Route }) {
  const span = spans.find((one) => String(one) === route.params.get('days')) ?? 30;
  const from = new Date(Date.now() - (span - 1) * dayMs).toISOString().slice(0, 10);
  const path = route.params.get('path') ?? undefined;
  const origin = route.params.get('origin') ?? undefined;
  const v = { from, ...(path !== undefined && { path }), ...(origin !== undefined && { origin }) };
  const sums = useLoad(
    (signal) => call<VisitSummary>('visit.summary', v, { signal }),
    [from, path, origin],
  );
  const breadcrumbs = useLoad(
    (signal) =>
      path === undefined
        ? call<BreadcrumbSums>('breadcrumb.visits', { from, limit: rowsShown }, { signal })
        : Promise.resolve(undefined),
    [from, path],
  );
  return (
    <>
      <ScreenHead
        title={path ?? t.title}
        lead={path === undefined ? t.lead : (origin ?? t.everyOrigin)}
        back={
          path === undefined ? undefined : { href: linkTo('/visits', { days: span }), name: t.all }
        }
        shown={['visit.summary', v]}
      >
        <nav class="segments" aria-label={texts.breadcrumbs.span}>
          {spans.map((one) => (
            <a
              key={one}
              href={linkTo('/visits', { path, origin, days: one })}
              aria-current={one === span ? 'true' : undefined}
            >
              {spanNames[one]}
            </a>
          ))}
        </nav>
      </ScreenHead>
      <Fault error={sums.error} onRetry={sums.reload} />
      <Fault error={breadcrumbs.error} onRetry={breadcrumbs.reload} />
      {sums.data === undefined ? (
        sums.error === undefined ? (
          <Busy />
        ) : null
      ) : (
        <Sums sums={sums.data} breadcrumbs={breadcrumbs.data} span={span} />
      )}
      {path === undefined && !isBound() ? <ServerParts requests={sums.data?.requests} /> : null}
      {sums.data === undefined ? null : (
        <p class="note">
          {sums.data.retention_days === 0 ? t.off : t.hint(sums.data.retention_days)}
        </p>
      )}
    </>
  );
}

function Sums({
  sums,
  breadcrumbs,
  span,
}: {
  sums: VisitSummary;
  breadcrumbs: BreadcrumbSums | undefined;
  span: number;
}) {
  const chart = useMemo(() => chartOf(sums, breadcrumbs), [sums, breadcrumbs]);
  const { visits, robots } = sums;
  return (
    <>
      <Figures sums={sums} breadcrumbs={breadcrumbs} />
      <div class="charts">
        <Chart title={t.byDay} data={chart} format={shortCount} onSelect={() => undefined} />
      </div>
      {visits + robots === 0 ? <p class="note">{t.none}</p> : null}
      <Columns sums={sums} breadcrumbs={breadcrumbs} span={span} />
    </>
  );
}

function Figures({ sums, breadcrumbs }: Pick<Parameters<typeof Sums>[0], 'sums' | 'breadcrumbs'>) {
  const { requests, visits, robots, days } = sums;
  const refused = requests?.refused.reduce((all, { answers }) => all + answers, 0) ?? 0;
  const failed = requests?.statuses['5xx'] ?? 0;
  return (
    <dl class="tiles">
      <Tile name={t.visits} value={shortCount(visits)}>
        {shortCount(visits / Math.max(1, days.length))} {texts.breadcrumbs.perDay}
      </Tile>
      {breadcrumbs === undefined ? null : (
        <Tile name={t.ofBreadcrumbs} value={shortCount(breadcrumbs.visits)} />
      )}
      <Tile name={t.robots} value={shortCount(robots)}>
        {t.robotsHint}
      </Tile>
      {requests === undefined ? null : (
        <>
          <Tile name={t.answers} value={shortCount(requests.answers)}>
            <span class={failed > 0 ? 'bad-text' : ''}>{t.failed(shortCount(failed))}</span>
          </Tile>
          <Tile name={t.refused} value={shortCount(refused)} />
        </>
      )}
    </dl>
  );
}

/** The visits by each dimension. */
function Columns({ sums, breadcrumbs, span }: Parameters<typeof Sums>[0]) {
  const { visits, pages, origins = [] } = sums;
  const pageRows = pages.filter((one) => one.visits > 0).slice(0, rowsShown);
  return (
    <div class="bar-columns">
      {pages.length < 2 ? null : (
        <Bars
          title={t.byPage}
          all={visits}
          rows={pageRows.map(({ origin, path, visits: count }) => ({
            name: path === '' ? others : pageName(origin, path, origins),
            count,
            ...(path !== '' && { href: linkTo('/visits', { path, origin, days: span }) }),
          }))}
        />
      )}
      <Names title={t.byHost} names={sums.hosts} />
      <Names title={t.byCountry} names={sums.countries} nameOf={countryName} />
      <Names title={t.byLanguage} names={sums.languages} nameOf={languageName} />
      <Names title={t.byDevice} names={sums.devices} />
      <Names title={t.bySource} names={sums.sources} />
      {origins.length > 1 ? <Names title={t.byOrigin} names={origins} /> : null}
      {breadcrumbs === undefined ? null : (
        <Bars
          title={t.byBreadcrumb}
          all={breadcrumbs.visits}
          rows={breadcrumbs.keys
            .filter((one) => one.visits > 0)
            .map(({ k, visits: count }) => ({ name: k === '' ? others : k, count }))}
        />
      )}
    </div>
  );
}

const others = t.names['(other)'] ?? '';

/** The path of a page, with its origin if there are several. */
function pageName(origin: string, path: string, origins: readonly Named[]): string {
  return origins.length > 1 ? `${origin.replace(/^https?:\/\//, '')}${path}` : path;
}

function chartOf({ days }: VisitSummary, breadcrumbs: BreadcrumbSums | undefined): ChartData {
  const times = days.map(({ day }) => Date.parse(day) / 1000);
  const followed = breadcrumbs?.days.map(({ visits }) => visits) ?? [];
  return {
    times,
    lines: [
      { label: t.ofPages, colour: '--ink', values: days.map(({ visits }) => visits) },
      // Both spans end today; around midnight one may have a day more.
      ...(followed.length === days.length
        ? [{ label: t.ofBreadcrumbs, colour: '--amber', values: followed }]
        : []),
      { label: t.robots, colour: '--quiet', values: days.map(({ robots }) => robots) },
    ],
    markers: [],
    range: [times[0] ?? 0, times.at(-1) ?? 0],
    isUtc: true,
  };
}

function Names({
  title,
  names,
  nameOf = String,
}: {
  title: string;
  names: readonly Named[];
  nameOf?: (name: string) => string;
}) {
  if (names.length === 0) return null;
  const label = (name: string): string =>
    Object.hasOwn(t.names, name) ? (t.names[name] ?? name) : nameOf(name);
  const all = names.reduce((sum, { visits }) => sum + visits, 0);
  const rows = names
    .slice(0, rowsShown)
    .map(({ name, visits }) => ({ name: label(name), count: visits }));
  return <Bars {...{ title, rows, all }} />;
}
