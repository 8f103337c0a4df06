import { useMemo } from 'preact/hooks';
import type { Point, Series } from './find-anomalies.ts';
import { call } from '../api/api.ts';
import { useLoad } from '../components/loading.ts';
import { Bars } from '../components/bars.tsx';
import { Chart, type ChartData } from '../components/chart.tsx';
import { NodeLinks } from '../components/node-links.tsx';
import { useLive } from '../api/live.ts';
import { goTo, linkTo, type Route } from '../route.ts';
import { texts } from '../texts.ts';
import { TourOffer } from '../help/tour-offer.tsx';
import {
  Busy,
  bytesText,
  Fact,
  Fault,
  msText,
  ScreenHead,
  rateText,
  shortCount,
  Tile,
  When,
} from '../components/ui.tsx';
import { Anomalies } from './anomalies.tsx';
import type { ChangeRow } from '../history/changes.tsx';
import { ChangeList } from '../history/changes.tsx';
import type { Status } from './status.ts';

const t = texts.overview;
/** An import may be one line of the list, so it reads more changes than it shows. */
const [changesRead, changesShown] = [100, 8];
type Span = keyof typeof t.spans;

/** What the server does, and did, and what has changed. */
export function Overview({ route }: { route: Route }) {
  const asked = route.params.get('last') ?? '1h';
  const last = (asked in t.spans ? asked : '1h') as Span;
  const live = useLive(['changes', 'certificates', 'configuration', 'nodes']);
  const series = useLoad(
    (signal) => call<Series>('metrics.series', { last }, { signal }),
    [last],
    useLive(['series']),
  );
  const status = useLoad((signal) => call<Status>('server.status', {}, { signal }), [], live);
  const changes = useLoad(
    (signal) => call<{ rows: ChangeRow[] }>('change.list', { limit: changesRead }, { signal }),
    [],
    live,
  );
  return (
    <>
      <ScreenHead title={t.title} shown={['metrics.series', { last }]}>
        <div class="segments" role="group" aria-label={t.span}>
          {Object.entries(t.spans).map(([span, name]) => (
            <a
              key={span}
              href={linkTo('/', { last: span })}
              aria-current={span === last ? 'true' : undefined}
            >
              {name}
            </a>
          ))}
        </div>
      </ScreenHead>
      <TourOffer />
      <Fault error={series.error} onRetry={series.reload} />
      {series.data === undefined ? (
        <Busy />
      ) : (
        <>
          <Anomalies series={series.data} status={status.data} />
          <Figures series={series.data} changes={changes.data?.rows ?? []} />
        </>
      )}
      <div class="columns">
        <section class="recent">
          <h2>{t.changes}</h2>
          <Fault error={changes.error} onRetry={changes.reload} />
          {changes.data?.rows.length === 0 ? <p class="note">{t.noChanges}</p> : null}
          <ChangeList
            rows={changes.data?.rows ?? []}
            folded="transactions"
            linesMax={changesShown}
          />
          <p>
            <a href="#/history">{t.allChanges}</a>
          </p>
        </section>
        <section>
          {series.data === undefined ? null : <Sources points={series.data.points} />}
          <h2>{t.server}</h2>
          <Fault error={status.error} onRetry={status.reload} />
          {status.data === undefined ? null : <ServerState status={status.data} />}
        </section>
      </div>
    </>
  );
}

function total(points: readonly Point[], value: (point: Point) => number): number {
  return points.reduce((all, point) => all + value(point), 0);
}

function Figures({ series, changes }: { series: Series; changes: readonly ChangeRow[] }) {
  const { points } = series;
  const requests = total(points, (one) => one.requests);
  const seconds = (Date.parse(series.until) - Date.parse(points[0]?.time ?? series.from)) / 1000;
  const errors = total(points, ({ status }) => status['5xx'] ?? 0);
  const cached = total(points, ({ cache }) => cache.requests);
  const hits = total(points, ({ cache }) => cache.hits);
  const [failed, completed] = [
    total(points, ({ hooks }) => hooks.failed),
    total(points, ({ hooks }) => hooks.completed),
  ];
  const busiest = points.toSorted((a, b) => b.requests - a.requests)[0];
  return (
    <>
      <dl class="tiles">
        <Tile name={t.requests} value={shortCount(requests)}>
          {rateText(requests / Math.max(1, seconds))} {t.perSecond}
        </Tile>
        <Tile name={t.errors} value={shortCount(errors)} isBad={errors > 0}>
          {t.errorsOf(`${requests === 0 ? 0 : ((100 * errors) / requests).toFixed(1)} %`)}
          {errors === 0 ? null : (
            <>
              {' · '}
              <a href="#/operations/sources">{texts.sources.tab}</a>
            </>
          )}
        </Tile>
        <Tile name={t.duration} value={busiest?.p50_ms == null ? '–' : msText(busiest.p50_ms)}>
          {busiest?.p99_ms == null ? '' : t.slow(msText(busiest.p99_ms))}
        </Tile>
        <Tile name={t.cache} value={cached === 0 ? '–' : `${Math.round((100 * hits) / cached)} %`}>
          {t.cacheOf(shortCount(cached))}
        </Tile>
        <Tile name={t.bytes} value={bytesText(total(points, ({ bytes }) => bytes))} />
        <Tile name={t.hooks} value={shortCount(completed)}>
          <span class={failed > 0 ? 'bad-text' : ''}>{t.hooksFailed(shortCount(failed))}</span>
        </Tile>
      </dl>
      {points.length === 0 ? (
        <p class="note below">{t.none}</p>
      ) : (
        <Charts series={series} changes={changes} />
      )}
    </>
  );
}

