/** A name with its count. */
export interface BarRow {
  readonly name: string;
  readonly count: number;
  /** Where its name leads to. */
  readonly href?: string;
}

/** Counts as bars: each one's length is its part of the greatest, its percentage that of `all`. */
export function Bars({
  title,
  rows,
  all = rows.reduce((sum, { count }) => sum + count, 0),
}: {
  title: string;
  rows: readonly BarRow[];
  all?: number;
}) {
  const most = Math.max(1, ...rows.map(({ count }) => count));
  return (
    <section class="bars">
      <h2>{title}</h2>
      <dl>
        {rows.map(({ name, count, href }) => (
          <div key={name}>
            <dt>
              <span class="bar" aria-hidden="true" style={{ width: `${(100 * count) / most}%` }} />
              <span class="bar-name">{href === undefined ? name : <a href={href}>{name}</a>}</span>
            </dt>
            <dd>
              <b>{count.toLocaleString()}</b>{' '}
              <span class="percent">{all === 0 ? 0 : Math.round((100 * count) / all)} %</span>
            </dd>
          </div>
        ))}
      </dl>
    </section>
  );
}
