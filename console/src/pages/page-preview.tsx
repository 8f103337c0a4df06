import { currentDraft } from '../api/session.ts';
import { useEffect, useState } from 'preact/hooks';
import { call, service, type JsonObject } from '../api/api.ts';
import { useLoad } from '../components/loading.ts';
import { Preview, PreviewNotes } from '../components/preview.tsx';
import { addressOf } from './address.ts';
import { renderPage, type PreviewedPage, type RenderedPage } from './render-page.ts';
import { linkTo } from '../route.ts';
import { texts } from '../texts.ts';
import { Fault, Field } from '../components/ui.tsx';
import {
  VisitorFields,
  visitorInput,
  type VisitorField,
  type VisitorInput,
} from '../components/visitor-fields.tsx';

const t = texts.editor;

/** The properties of the visitor of a preview. */
export const previewedFields: readonly VisitorField[] = [
  ...(['device', 'country', 'lang', 'user', 'role', 'at'] as const),
];

interface Explained {
  readonly says: string;
  readonly winner: { readonly id?: string; readonly mount?: string } | null;
  readonly tried: readonly {
    readonly candidates: readonly {
      readonly id?: string;
      readonly lost?: { readonly says: string };
    }[];
  }[];
}

/** Says what answers a visitor instead, if the rule does not answer at its own address. */
export function Shadow({
  rule,
  visitor,
}: {
  rule: JsonObject & { readonly id: string; readonly path: string; readonly seq: number };
  visitor: VisitorInput;
}) {
  const url = addressOf(rule);
  const input = visitorInput(visitor);
  const { data } = useLoad(
    (signal) =>
      url === undefined
        ? Promise.resolve(undefined)
        : call<Explained>('userinterface.explain', { url, ...input }, { signal }),
    [rule.id, rule.seq, JSON.stringify(input)],
  );
  const isWildcard = rule.path.endsWith('*');
  if (url === undefined || data === undefined || isWildcard) return null;
  const { winner, tried, says } = data;
  if (winner?.id === rule.id) return null;
  const candidates = tried.flatMap((one) => one.candidates);
  const why = candidates.find(({ id }) => id === rule.id)?.lost?.says;
  return (
    <div class="fault soft" role="status">
      <p>
        {Object.keys(input).length === 0 ? t.shadowed : t.shadowedFor} {says} {why}{' '}
        {winner?.id === undefined ? null : (
          <>
            <a href={`#/pages/${winner.id}`}>{t.otherPage}</a>{' '}
          </>
        )}
        <a href={linkTo('/explain', { url, ...input })}>{t.shadowedBy}</a>
      </p>
    </div>
  );
}

/** The page of a form in a frame, as a visitor gets it whom the fields above describe. */
export function PreviewColumn({
  page,
  rule,
  visitor,
  onVisitor,
}: {
  page: PreviewedPage;
  /** The saved rule; undefined for a new page. */
  rule: (JsonObject & { readonly id: string }) | undefined;
  visitor: VisitorInput;
  onVisitor: (visitor: VisitorInput) => void;
}) {
  const [branch, setBranch] = useState('');
  const { rendered, error } = useRendered(page, rule, { visitor, branch });
  const [isOpen] = useState(Object.keys(visitorInput(visitor)).length > 0);
  const { html, part, matched, branches, notes = [], failure } = rendered ?? {};
  const width = { mobile: 'phone', tablet: 'tablet' }[visitor.device ?? ''] ?? 'whole';
  return (
    <section class="preview-column" aria-label={t.preview}>
      <h2>{t.preview}</h2>
      <details open={isOpen}>
        <summary>{t.asVisitor}</summary>
        <div class="fields">
          <VisitorFields names={previewedFields} visitor={visitor} onInput={onVisitor} />
        </div>
      </details>
      <p class="note" role="status">
        {matched === undefined ? '' : t.matched(matched)}{' '}
        {branches === undefined ? '' : t.savedConditions}
      </p>
      {branches === undefined || branches.length === 0 ? null : (
        <BranchChoice {...{ branches, branch, setBranch }} />
      )}
      <Fault error={error ?? failure} />
      <PreviewNotes notes={notes} />
      {currentDraft() !== undefined && (html ?? '').concat(part ?? '').includes('<img') ? (
        <p class="note">{t.draftPictures}</p>
      ) : null}
      {html === undefined ? null : (
        <div class={`preview-frame ${width}`}>
          <Preview
            title={t.preview}
            {...{ html, part }}
            base={addressOf({ ...page }) ?? service.href}
          />
        </div>
      )}
    </section>
  );
}

/** Chooses the branch to show, while the server does not know the conditions of the form. */
function BranchChoice({
  branches,
  branch,
  setBranch,
}: {
  branches: readonly string[];
  branch: string;
  setBranch: (branch: string) => void;
}) {
  return (
    <Field label={t.branch}>
      <select
        value={branch}
        onChange={({ currentTarget }) => {
          setBranch(currentTarget.value);
        }}
      >
        <option value="">{t.branchSaved}</option>
        <option value="default">{t.branchNone}</option>
        {branches.map((condition, at) => (
          <option key={at} value={`when[${at}]`}>
            {`when[${at}]: ${condition.slice(0, 60)}`}
          </option>
        ))}
      </select>
    </Field>
  );
}

/** The rendered page shortly after the last change; the former one stays until then. */
function useRendered(
  page: PreviewedPage,
  rule: (JsonObject & { readonly id: string }) | undefined,
  { visitor, branch }: { readonly visitor: VisitorInput; readonly branch: string },
): { readonly rendered: RenderedPage | undefined; readonly error: unknown } {
  const [rendered, setRendered] = useState<RenderedPage>();
  const [error, setError] = useState<unknown>();
  const key = JSON.stringify([page, visitor, branch, rule?.id, rule?.seq]);
  useEffect(() => {
    const abort = new AbortController();
    const timer = setTimeout(
      () => {
        renderPage(page, rule, { visitor, branch, signal: abort.signal }).then(
          (found) => {
            if (abort.signal.aborted) return;
            setRendered(found);
            setError(undefined);
          },
          (failure: unknown) => {
            if (!abort.signal.aborted) setError(failure);
          },
        );
      },
      rendered === undefined ? 0 : 200,
    );
    return () => {
      clearTimeout(timer);
      abort.abort();
    };
  }, [key]);
  return { rendered, error };
}
