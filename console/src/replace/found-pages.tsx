import { linkTo } from '../route.ts';
import { texts } from '../texts.ts';
import type { FoundPage } from './find.ts';

const t = texts.replace;

/** The pages that have the text, each with its places; a person can leave some as they are. */
export function FoundPages({
  pages,
  left,
  onLeft,
}: {
  pages: readonly FoundPage[];
  left: ReadonlySet<string>;
  onLeft: (left: ReadonlySet<string>) => void;
}) {
  return (
    <ol class="found-pages">
      {pages.map((page) => (
        <li key={page.id}>
          <div class="found-head">
            <label class="check">
              <input
                type="checkbox"
                checked={page.problem === undefined && !left.has(page.id)}
                disabled={page.problem !== undefined}
                onChange={({ currentTarget: { checked } }) => {
                  const others = [...left].filter((one) => one !== page.id);
                  onLeft(new Set(checked ? others : [...others, page.id]));
                }}
              />
              <span dir="auto">{page.path}</span>
            </label>
            {page.origin === '*' ? null : <span class="quiet">{page.origin}</span>}
            <span class="tag">{t.times(page.count)}</span>
            <a class="text-button" href={pageLink(page)}>
              {t.open}
            </a>
          </div>
          {page.problem === undefined ? null : <p class="bad-text">{t.problem(page.problem)}</p>}
          {page.found.map((place, at) => (
            <Place key={at} place={place} />
          ))}
          {page.count > page.found.length ? (
            <p class="note">{t.more(page.count - page.found.length)}</p>
          ) : null}
        </li>
      ))}
    </ol>
  );
}

function Place({ place }: { place: FoundPage['found'][number] }) {
  const { field, before, found, replaced, after } = place;
  return (
    <div class="found-place">
      <span class="field-label">{t.fields(field)}</span>
      <pre>
        <span class="unseen">{t.was}</span>
        {before}
        <del>{found}</del>
        {after}
        {'\n'}
        <span class="unseen">{t.becomes}</span>
        {before}
        <ins>{replaced}</ins>
        {after}
      </pre>
    </div>
  );
}

function pageLink({ id, kind }: FoundPage): string {
  return linkTo(`/${kind === 'resolve' ? 'breadcrumbs' : 'pages'}/${id}`);
}
