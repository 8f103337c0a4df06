import { useEffect, useRef } from 'preact/hooks';
import type uPlot from 'uplot';
import { texts } from '../texts.ts';

/** A line of a chart. */
export interface Line {
  readonly label: string;
  /** The name of a colour token, such as `--good`. */
  readonly colour: string;
  readonly values: readonly (number | null)[];
}

/** What a chart shows over time; times are in seconds since 1970. */
export interface ChartData {
  readonly times: readonly number[];
  readonly lines: readonly Line[];
  /** Times of changes, which get a vertical line. */
  readonly markers: readonly number[];
  readonly range: readonly [number, number];
  /** Whether times are shown in UTC, as those of whole days are; by default in the local zone. */
  readonly isUtc?: boolean;
}

function colourOf(name: string): string {
  const probe = document.createElement('span');
  probe.style.color = `var(${name})`;
  document.body.append(probe);
  const { color } = getComputedStyle(probe);
  probe.remove();
  return color;
}

/** The narrowest and the only height of a drawn chart, in CSS pixels. */
const [widthMin, height] = [120, 190];

const daySeconds = 86_400;

/** The labels of the time axis: hours, with the day where it begins, or days. */
function timeLabels(isUtc: boolean) {
  const zone = isUtc ? { timeZone: 'UTC' } : {};
  const day = new Intl.DateTimeFormat('en-GB', { ...zone, day: 'numeric', month: 'short' });
  const hour = new Intl.DateTimeFormat('en-GB', { ...zone, hour: '2-digit', minute: '2-digit' });
  const both = (seconds: number): string => {
    const date = new Date(seconds * 1000);
    return isUtc ? day.format(date) : `${day.format(date)}, ${hour.format(date)}`;
  };
  const ticks = (times: readonly number[], distance: number): string[] =>
    times.map((time, at) => {
      const date = new Date(time * 1000);
      if (distance >= daySeconds) return day.format(date);
      const before = times[at - 1];
      const isNewDay =
        before === undefined || day.format(new Date(before * 1000)) !== day.format(date);
      return isNewDay ? `${hour.format(date)}\n${day.format(date)}` : hour.format(date);
    });
  return { both, ticks };
}

function options(
  { times, lines, markers, range: [from, until], isUtc = false }: ChartData,
  { width, format, onSelect }: ChartShape & { width: number },
): uPlot.Options {
  const axis = { stroke: colourOf('--quiet'), grid: { stroke: colourOf('--line'), width: 1 } };
  const labels = timeLabels(isUtc);
  const drawMarkers = (plot: uPlot): void => {
    const { ctx, bbox } = plot;
    ctx.save();
    ctx.strokeStyle = colourOf('--amber');
    ctx.setLineDash([4, 4]);
    for (const time of markers) {
      const x = plot.valToPos(time, 'x', true);
      if (x < bbox.left || x > bbox.left + bbox.width) continue;
      ctx.beginPath();
      ctx.moveTo(x, bbox.top);
      ctx.lineTo(x, bbox.top + bbox.height);
      ctx.stroke();
    }
    ctx.restore();
  };
  return {
    ...(isUtc && { tzDate: utcDate }),
    width,
    height,
    cursor: { drag: { x: true, y: false, setScale: false } },
    legend: { live: true },
    scales: {
      x: { time: true, range: [from, until] },
      y: { range: (_plot, _low, high) => [0, high > 0 ? high * 1.08 : 1] },
    },
    axes: [
      { ...axis, values: (_plot, times, _at, _space, distance) => labels.ticks(times, distance) },
      { ...axis, size: 62, values: (_plot, ticks) => ticks.map(format) },
    ],
    series: [
      {
        label: texts.overview.span,
        value: (_plot: uPlot, time: number | null) => (time === null ? '–' : labels.both(time)),
      },
      ...lines.map(({ label, colour }) => ({
        label,
        stroke: colourOf(colour),
        width: 2,
        points: { show: times.length < 30, size: 5 },
        value: (_plot: uPlot, value: number | null) => (value === null ? '–' : format(value)),
      })),
    ],
    hooks: {
      draw: [drawMarkers],
      setSelect: [
        (plot) => {
          const { left, width: selected } = plot.select;
          if (selected > 3) onSelect(plot.posToVal(left, 'x'), plot.posToVal(left + selected, 'x'));
        },
      ],
    },
  };
}

/** A date whose local parts are those of a time in UTC, which uPlot writes. */
function utcDate(seconds: number): Date {
  const date = new Date(seconds * 1000);
  return new Date(date.getTime() + date.getTimezoneOffset() * 60_000);
}

interface ChartShape {
  readonly format: (value: number) => string;
  readonly onSelect: (from: number, until: number) => void;
}

/** The width that a chart gets in its place, which does not depend on the chart. */
function widthOf(place: HTMLElement): number {
  return Math.max(widthMin, place.clientWidth);
}

/** A line chart, drawn by uPlot, with its values as a table for those who do not see it. */
export function Chart({ title, data, ...shape }: ChartShape & { title: string; data: ChartData }) {
  const place = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const element = place.current;
    if (element === null) return undefined;
    let plot: uPlot | undefined;
    let isGone = false;
    const draw = async (): Promise<void> => {
      const [{ default: Plot }] = await Promise.all([
        import('uplot'),
        import('uplot/dist/uPlot.min.css'),
      ]);
      if (isGone) return;
      plot?.destroy();
      const all = [[...data.times], ...data.lines.map(({ values }) => [...values])];
      const chart = options(data, { ...shape, width: widthOf(element) });
      plot = new Plot(chart, all as uPlot.AlignedData, element);
    };
    void draw();
    const resized = new ResizeObserver(() => {
      plot?.setSize({ width: widthOf(element), height });
    });
    resized.observe(element);
    return () => {
      isGone = true;
      resized.disconnect();
      plot?.destroy();
    };
  }, [data]);
  return (
    <figure class="chart">
      <figcaption>{title}</figcaption>
      <div ref={place} class="plot" role="img" aria-label={summary(title, data, shape.format)} />
    </figure>
  );
}

function summary(title: string, { lines }: ChartData, format: (value: number) => string): string {
  const latest = lines.map(({ label, values }) => {
    const value = values.findLast((one) => one !== null);
    return `${label} ${value === undefined ? '–' : format(value)}`;
  });
  return `${title}: ${latest.join(', ')}`;
}
