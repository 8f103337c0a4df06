import { useLayoutEffect, useRef, useState } from 'preact/hooks';
import {
  ApiError,
  call,
  isBound,
  mayDesign,
  type Json,
  type JsonObject,
  type Problem,
} from '../api/api.ts';
import { currentDraft } from '../api/session.ts';
import { ReadOnly } from '../frame/read-only.tsx';
import { Undo } from '../history/undo.tsx';
import { headerLines, headersOf, textOf } from '../components/header-lines.ts';
import { afterSave } from '../components/form-draft.ts';
import { useLoad } from '../components/loading.ts';
import { CodeEditor, type InsertFile } from '../components/code-editor.tsx';
import type { Language } from '../components/codemirror.ts';
import { problemsOf, useProblems } from '../api/problems.ts';
import { Enginedata } from './enginedata.tsx';
import type { PreviewedPage } from './render-page.ts';
import { goTo, linkTo, type Route } from '../route.ts';
import { texts } from '../texts.ts';
import { Busy, FailedScreen, Fault, Field, ScreenHead, saveByKey } from '../components/ui.tsx';
import { useVisitor } from '../components/visitor-fields.tsx';
import { addressOf } from './address.ts';
import { DeadLinks } from './dead-links.tsx';
import { PreviewColumn, previewedFields, Shadow } from './page-preview.tsx';
import { AccessField } from './access-field.tsx';
import { asksForTitle, copyOf, CopyLinks, filled, isTemplate, PageStart } from './page-start.tsx';
import { MomentField, TimeZones } from './moment-field.tsx';
import { kinds } from './pages.tsx';
import { parseJson } from '../api/json.ts';

const t = texts.editor;

/** The fields of a page rule as texts of a form. */
type Draft = Readonly<Record<string, string>>;

type Rule = JsonObject & { readonly id: string; readonly path: string; readonly seq: number };

/** The text fields of the form: those above the content … */
const firstFields = ['path', 'origin', 'engine'] as const;
/** … and those below it. */
const otherFields = ['table', 'contenttype', 'lang', 'httpresponse'] as const;
const plainFields = [...firstFields, ...otherFields] as const;

const engines = ['html', 'template', 'form'];

/** The fields without use for a kind: the form has them only with a value, to empty them. */
const unusedFields: Readonly<Record<string, readonly string[]>> = {
  'content.fetch': ['table', 'contenttype', 'lang', 'engine', 'content'],
  resolve: ['table', 'contenttype', 'lang', 'engine', 'content'],
  'insert-record': ['contenttype', 'content'],
  'edit-record': ['contenttype', 'content'],
  'delete-record': ['contenttype', 'content'],
};

function isShown(name: string, draft: Draft): boolean {
  const { kind = '', engine = '' } = draft;
  const unused = unusedFields[kind] ?? (engine === '' ? [] : ['contenttype', 'content']);
  return draft[name] !== '' || !unused.includes(name);
}

/** The editor of one page rule, or of a new one. */
export function PageEditor({ id, route }: { id: string; route: Route }) {
  const isNew = id === 'new';
  const from = (isNew ? route.params.get('from') : null) ?? '';
  const rule = useLoad(
    async (signal) => {
      if (isNew && from === '') return { loaded: newRule(route), from };
      const read = await call<Rule>('userinterface.read', { id: isNew ? from : id }, { signal });
      const loaded = isNew ? { ...copyOf(read, route.params), id: '', seq: 0 } : read;
      return { loaded, from };
    },
    [id, from],
  );
  if (rule.error !== undefined) {
    return <FailedScreen title={texts.pages.title} error={rule.error} onRetry={rule.reload} />;
  }
  if (rule.data === undefined) return <Busy />;
  const { loaded } = rule.data;
  return (
    <Form
      key={`${loaded.id} ${loaded.seq} ${rule.data.from}`}
      {...{ loaded, isNew, route }}
      onReload={rule.reload}
    />
  );
}

function newRule({ params }: Route): Rule {
  const origin = params.get('origin') ?? '*';
  return { id: '', seq: 0, origin, path: params.get('path') ?? '/', kind: 'content', content: '' };
}

function draftOf(rule: JsonObject): Draft {
  const names = [...plainFields, 'access', 'kind', 'enginecomments', 'from', 'until'];
  const plain: Draft = Object.fromEntries(names.map((name) => [name, textOf(rule[name])]));
  const { content, enginedata } = rule;
  return {
    ...plain,
    content: typeof content === 'string' ? content : '',
    enginedata: enginedata === undefined ? '' : JSON.stringify(enginedata, undefined, 2),
    headers: headerLines(rule.headers),
  };
}

