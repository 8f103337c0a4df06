import { useEffect, useState } from 'preact/hooks';
import { ApiError, call, may, type Json, type JsonObject, type Problem } from '../api/api.ts';
import { schemaNamed } from '../api/openapi.ts';
import { goTo } from '../route.ts';
import { useLoad } from '../components/loading.ts';
import { SchemaFields } from '../components/schema-form.tsx';
import { texts } from '../texts.ts';
import { Busy, FailedScreen, Fault, ScreenHead } from '../components/ui.tsx';

const t = texts.webhooks;

interface EventTypes {
  readonly rows: readonly { readonly type: string }[];
}

type Stored = JsonObject & { readonly id: string; readonly seq: number };

/** The form of a new webhook, or of an existing one. */
export function WebhookForm({ id }: { id?: string }) {
  const loaded = useLoad(
    (signal) =>
      Promise.all([
        schemaNamed('NewHook'),
        call<EventTypes>('event.types', {}, { signal }).catch(() => ({ rows: [] })),
        id === undefined ? undefined : call<Stored>('webhook.read', { id }, { signal }),
      ]),
    [id],
  );
  if (loaded.error !== undefined) {
    return <FailedScreen title={t.title} error={loaded.error} onRetry={loaded.reload} />;
  }
  if (loaded.data === undefined) return <Busy />;
  const [schema, { rows }, stored] = loaded.data;
  const types = ['*', ...rows.map(({ type }) => type).filter((type) => type !== 'webhook.test')];
  return <Form {...{ schema, types, stored }} onReload={loaded.reload} />;
}

interface FormProps {
  readonly schema: JsonObject;
  readonly types: readonly string[];
  readonly stored: Stored | undefined;
  readonly onReload: () => void;
}

/** The fields that the schema has, of a stored hook; what waits is there to be corrected. */
function valueOf(stored: JsonObject, { properties = {} }: JsonObject): JsonObject {
  const waiting = (stored._unknowns_ ?? {}) as JsonObject;
  const all: JsonObject = { ...stored, ...waiting };
  const names = Object.keys(properties as JsonObject).filter((name) => all[name] !== undefined);
  return Object.fromEntries(names.map((name) => [name, mergedValue(stored[name], waiting[name])]));
}

/** Of an object, only members wait, such as a header field. */
function mergedValue(valid: Json | undefined, waiting: Json | undefined): Json {
  if (waiting === undefined) return valid ?? null;
  const areObjects = [valid, waiting].every((one) => typeof one === 'object' && one !== null);
  return areObjects ? { ...(valid as JsonObject), ...(waiting as JsonObject) } : waiting;
}

function Form({ schema, types, stored, onReload }: FormProps) {
  const [before] = useState(() => (stored === undefined ? {} : valueOf(stored, schema)));
  const [initial] = useState<JsonObject>(() =>
    stored === undefined ? { event: [], url: 'https://', active: true } : before,
  );
  const [value, setValue] = useState(initial);
  const [isTried, setTried] = useState(stored !== undefined);
  const [error, setError] = useState<unknown>();
  const [isSaving, setSaving] = useState(false);
  const [made, setMade] = useState<{ readonly id: string; readonly secret: string }>();
  const [vk] = useState(() => crypto.randomUUID());
  const found = useProblems(value);
  // A new form has no problems before somebody has typed.
  const problems = isTried ? found : found.filter(({ field }) => isTyped(field, initial, value));
  const save = async (): Promise<void> => {
    setSaving(true);
    setTried(true);
    setError(undefined);
    try {
      if (stored === undefined) {
        setMade(await call('webhook.insert', value, { vk }));
      } else {
        const changes = changesOf(before, value);
        await call('webhook.edit', { ...changes, id: stored.id, if_seq: stored.seq });
        goTo(`/webhooks/${stored.id}`);
      }
    } catch (failure) {
      setError(failure);
    }
    setSaving(false);
  };
  if (made !== undefined) return <Made {...made} />;
  const shown =
    stored === undefined
      ? (['webhook.insert', value] as const)
      : (['webhook.edit', { ...changesOf(before, value), id: stored.id }] as const);
  const isOutdated = error instanceof ApiError && error.code === 'precondition_failed';
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        void save();
      }}
    >
      <ScreenHead title={stored === undefined ? t.fresh : t.edit} lead={t.formLead} shown={shown}>
        <a
          class="quiet-button"
          href={stored === undefined ? '#/webhooks' : `#/webhooks/${stored.id}`}
        >
          {texts.form.cancel}
        </a>
        <button type="submit" class="main-button" disabled={isSaving}>
          {texts.editor.save}
        </button>
      </ScreenHead>
      <Fault
        error={isOutdated ? new Error(t.outdated) : error}
        {...(isOutdated && { onRetry: onReload })}
      />
      {/* Another screen follows: what somebody typed meanwhile would be lost. */}
      <fieldset class="fields form" disabled={isSaving}>
        <SchemaFields
          {...{ schema, value, problems }}
          suggestions={{ event: types }}
          onChange={setValue}
        />
      </fieldset>
    </form>
  );
}

function isTyped(field: string, initial: JsonObject, value: JsonObject): boolean {
  const [name = ''] = field.split('.');
  return initial[name] !== value[name];
}

/** The members that differ; null for one that was emptied. */
function changesOf(before: JsonObject, after: JsonObject): JsonObject {
  const names = [...new Set([...Object.keys(before), ...Object.keys(after)])];
  const changed = names.filter(
    (name) => JSON.stringify(before[name]) !== JSON.stringify(after[name]),
  );
  return Object.fromEntries(changed.map((name) => [name, after[name] ?? null]));
}

interface ImportReport {
  readonly refusals: readonly { readonly why: string }[];
  readonly unknowns: readonly { readonly problems: readonly Problem[] }[];
}

/** What the server says about the fields shortly after the last key; it stores nothing. */
function useProblems(value: JsonObject): readonly Problem[] {
  const [problems, setProblems] = useState<readonly Problem[]>([]);
  useEffect(() => {
    if (!may('design')) return undefined;
    const abort = new AbortController();
    const check = async (): Promise<void> => {
      const ndjson = JSON.stringify({ a: 'svc1.webhook.insert', v: value });
      const report = await call<ImportReport>(
        'userinterface.import',
        { ndjson, dry_run: true },
        { signal: abort.signal, isLive: true },
      );
      const refused = report.refusals.map(({ why }) => ({
        ...{ field: /^\w+/.exec(why)?.[0] ?? '', message: why, reason: 'refused' },
      }));
      setProblems([...refused, ...report.unknowns.flatMap(({ problems: all }) => all)]);
    };
    const timer = setTimeout(() => void check().catch(() => undefined), 400);
    return () => {
      clearTimeout(timer);
      abort.abort();
    };
  }, [value]);
  return problems;
}

/** The secret of a new hook, which is shown once. */
function Made({ id, secret }: { id: string; secret: string }) {
  return (
    <>
      <ScreenHead title={t.made} />
      <p>{t.madeSecret}</p>
      <p>
        <code class="secret">{secret}</code>
      </p>
      <p class="actions">
        <button type="button" onClick={() => void navigator.clipboard.writeText(secret)}>
          {t.copySecret}
        </button>
        <a class="main-button" href={`#/webhooks/${id}`}>
          {t.openHook}
        </a>
      </p>
    </>
  );
}
