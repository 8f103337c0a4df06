import { ApiError, call, type JsonObject } from '../api/api.ts';
import { useLoad } from '../components/loading.ts';
import { Fault, Field } from '../components/ui.tsx';
import { goTo, linkTo } from '../route.ts';
import { texts } from '../texts.ts';

const t = texts.start;

/** The start of the paths of templates: page rules that people begin new pages with. */
const templates = '/_templates/';
/** A template ends before it begins, so that no visitor gets it. */
const ended = '2000-01-01T00:00[UTC]';
/** Templates that the form offers. */
const offeredMax = 200;

/** Whether a page rule of this path is a template. */
export function isTemplate(path: string): boolean {
  return path.startsWith(templates);
}

/** The fields of a new page that begins as a copy of another one, or with a template. */
export function copyOf(
  { _unknowns_: _unknowns, ...rule }: JsonObject & { readonly path: string },
  params: URLSearchParams,
): JsonObject & { readonly path: string } {
  const path = params.get('path') ?? rule.path;
  const { until: ownEnd, ...others } = rule;
  const until = isTemplate(path) ? ended : isTemplate(rule.path) ? undefined : ownEnd;
  const origin = params.get('origin') ?? rule.origin ?? '*';
  return { ...others, path, origin, ...(until !== undefined && { until }) };
}

/** The links that begin a page with a saved one: a copy, or a template of it. */
export function CopyLinks({ rule }: { rule: JsonObject & { readonly id: string; path: string } }) {
  const { id, path, kind, content, asset } = rule;
  // The form has no bytes and no assets.
  if (kind === 'resolve' || asset !== undefined || typeof content === 'object') return null;
  const name = path.replaceAll(/[^\w.-]+/g, '-').replaceAll(/^-|-$/g, '');
  return (
    <>
      <a class="quiet-button" href={linkTo('/pages/new', { from: id })}>
        {t.copy}
      </a>
      {isTemplate(path) ? null : (
        <a
          class="quiet-button"
          href={linkTo('/pages/new', {
            from: id,
            path: `${templates}${name === '' ? 'page' : name}`,
          })}
        >
          {t.makeTemplate}
        </a>
      )}
    </>
  );
}

/** What a new page begins with, and the title that a template asks for. */
export function PageStart({
  from,
  place,
  hasTitle,
  title,
  onTitle,
}: {
  from: string;
  /** Where the page is to be, as the form has it. */
  place: { readonly path: string; readonly origin: string };
  hasTitle: boolean;
  title: string;
  onTitle: (title: string) => void;
}) {
  const { data, error, reload } = useLoad(
    (signal) =>
      call<{ rows: readonly { readonly id: string; readonly path: string }[] }>(
        'userinterface.list',
        { path: templates, limit: offeredMax },
        { signal },
      ),
    [],
  );
  const rows = data?.rows ?? [];
  // A key that may not read templates begins with an empty page.
  const fault = error instanceof ApiError && error.code === 'forbidden' ? undefined : error;
  const isCopy = from !== '' && data !== undefined && !rows.some(({ id }) => id === from);
  return (
    <div class="page-start">
      <Fault error={fault} onRetry={reload} />
      {rows.length === 0 && !isCopy ? null : (
        <Field label={t.label}>
          <select
            value={from}
            onChange={({ currentTarget: { value } }) => {
              goTo('/pages/new', { ...place, from: value, title }, true);
            }}
          >
            <option value="">{t.blank}</option>
            {isCopy ? <option value={from}>{t.copyOf}</option> : null}
            {rows.map(({ id, path }) => (
              <option key={id} value={id}>
                {t.template(path.slice(templates.length))}
              </option>
            ))}
          </select>
        </Field>
      )}
      {hasTitle && !isTemplate(place.path) ? (
        <Field label={t.title}>
          <input
            type="text"
            value={title}
            onInput={({ currentTarget }) => {
              onTitle(currentTarget.value);
            }}
          />
        </Field>
      ) : null}
      {isTemplate(place.path) ? <p class="note">{t.templateHint}</p> : null}
    </div>
  );
}

const placeholder = /\[\[(title|path)\]\]/g;

/** Whether a text asks for a title. */
export function asksForTitle(texts: readonly (string | undefined)[]): boolean {
  return texts.some((text) => text?.includes('[[title]]') === true);
}

/** A text of a page with its placeholders filled, each in the way that the text is written. */
export function filled(
  text: string,
  values: { readonly title: string; readonly path: string },
  form: 'html' | 'json' | 'text',
): string {
  return text.replaceAll(placeholder, (sign, name: 'title' | 'path') => {
    const value = values[name];
    if (value === '') return sign;
    if (form === 'json') return JSON.stringify(value).slice(1, -1);
    if (form === 'text') return value;
    return value.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('"', '&quot;');
  });
}