/** The fields of a draft that differ from a rule, in their own types; null for an emptied one. */
function changesOf(draft: Draft, rule: JsonObject): JsonObject {
  const before = draftOf(rule);
  const changed = Object.entries(draft).filter(([name, text]) => text !== before[name]);
  return Object.fromEntries(changed.map(([name, text]) => [name, valueOf(name, text)]));
}

function valueOf(name: string, text: string): Json {
  if (text === '') return null;
  if (name === 'httpresponse') return /^\d+$/.test(text) ? Number(text) : text;
  if (name === 'headers') return headersOf(text);
  if (name !== 'enginedata') return text;
  try {
    return parseJson(text);
  } catch {
    return text;
  }
}

function isBadJson({ enginedata = '' }: Draft): boolean {
  return enginedata !== '' && typeof valueOf('enginedata', enginedata) === 'string';
}

/** The fields that the server checks; undefined for a draft that cannot be sent. */
function checkedFields(draft: Draft): JsonObject | undefined {
  if (isBadJson(draft)) return undefined;
  const given = Object.entries(changesOf(draft, {})).filter(([, value]) => value !== null);
  return Object.fromEntries(given);
}

interface FormProps {
  /** The rule as it was when the form began. */
  readonly loaded: Rule;
  readonly isNew: boolean;
  readonly route: Route;
  readonly onReload: () => void;
}

/** The rule of a form, its draft and how it is saved. */
function useRule({ loaded, isNew, route }: FormProps) {
  const [rule, setRule] = useState(loaded);
  const [draft, setDraft] = useState(() => draftOf(loaded));
  const [title, setTitle] = useState(route.params.get('title') ?? '');
  const [state, setState] = useState<'idle' | 'saving'>('idle');
  const [error, setError] = useState<unknown>();
  const [vk] = useState(() => crypto.randomUUID());
  const written = isNew ? filledDraft(draft, title) : draft;
  const save = async (): Promise<void> => {
    // A second request with the same if_seq would be outdated.
    if (state === 'saving') return;
    setState('saving');
    setError(undefined);
    try {
      const changes = changesOf(written, isNew ? {} : rule);
      if (isNew) {
        const given = Object.entries(changes).filter(([, value]) => value !== null);
        const fields = Object.fromEntries(given);
        const made = await call<Rule>('userinterface.insert', fields, { vk });
        goTo(`/pages/${made.id}`, {}, true);
      } else if (Object.keys(changes).length > 0) {
        const edit = { ...changes, id: rule.id, if_seq: rule.seq };
        const edited = await call<Rule>('userinterface.edit', edit);
        setRule(edited);
        setDraft((now) => afterSave(now, draft, draftOf(edited)));
      }
      setState('idle');
    } catch (failure) {
      setError(failure);
      setState('idle');
    }
  };
  return { rule, draft, setDraft, title, setTitle, written, state, error, save };
}

function Form(props: FormProps) {
  const { loaded, isNew, route } = props;
  const [visitor, onVisitor] = useVisitor(route, previewedFields);
  const { rule, draft, setDraft, written, state, error, save, ...start } = useRule(props);
  const canWrite = mayDesign();
  const [isDeleting, setDeleting] = useState(false);
  const problems = useProblems(canWrite ? checkedFields(written) : undefined);
  const isChanged = isNew || Object.keys(changesOf(draft, rule)).length > 0;
  const set = (name: string) => (value: string) => {
    setDraft((before) => ({ ...before, [name]: value }));
  };
  // A key may come before the effects of the last rendering.
  const latest = useRef(save);
  latest.current = save;
  useLayoutEffect(() => saveByKey(() => void latest.current()), []);
  const shown = isNew
    ? (['userinterface.insert', changesOf(written, {})] as const)
    : (['userinterface.read', { id: rule.id }] as const);
  return (
    <form
      class="editor"
      onSubmit={(event) => {
        event.preventDefault();
        void save();
      }}
    >
      <ScreenHead
        title={isNew ? t.fresh : rule.path}
        back={{ href: linkTo('/pages', folderOf(rule)), name: texts.nav.pages }}
        shown={shown}
      >
        {isNew ? null : <Links rule={rule} />}
        {isNew || !canWrite ? null : <DeleteButton onDelete={setDeleting} />}
        {canWrite ? (
          <button type="submit" class="main-button" disabled={state === 'saving' || !isChanged}>
            {state === 'saving' ? t.saving : t.save}
          </button>
        ) : null}
      </ScreenHead>
      <p class="note" role="status">
        {canWrite ? (isChanged ? t.changed : rule !== loaded ? t.saved : '') : ''}
      </p>
      <ReadOnly />
      <SaveFault error={error} onReload={props.onReload} />
      {isDeleting ? <Deletion rule={rule} onDelete={setDeleting} /> : null}
      {isNew ? null : <Shadow {...{ rule, visitor }} />}
      {isNew ? <Start {...{ draft, route, ...start }} /> : null}
      <div class="editor-columns">
        <Fields
          {...{ rule, draft, set, problems }}
          canWrite={canWrite && !(isNew && state === 'saving')}
        />
        <PreviewColumn
          page={previewedPage(written)}
          rule={isNew ? undefined : rule}
          {...{ visitor, onVisitor }}
        />
      </div>
    </form>
  );
}

