import { useMemo } from 'preact/hooks';
import { call } from '../api/api.ts';
import { draftOf } from './draft.ts';
import { countryName, outcomeText } from './sentences.ts';
import { useLoad } from '../components/loading.ts';
import { Bars } from '../components/bars.tsx';
import { Chart, type ChartData } from '../components/chart.tsx';
import { linkTo, type Route } from '../route.ts';
import { texts } from '../texts.ts';
import { Busy, CopyCurl, Fault, shortCount } from '../components/ui.tsx';
import type { BreadcrumbRule } from './breadcrumb-rule.ts';

const t = texts.breadcrumbs;
const dayMs = 86_400_000;
const spans = [7, 30, 90, 365] as const;
const linesMax = 5;
const colours = ['--amber', '--blue', '--good', '--violet', '--bad'];

interface Named {
  readonly name: string;
  readonly visits: number;
}

interface VisitSums {
  readonly retention_days: number;
  readonly visits: number;
  readonly robots: number;
  readonly days: readonly {
    readonly day: string;
    readonly visits: number;
    readonly branches: Readonly<Record<string, number>>;
  }[];
  readonly branches: readonly Named[];
  readonly countries: readonly Named[];
  readonly devices: readonly Named[];
  readonly hosts: readonly Named[];
}

/** The visits of a breadcrumb as charts. */
export function Visits({ rule, route }: { rule: BreadcrumbRule; route: Route }) {
  const span = spans.find((one) => String(one) === route.params.get('days')) ?? 30;
  const from = new Date(Date.now() - (span - 1) * dayMs).toISOString().slice(0, 10);
  const v = { k: rule.path, origin: rule.origin, from };
  const sums = useLoad(
    (signal) => call<VisitSums>('breadcrumb.visits', v, { signal }),
    [span, rule.path, rule.origin],
  );
  return (
    <section class="visits">
      <div class="screen-tools">
        <nav class="segments" aria-label={t.span}>
          {spans.map((one) => (
            <a
              key={one}
              href={linkTo(`/breadcrumbs/${rule.id}`, { part: 'visits', days: one })}
              aria-current={one === span ? 'true' : undefined}
            >
              {t.spans[one]}
            </a>
          ))}
        </nav>
        <CopyCurl shown={['breadcrumb.visits', v]} />
      </div>
      <Fault error={sums.error} onRetry={sums.reload} />
      {sums.data === undefined ? (
        sums.isLoading ? (
          <Busy />
        ) : null
      ) : (
        <Sums rule={rule} sums={sums.data} />
      )}
    </section>
  );
}

function Sums({ rule, sums }: { rule: BreadcrumbRule; sums: VisitSums }) {
  const { retention_days: retention, visits, robots, days } = sums;
  const chart = useMemo(() => chartOf(sums), [sums]);
  const { branches, otherwise } = draftOf((rule.enginedata ?? {}) as BreadcrumbRule);
  const branchName = (name: string): string => {
    const [, at] = /^when\[(\d+)\]$/.exec(name) ?? [];
    if (at === undefined) return `${t.otherwise}: ${outcomeText(otherwise)}`;
    const outcome = branches[Number(at)]?.outcome;
    return outcome === undefined ? name : `${t.branch(Number(at) + 1)}: ${outcomeText(outcome)}`;
  };
  return (
    <>
      <dl class="tiles">
        <div class="tile">
          <dt>{t.visitsTotal}</dt>
          <dd>
            <b>{visits.toLocaleString()}</b>
            <span>
              {shortCount(days.length === 0 ? 0 : visits / days.length)} {t.perDay}
            </span>
          </dd>
        </div>
        <div class="tile">
          <dt>{t.robots}</dt>
          <dd>
            <b>{robots.toLocaleString()}</b>
          </dd>
        </div>
      </dl>
      {visits === 0 ? (
        <p class="note">{t.noVisits}</p>
      ) : (
        <>
          <Chart title={t.byDay} data={chart} format={shortCount} onSelect={() => undefined} />
          <div class="bar-columns">
            <Names title={t.byBranch} names={sums.branches} nameOf={branchName} />
            <Names title={t.byDevice} names={sums.devices} nameOf={deviceName} />
            <Names title={t.byCountry} names={sums.countries} nameOf={countryName} />
            <Names title={t.byHost} names={sums.hosts} />
          </div>
        </>
      )}
      <p class="note">{retention === 0 ? t.visitsOff : t.visitsHint(retention)}</p>
    </>
  );
}

/** All visits of each day, and those of the most frequent branches. */
function chartOf({ days, branches }: VisitSums): ChartData {
  const times = days.map(({ day }) => Date.parse(day) / 1000);
  const all = { label: t.visitsTotal, colour: '--ink', values: days.map(({ visits }) => visits) };
  const lines = branches.slice(0, linesMax).map(({ name }, at) => ({
    label: name.startsWith('when[') ? t.branch(Number(name.slice(5, -1)) + 1) : t.otherwise,
    colour: colours[at] ?? '--quiet',
    values: days.map((one) => one.branches[name] ?? 0),
  }));
  const [first = 0, last = 0] = [times[0], times.at(-1)];
  return {
    times,
    lines: branches.length > 1 ? [all, ...lines] : [all],
    markers: [],
    range: [first, last],
    isUtc: true,
  };
}

function deviceName(name: string): string {
  return Object.hasOwn(t.deviceNames, name)
    ? t.deviceNames[name as keyof typeof t.deviceNames]
    : name;
}

const namesShown = 12;

function Names({
  title,
  names,
  nameOf = String,
}: {
  title: string;
  names: readonly Named[];
  nameOf?: (name: string) => string;
}) {
  const label = (name: string): string =>
    Object.hasOwn(t.names, name) ? t.names[name as keyof typeof t.names] : nameOf(name);
  const all = names.reduce((sum, { visits }) => sum + visits, 0);
  const rows = names
    .slice(0, namesShown)
    .map(({ name, visits }) => ({ name: label(name), count: visits }));
  return <Bars {...{ title, rows, all }} />;
}
