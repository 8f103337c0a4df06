import { useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks';
import { ApiError, call, type JsonObject, mayDesign } from '../api/api.ts';
import './breadcrumbs.css';
import { draftOf, enginedataOf, isEditable, type BreadcrumbDraft } from './draft.ts';
import { afterSave } from '../components/form-draft.ts';
import { useLoad } from '../components/loading.ts';
import { lazy } from '../components/lazy.tsx';
import { problemsOf, useProblems } from '../api/problems.ts';
import { ReadOnly } from '../frame/read-only.tsx';
import { goTo, linkTo, type Route } from '../route.ts';
import { texts } from '../texts.ts';
import { Busy, FailedScreen, Fault, Field, ScreenHead, saveByKey } from '../components/ui.tsx';
import { Branches } from './breadcrumb-branches.tsx';
import { linkOf, type BreadcrumbRule } from './breadcrumb-rule.ts';

const Visitors = lazy(() =>
  import('./breadcrumb-visitors.tsx').then(({ TriedVisitors: one }) => one),
);
const Visits = lazy(() => import('./breadcrumb-visits.tsx').then(({ Visits: one }) => one));
const LinkAndCode = lazy(() => import('./breadcrumb-code.tsx').then(({ LinkAndCode: one }) => one));

const t = texts.breadcrumbs;

type Part = keyof typeof t.parts;
const parts = Object.keys(t.parts) as Part[];

/** One breadcrumb, or a new one: its branches, tried visitors, visits, link and QR code. */
export function Breadcrumb({ id, route }: { id: string; route: Route }) {
  const isNew = id === 'new';
  const rule = useLoad(
    (signal) =>
      isNew
        ? Promise.resolve<BreadcrumbRule>({
            ...{ id: '', seq: 0, kind: 'resolve', origin: '*' },
            ...{ path: route.params.get('k') ?? '', enginedata: {} },
          })
        : call<BreadcrumbRule>('userinterface.read', { id }, { signal }),
    [id],
  );
  if (rule.error !== undefined) {
    return <FailedScreen title={t.title} error={rule.error} onRetry={rule.reload} />;
  }
  if (rule.data === undefined) return <Busy />;
  const { data } = rule;
  return (
    <Screen
      key={`${data.id} ${data.seq}`}
      {...{ loaded: data, isNew, route }}
      onReload={rule.reload}
    />
  );
}

interface ScreenProps {
  /** The rule as it was when the screen began. */
  readonly loaded: BreadcrumbRule;
  readonly isNew: boolean;
  readonly route: Route;
  readonly onReload: () => void;
}

interface Draft {
  readonly path: string;
  readonly origin: string;
  readonly breadcrumb: BreadcrumbDraft;
}

function fieldsOf({ path, origin, breadcrumb }: Draft): JsonObject {
  return { kind: 'resolve', path, origin, enginedata: enginedataOf(breadcrumb) };
}

function storedDraft({ path, origin, enginedata }: BreadcrumbRule): Draft {
  return { path, origin, breadcrumb: draftOf((enginedata ?? {}) as JsonObject) };
}

/** The rule of a screen, its draft and how it is saved. */
function useRule({ loaded, isNew }: ScreenProps) {
  const [rule, setRule] = useState(loaded);
  const [draft, setDraft] = useState(() => storedDraft(loaded));
  const [isSaving, setSaving] = useState(false);
  const [error, setError] = useState<unknown>();
  const [vk] = useState(() => crypto.randomUUID());
  const save = async (): Promise<void> => {
    // A second request with the same if_seq would be outdated.
    if (isSaving) return;
    setSaving(true);
    setError(undefined);
    try {
      const fields = fieldsOf(draft);
      if (isNew) {
        const made = await call<BreadcrumbRule>('userinterface.insert', fields, { vk });
        goTo(`/breadcrumbs/${made.id}`, {}, true);
      } else {
        const { kind: _kind, ...changes } = fields;
        const edit = { ...changes, id: rule.id, if_seq: rule.seq };
        const edited = await call<BreadcrumbRule>('userinterface.edit', edit);
        setRule(edited);
        const stored = storedDraft(edited);
        // Equal branches stay the same objects, so that the cursor stays where it is.
        const isEqual = JSON.stringify(fieldsOf(stored)) === JSON.stringify(fields);
        setDraft((now) => (isEqual ? now : afterSave(now, draft, stored)));
      }
    } catch (failure) {
      setError(failure);
    }
    setSaving(false);
  };
  return { rule, draft, setDraft, isSaving, error, save };
}

function Screen(props: ScreenProps) {
  const { loaded, isNew, route } = props;
  const { rule, draft, setDraft, isSaving, error, save } = useRule(props);
  const enginedata = (rule.enginedata ?? {}) as JsonObject;
  const before = useMemo(() => JSON.stringify(fieldsOf(storedDraft(rule))), [rule]);
  const isChanged = isNew || JSON.stringify(fieldsOf(draft)) !== before;
  const canWrite = mayDesign() && isEditable(enginedata);
  // A key may come before the effects of the last rendering.
  const latest = useRef(() => undefined as unknown);
  latest.current = () => (canWrite && isChanged ? void save() : undefined);
  useLayoutEffect(() => saveByKey(() => latest.current()), []);
  const part = parts.find((one) => one === route.params.get('part')) ?? 'branches';
  return (
    <form
      class="breadcrumb"
      onSubmit={(event) => {
        event.preventDefault();
        void save();
      }}
    >
      <ScreenHead
        title={isNew ? t.fresh : rule.path}
        back={{ href: '#/breadcrumbs', name: t.all }}
        shown={
          isNew
            ? ['userinterface.insert', fieldsOf(draft)]
            : ['userinterface.read', { id: rule.id }]
        }
      >
        {isNew ? null : <Links rule={rule} />}
        {canWrite && (part === 'branches' || isChanged) ? (
          <button type="submit" class="main-button" disabled={isSaving || !isChanged}>
            {isSaving ? texts.editor.saving : texts.editor.save}
          </button>
        ) : null}
      </ScreenHead>
      <p class="note" role="status">
        {canWrite
          ? isChanged
            ? texts.editor.changed
            : rule !== loaded
              ? texts.editor.saved
              : ''
          : ''}
      </p>
      <ReadOnly />
      <SaveFault error={error} onReload={props.onReload} />
      {isNew ? null : <Parts rule={rule} part={part} />}
      <div hidden={part !== 'branches'}>
        {isEditable(enginedata) ? (
          // The screen of the new breadcrumb has what was sent: it would lose what is typed now.
          <BranchesPart {...{ draft, setDraft }} canWrite={canWrite && !(isNew && isSaving)} />
        ) : (
          <div class="fault soft">
            <p>
              {t.notEditable} <a href={`#/pages/${rule.id}`}>{t.allFields}</a>
            </p>
          </div>
        )}
      </div>
      {part === 'visitors' ? (
        <Visitors {...{ rule, isChanged, route }} draft={draftOf(enginedata)} />
      ) : null}
      {part === 'visits' ? <Visits rule={rule} route={route} /> : null}
      {part === 'code' ? <LinkAndCode rule={rule} /> : null}
    </form>
  );
}

function SaveFault({ error, onReload }: { error: unknown; onReload: () => void }) {
  const isOutdated = error instanceof ApiError && error.code === 'precondition_failed';
  if (!isOutdated) return <Fault error={error} />;
  return (
    <div class="fault" role="alert">
      <p>{texts.editor.conflict}</p>
      <button type="button" onClick={onReload}>
        {texts.editor.reload}
      </button>
    </div>
  );
}

function Links({ rule }: { rule: BreadcrumbRule }) {
  return (
    <>
      <a class="quiet-button" href={linkOf(rule)} target="_blank" rel="noopener noreferrer">
        {t.open}
      </a>
      <a class="quiet-button" href={`#/pages/${rule.id}`}>
        {t.allFields}
      </a>
      <a class="quiet-button" href={linkTo('/history', { id: rule.id })}>
        {texts.editor.history}
      </a>
    </>
  );
}

/** The parts of the screen, each with a URL. */
function Parts({ rule, part }: { rule: BreadcrumbRule; part: Part }) {
  return (
    <nav class="segments" aria-label={t.part}>
      {parts.map((one) => (
        <a
          key={one}
          href={linkTo(`/breadcrumbs/${rule.id}`, one === 'branches' ? {} : { part: one })}
          aria-current={one === part ? 'true' : undefined}
        >
          {t.parts[one]}
        </a>
      ))}
    </nav>
  );
}

function BranchesPart({
  draft,
  setDraft,
  canWrite,
}: {
  draft: Draft;
  setDraft: (change: (before: Draft) => Draft) => void;
  canWrite: boolean;
}) {
  const problems = useProblems(canWrite && draft.path !== '' ? fieldsOf(draft) : undefined);
  return (
    <fieldset class="plain" disabled={!canWrite}>
      <div class="fields">
        <Field label={t.key} problems={problemsOf(problems, 'path')}>
          <input
            type="text"
            required
            spellcheck={false}
            placeholder={t.keyHint}
            value={draft.path}
            onInput={({ currentTarget: { value: path } }) => {
              setDraft((before) => ({ ...before, path }));
            }}
          />
        </Field>
        <Field label={t.origin} problems={problemsOf(problems, 'origin')}>
          <input
            type="text"
            spellcheck={false}
            value={draft.origin}
            onInput={({ currentTarget: { value: origin } }) => {
              setDraft((before) => ({ ...before, origin }));
            }}
          />
        </Field>
      </div>
      <Branches
        draft={draft.breadcrumb}
        problems={problems}
        onInput={(change) => {
          setDraft((before) => ({ ...before, breadcrumb: change(before.breadcrumb) }));
        }}
      />
    </fieldset>
  );
}