const classColours = { '2xx': '--good', '3xx': '--blue', '4xx': '--violet', '5xx': '--bad' };

function Charts({ series, changes }: { series: Series; changes: readonly ChangeRow[] }) {
  const [byStatus, byDuration] = useMemo(() => {
    const { points } = series;
    const shared = {
      times: points.map(({ time }) => Date.parse(time) / 1000),
      markers: changes.map(({ dtu_stored }) => Date.parse(dtu_stored) / 1000),
      range: [Date.parse(series.from) / 1000, Date.parse(series.until) / 1000],
    } as const;
    const status: ChartData = {
      ...shared,
      lines: Object.entries(classColours).map(([label, colour]) => ({
        ...{ label, colour },
        values: points.map((point) => (1000 * (point.status[label] ?? 0)) / series.step_ms),
      })),
    };
    const duration: ChartData = {
      ...shared,
      lines: [
        { label: 'p50', colour: '--blue', values: points.map(({ p50_ms }) => p50_ms) },
        { label: 'p99', colour: '--amber', values: points.map(({ p99_ms }) => p99_ms) },
      ],
    };
    return [status, duration];
  }, [series, changes]);
  const select = (from: number, until: number): void => {
    goTo('/history', { from: isoOf(from), until: isoOf(until) });
  };
  return (
    <>
      <div class="charts">
        <Chart title={t.byStatus} data={byStatus} format={rateText} onSelect={select} />
        <Chart title={t.byDuration} data={byDuration} format={msText} onSelect={select} />
      </div>
      <p class="note">{t.markers}</p>
    </>
  );
}

function isoOf(seconds: number): string {
  return new Date(Math.round(seconds) * 1000).toISOString();
}

function Sources({ points }: { points: readonly Point[] }) {
  const rows = (['disk', 'rule', 'none', 'svc1'] as const).map((name) => ({
    name: t.source[name],
    count: total(points, ({ sources }) => sources[name]),
  }));
  return rows.every(({ count }) => count === 0) ? null : <Bars title={t.sources} rows={rows} />;
}

function ServerState({ status }: { status: Status }) {
  const { configuration, counts, memory, certificates } = status;
  const isBroken = configuration.state === 'broken';
  return (
    <dl class="facts">
      <Fact name={`${texts.product} ${status.version}`}>
        {t.since} <When time={status.started} />
      </Fact>
      <Fact name={t.configuration}>
        <span class={isBroken ? 'bad-text' : ''}>{isBroken ? t.broken : t.current}</span>
        {configuration.problems.map(({ file, line, message }) => (
          <span key={message} class="problem">
            {file}:{line}: {message}
          </span>
        ))}
        {configuration.restart_needed.length === 0 ? null : (
          <span class="problem">{t.restart(configuration.restart_needed.join(', '))}</span>
        )}
      </Fact>
      <NodeLinks node={status.node} />
      <Fact name={t.rules}>
        <a href="#/pages">{counts.rules.toLocaleString()}</a>
      </Fact>
      <Fact name={t.hooksCount}>{counts.hooks.toLocaleString()}</Fact>
      <Fact name={t.size}>{bytesText(counts.bytes)}</Fact>
      <Fact name={t.memory}>{bytesText(memory.resident_bytes)}</Fact>
      {certificates.map(({ section, names, valid_until: until, problem }) => (
        <Fact key={section} name={names.join(', ') || section}>
          {until === null ? null : (
            <>
              {t.until} <When time={until} />
            </>
          )}
          {problem === null ? null : <span class="problem">{problem}</span>}
        </Fact>
      ))}
    </dl>
  );
}