/** What a new page begins with. */
function Start({
  draft,
  route,
  title,
  setTitle,
}: {
  draft: Draft;
  route: Route;
  title: string;
  setTitle: (title: string) => void;
}) {
  const { path = '', origin = '', content, enginedata, headers } = draft;
  return (
    <PageStart
      from={route.params.get('from') ?? ''}
      place={{ path, origin }}
      hasTitle={asksForTitle([content, enginedata, headers])}
      title={title}
      onTitle={setTitle}
    />
  );
}

/** The draft of a new page with its placeholders filled; those of a template stay. */
function filledDraft(draft: Draft, title: string): Draft {
  const { path = '', content = '', enginedata = '', headers = '' } = draft;
  if (isTemplate(path)) return draft;
  const values = { title, path };
  return {
    ...draft,
    content: filled(content, values, languageOf(draft) === 'html' ? 'html' : 'text'),
    enginedata: filled(enginedata, values, 'json'),
    headers: filled(headers, values, 'text'),
  };
}

interface DeletionProps {
  readonly onDelete: (isDeleting: boolean) => void;
}

function DeleteButton({ onDelete }: DeletionProps) {
  return (
    <button
      type="button"
      class="quiet-button danger"
      onClick={() => {
        onDelete(true);
      }}
    >
      {t.deletePage}
    </button>
  );
}

/** Deletes a page by reverting all of its changes, which it first shows. */
function Deletion({ rule, onDelete }: DeletionProps & { rule: Rule }) {
  return (
    <Undo
      selection={{ id: rule.id }}
      onDone={() => {
        goTo('/pages', folderOf(rule));
      }}
      onClose={() => {
        onDelete(false);
      }}
    />
  );
}

/** The folder of a page in the tree of pages. */
function folderOf({ origin, path }: Rule): Readonly<Record<string, string>> {
  if (!path.startsWith('/') || typeof origin !== 'string') return {};
  return { origin, path: path.slice(0, path.lastIndexOf('/') + 1) };
}

function Links({ rule }: { rule: Rule }) {
  const url = addressOf(rule);
  // The address has the live page: only the preview of a draft shows that of the draft.
  const isLive = currentDraft() === undefined;
  return (
    <>
      {url === undefined ? null : (
        <>
          {isLive ? (
            <a class="quiet-button" href={url} target="_blank" rel="noopener noreferrer">
              {t.open}
            </a>
          ) : null}
          <a class="quiet-button" href={linkTo('/explain', { url })}>
            {t.explain}
          </a>
        </>
      )}
      <a class="quiet-button" href={linkTo('/history', { id: rule.id })}>
        {t.history}
      </a>
      {mayDesign() ? <CopyLinks rule={rule} /> : null}
    </>
  );
}

function SaveFault({ error, onReload }: { error: unknown; onReload: () => void }) {
  const isOutdated = error instanceof ApiError && error.code === 'precondition_failed';
  if (!isOutdated) return <Fault error={error} />;
  return (
    <div class="fault" role="alert">
      <p>{t.conflict}</p>
      <button type="button" onClick={onReload}>
        {t.reload}
      </button>
    </div>
  );
}

interface FieldsProps {
  readonly rule: Rule;
  readonly draft: Draft;
  readonly set: (name: string) => (value: string) => void;
  readonly problems: readonly Problem[];
  readonly canWrite: boolean;
}

function Fields({ rule, draft, set, problems, canWrite }: FieldsProps) {
  return (
    <fieldset class="fields" disabled={!canWrite}>
      <Field label={t.kind} problems={problemsOf(problems, 'kind')}>
        <select
          value={draft.kind ?? ''}
          onChange={({ currentTarget }) => {
            set('kind')(currentTarget.value);
          }}
        >
          {kinds.map((kind) => (
            <option key={kind} value={kind}>
              {kind}
            </option>
          ))}
        </select>
      </Field>
      <PlainFields names={firstFields} {...{ draft, set, problems }} />
      <datalist id="engines">
        {engines.map((one) => (
          <option key={one} value={one} />
        ))}
      </datalist>
      <Content {...{ rule, draft, set, problems, canWrite }} />
      <Enginedata
        id={rule.id}
        kind={draft.kind ?? ''}
        engine={draft.engine ?? ''}
        text={draft.enginedata ?? ''}
        onText={set('enginedata')}
        {...{ problems, isReadOnly: !canWrite }}
      />
      <PlainFields names={otherFields} {...{ draft, set, problems }} />
      <Limits {...{ draft, set, problems }} />
      {(['headers', 'enginecomments'] as const).map((name) => (
        <div key={name} class="wide-field">
          <Field label={t[name]} problems={problemsOf(problems, name)}>
            <textarea
              rows={2}
              spellcheck={name === 'enginecomments'}
              placeholder={name === 'headers' ? 'X-Robots-Tag: noindex' : undefined}
              value={draft[name]}
              onInput={({ currentTarget }) => {
                set(name)(currentTarget.value);
              }}
            />
          </Field>
        </div>
      ))}
      <Waiting rule={rule} />
    </fieldset>
  );
}

