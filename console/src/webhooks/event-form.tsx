import { useState } from 'preact/hooks';
import { call, type JsonObject } from '../api/api.ts';
import { goTo, linkTo } from '../route.ts';
import { useLoad } from '../components/loading.ts';
import { SchemaFields } from '../components/schema-form.tsx';
import { texts } from '../texts.ts';
import { Busy, FailedScreen, Fault, Field, ScreenHead } from '../components/ui.tsx';
import { useUrlValue } from '../components/url-field.tsx';

const t = texts.webhooks;

interface EventType {
  readonly type: string;
  readonly summary: string;
  readonly own: boolean;
  readonly source: 'waymark' | 'server.ini' | 'table';
  readonly schema: JsonObject;
}

interface Stored {
  readonly id: string;
  readonly hooks: number;
  readonly unknowns: readonly string[];
  readonly problems: readonly { readonly message: string }[];
}

const anyData: JsonObject = {
  type: 'object',
  properties: { data: { type: 'object', description: t.dataHint } },
};

/** The form that sends an event: its fields come from the schema of its type. */
export function EventForm({ type }: { type: string }) {
  const types = useLoad(
    (signal) => call<{ rows: readonly EventType[] }>('event.types', {}, { signal }),
    [],
  );
  if (types.error !== undefined) {
    return <FailedScreen title={t.title} error={types.error} onRetry={types.reload} />;
  }
  if (types.data === undefined) return <Busy />;
  const rows = types.data.rows.filter((one) => one.type !== 'webhook.test');
  const chosen = type === '' ? rows[0]?.type : type;
  const known = rows.find((one) => one.type === chosen);
  return (
    <>
      <Form key={chosen} {...{ types: rows, type: chosen ?? '', known }} />
      <TypeList types={rows} />
    </>
  );
}

/** All types, each with its example, which a link puts into the form. */
function TypeList({ types }: { readonly types: readonly EventType[] }) {
  return (
    <section class="panel">
      <div class="panel-head">
        <h2>{t.types}</h2>
      </div>
      <ul class="table-list">
        {types.map((one) => (
          <li key={one.type}>
            <span>
              <a href={linkTo('/webhooks/send', { type: one.type })}>
                <code>{one.type}</code>
              </a>{' '}
              <span class="quiet">{t.typeSources[one.source]}</span>
              <br />
              {one.summary}
              <br />
              <code class="quiet">{JSON.stringify(exampleOf(one))}</code>
            </span>
          </li>
        ))}
      </ul>
    </section>
  );
}

function exampleOf(known: EventType | undefined): JsonObject {
  const examples = (known?.schema.examples ?? []) as readonly JsonObject[];
  return examples[0] ?? {};
}

interface FormProps {
  readonly types: readonly EventType[];
  readonly type: string;
  readonly known: EventType | undefined;
}

function Form({ types, type, known }: FormProps) {
  // The form of the typed type follows when the person leaves the field: this one sends none of it.
  const typed = useUrlValue(type);
  const [data, setData] = useState<JsonObject>(() => exampleOf(known));
  const [counter, setCounter] = useState('');
  const [stored, setStored] = useState<Stored>();
  const [error, setError] = useState<unknown>();
  const [isSending, setSending] = useState(false);
  const input = { type, data, ...(counter !== '' && { counter }) };
  const send = async (): Promise<void> => {
    setSending(true);
    setStored(undefined);
    setError(undefined);
    try {
      setStored(await call<Stored>('event.insert', input));
    } catch (failure) {
      setError(failure);
    }
    setSending(false);
  };
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        void send();
      }}
    >
      <ScreenHead
        title={t.sendEvent}
        lead={t.sendLead}
        back={{ href: '#/webhooks', name: t.all }}
        shown={['event.insert', input]}
      >
        <button type="submit" class="main-button" disabled={isSending || typed.value !== type}>
          {t.send}
        </button>
      </ScreenHead>
      <Fault error={error} />
      <div role="status">{stored === undefined ? null : <StoredEvent stored={stored} />}</div>
      <div class="fields form">
        <TypeFields {...{ types, typed }} />
        <Field label={t.counter}>
          <input
            type="text"
            spellcheck={false}
            value={counter}
            onInput={({ currentTarget }) => {
              setCounter(currentTarget.value);
            }}
          />
        </Field>
      </div>
      <h2>{t.data}</h2>
      {known === undefined ? null : <p class="note">{known.summary}</p>}
      <div class="fields form">
        {known === undefined ? (
          <SchemaFields
            schema={anyData}
            value={{ data }}
            onChange={({ data: next = {} }) => {
              setData(next as JsonObject);
            }}
          />
        ) : (
          <SchemaFields key={known.type} schema={known.schema} value={data} onChange={setData} />
        )}
      </div>
    </form>
  );
}

/** The type of the event: one that Waymark knows, or any other. */
function TypeFields({
  types,
  typed: { value, setValue, sent },
}: Pick<FormProps, 'types'> & { readonly typed: ReturnType<typeof useUrlValue<string>> }) {
  return (
    <Field label={t.type}>
      <input
        type="text"
        spellcheck={false}
        required
        list="event-types"
        value={value}
        onInput={({ currentTarget }) => {
          setValue(currentTarget.value);
        }}
        onChange={({ currentTarget }) => {
          sent(currentTarget.value);
          goTo('/webhooks/send', { type: currentTarget.value }, true);
        }}
      />
      <datalist id="event-types">
        {types.map((one) => (
          <option key={one.type} value={one.type}>
            {one.summary}
          </option>
        ))}
      </datalist>
    </Field>
  );
}

function StoredEvent({ stored: { id, hooks, unknowns, problems } }: { stored: Stored }) {
  return (
    <div class="fault soft">
      <p>
        {t.sent(hooks)} <code>{id}</code>
      </p>
      {unknowns.length === 0 ? null : <p>{t.unfit(unknowns.join(', '))}</p>}
      {problems.map(({ message }) => (
        <p key={message} class="problem">
          {message}
        </p>
      ))}
    </div>
  );
}