/** Text fields of the form, as far as the kind of the page has a use for them. */
function PlainFields({
  names,
  draft,
  set,
  problems,
}: Pick<FieldsProps, 'draft' | 'set' | 'problems'> & {
  names: readonly (typeof plainFields)[number][];
}) {
  return (
    <>
      {names
        .filter((name) => isShown(name, draft))
        .map((name) => (
          <Field key={name} label={t[name]} problems={problemsOf(problems, name)}>
            <input
              type="text"
              spellcheck={false}
              list={name === 'engine' ? 'engines' : undefined}
              required={name === 'path'}
              value={draft[name] ?? ''}
              onInput={({ currentTarget }) => {
                set(name)(currentTarget.value);
              }}
            />
          </Field>
        ))}
    </>
  );
}

/** To whom and when the page answers. */
function Limits({ draft, set, problems }: Pick<FieldsProps, 'draft' | 'set' | 'problems'>) {
  return (
    <>
      <AccessField
        value={draft.access ?? ''}
        onValue={set('access')}
        problems={problemsOf(problems, 'access')}
      />
      {(['from', 'until'] as const).map((name) => (
        <MomentField
          key={name}
          label={t[name]}
          zoneLabel={t[`${name}Zone`]}
          text={draft[name] ?? ''}
          onText={set(name)}
          problems={problemsOf(problems, name)}
        />
      ))}
      <TimeZones />
    </>
  );
}

function Content({ rule, draft, set, problems, canWrite }: FieldsProps) {
  const isBinary = typeof rule.content === 'object';
  const origin = draft.origin === undefined || draft.origin === '' ? '*' : draft.origin;
  const insertFile: InsertFile = async (file, onProgress) => {
    const { htmlForFile } = await import('../assets/insert-files.ts');
    return htmlForFile(file, origin, onProgress);
  };
  if (!isBinary && !isShown('content', draft)) return null;
  return (
    <div class="wide-field">
      <span class="field-label">{t.content}</span>
      {isBinary ? (
        <p class="note">{t.binary}</p>
      ) : (
        <CodeEditor
          label={t.content}
          value={draft.content ?? ''}
          language={languageOf(draft)}
          isReadOnly={!canWrite}
          onInput={set('content')}
          insertFile={isBound() || languageOf(draft) !== 'html' ? undefined : insertFile}
        />
      )}
      {languageOf(draft) === 'html' && !isBinary ? (
        <DeadLinks content={draft.content ?? ''} path={draft.path ?? ''} origin={origin} />
      ) : null}
      <ProblemList problems={problemsOf(problems, 'content')} />
    </div>
  );
}

function ProblemList({ problems }: { problems: readonly string[] }) {
  return (
    <>
      {problems.map((problem) => (
        <span key={problem} class="problem">
          {problem}
        </span>
      ))}
    </>
  );
}

function Waiting({ rule }: { rule: Rule }) {
  const waiting = Object.entries((rule._unknowns_ ?? {}) as JsonObject);
  if (waiting.length === 0) return null;
  return (
    <div class="wide-field">
      <span class="field-label">{t.waiting}</span>
      <p class="note">{t.waitingHint}</p>
      <dl class="facts">
        {waiting.map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>
              <code>{JSON.stringify(value)}</code>
            </dd>
          </div>
        ))}
      </dl>
    </div>
  );
}

function languageOf({ contenttype = '', kind }: Draft): Language {
  if (contenttype.includes('json')) return 'json';
  if (contenttype.includes('css')) return 'css';
  const isHtml = contenttype === '' || contenttype.includes('html');
  return isHtml && kind !== 'content.fetch' ? 'html' : 'text';
}

/** The fields of a draft that its preview needs. */
function previewedPage(draft: Draft): PreviewedPage {
  const text = (name: string): string => draft[name] ?? '';
  return {
    ...{ kind: text('kind'), path: text('path'), origin: text('origin'), lang: text('lang') },
    ...{ contenttype: text('contenttype'), engine: text('engine'), content: text('content') },
    table: text('table'),
    enginedata: valueOf('enginedata', text('enginedata')),
  };
}
