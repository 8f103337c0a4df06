import { useLayoutEffect, useRef, useState } from 'preact/hooks';
import { call, type Json, type JsonObject } from '../api/api.ts';
import { afterSave } from '../components/form-draft.ts';
import { useLoad } from '../components/loading.ts';
import { CodeEditor } from '../components/code-editor.tsx';
import { schemaNamed } from '../api/openapi.ts';
import { goTo } from '../route.ts';
import { SchemaFields } from '../components/schema-form.tsx';
import { texts } from '../texts.ts';
import { Busy, FailedScreen, Fault, saveByKey, ScreenHead } from '../components/ui.tsx';
import { parsedObject } from '../api/json.ts';

const t = texts.tables;

type Definition = JsonObject & { readonly id: string; readonly seq: number; readonly name: string };

const firstSchema: JsonObject = {
  type: 'object',
  required: ['name'],
  properties: { name: { type: 'string', minLength: 1 } },
};

/** The definition of a table, or of a new one. A schema that rows do not fit is only tried first. */
export function TableForm({ name }: { name?: string }) {
  const loaded = useLoad(
    (signal) =>
      Promise.all([
        schemaNamed('NewTable'),
        name === undefined
          ? undefined
          : call<{ rows: readonly Definition[] }>('table.list', { name }, { signal }),
      ]),
    [name],
  );
  const title = name === undefined ? t.fresh : t.definitionOf(name);
  if (loaded.error !== undefined) {
    return <FailedScreen title={title} error={loaded.error} onRetry={loaded.reload} />;
  }
  if (loaded.data === undefined) return <Busy />;
  const [schema, list] = loaded.data;
  const stored = list?.rows[0];
  if (name !== undefined && stored === undefined) {
    const error = new Error(t.noTable(name));
    return <FailedScreen title={title} error={error} onRetry={loaded.reload} />;
  }
  return <Form key={stored?.seq} {...{ title, schema }} loaded={stored} />;
}

interface SchemaChange {
  readonly done: false;
  readonly rows: number;
  readonly invalid: number;
  readonly fields: Readonly<Record<string, number>>;
  readonly first: readonly { readonly id: string; readonly fields: readonly string[] }[];
  readonly digest: string;
}

interface FormProps {
  readonly title: string;
  readonly schema: JsonObject;
  /** The definition as it was when the form began. */
  readonly loaded: Definition | undefined;
}

/** The fields of a definition besides the schema, which has an editor of its own. */
function otherFields(schema: JsonObject, isNew: boolean): JsonObject {
  const { schema: _schema, name, ...properties } = (schema.properties ?? {}) as JsonObject;
  return {
    ...schema,
    properties: isNew && name !== undefined ? { name, ...properties } : properties,
  };
}

function Form(props: FormProps) {
  const { title, loaded } = props;
  const form = useDefinition(props);
  const { stored, shown, value, text, rowSchema, report } = form;
  // A new table has a screen of its own once it is stored.
  const isLeaving = stored === undefined && form.isSaving;
  const isChanged = Object.keys(form.changes()).length > 0;
  const latest = useRef(form.save);
  latest.current = form.save;
  useLayoutEffect(() => saveByKey(() => void latest.current()), []);
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        void form.save();
      }}
    >
      <DefinitionHead {...{ title, form, isChanged }} />
      <p class="note" role="status">
        {isChanged ? texts.editor.changed : stored !== loaded ? texts.editor.saved : ''}
      </p>
      <Fault error={form.error} />
      {report === undefined ? null : (
        <ReportView
          {...{ report, table: stored?.name ?? '' }}
          onConfirm={() => void form.save(report.digest)}
        />
      )}
      <FieldTable schema={rowSchema} />
      <h2>{t.schema}</h2>
      <div class="code">
        <CodeEditor
          label={t.schema}
          value={text}
          language="json"
          isReadOnly={isLeaving}
          onInput={form.setText}
        />
      </div>
      {rowSchema === undefined ? (
        <p class="problem" role="status">
          {texts.form.badJson}
        </p>
      ) : null}
      <h2>{t.settings}</h2>
      <fieldset class="fields form" disabled={isLeaving}>
        <SchemaFields schema={shown} value={value} onChange={form.setValue} />
      </fieldset>
    </form>
  );
}

function DefinitionHead({
  title,
  form: { stored, changes, rowSchema, isSaving },
  isChanged,
}: {
  title: string;
  form: ReturnType<typeof useDefinition>;
  isChanged: boolean;
}) {
  return (
    <ScreenHead
      title={title}
      lead={t.definitionLead}
      shown={
        stored === undefined
          ? ['table.insert', changes()]
          : ['table.edit', { ...changes(), id: stored.id, if_seq: stored.seq }]
      }
    >
      <a class="quiet-button" href={stored === undefined ? '#/tables' : `#/tables/${stored.name}`}>
        {texts.form.cancel}
      </a>
      <button
        type="submit"
        class="main-button"
        disabled={rowSchema === undefined || isSaving || !isChanged}
      >
        {isSaving ? texts.editor.saving : texts.editor.save}
      </button>
    </ScreenHead>
  );
}

/** The values of a definition that its form shows. */
function valuesOf(names: readonly string[], stored: Definition | undefined): JsonObject {
  return Object.fromEntries(
    names.flatMap((name) => (stored?.[name] === undefined ? [] : [[name, stored[name]] as const])),
  );
}

/** What the form has stored: the definition, its values, and the schema as the form sent it. */
function storedForm(names: readonly string[], stored: Definition | undefined, schema?: JsonObject) {
  const sent = schema ?? (stored?.schema as JsonObject | undefined);
  return { stored, before: valuesOf(names, stored), schema: JSON.stringify(sent) };
}

/** The state of the form: its fields, the schema as text, and what the server said last. */
function useDefinition({ schema, loaded }: FormProps) {
  const shown = otherFields(schema, loaded === undefined);
  const names = Object.keys(shown.properties as JsonObject);
  const [base, setBase] = useState(() => storedForm(names, loaded));
  const { stored, before } = base;
  const [value, setValue] = useState(before);
  const [text, setText] = useState(() =>
    JSON.stringify(loaded?.schema ?? firstSchema, undefined, 2),
  );
  const [report, setReport] = useState<SchemaChange>();
  const [isSaving, setSaving] = useState(false);
  const [error, setError] = useState<unknown>();
  const rowSchema = parsedObject(text);
  const changes = (): JsonObject => {
    const isChanged = JSON.stringify(rowSchema) !== base.schema;
    const all = names.filter(
      (name) => JSON.stringify(value[name]) !== JSON.stringify(before[name]),
    );
    const others = Object.fromEntries(all.map((name) => [name, value[name] ?? null] as const));
    return { ...others, ...(isChanged && { schema: rowSchema ?? null }) };
  };
  const send = async (confirm: string | undefined): Promise<void> => {
    if (stored === undefined) {
      const made = await call<Definition>('table.insert', changes());
      goTo(`/tables/${made.name}`);
      return;
    }
    const changed = changes();
    if (Object.keys(changed).length === 0) return;
    const done = await call<Definition | SchemaChange>('table.edit', {
      ...{ ...changed, id: stored.id, if_seq: stored.seq },
      ...(confirm !== undefined && { confirm }),
    });
    if (done.done === false) {
      setReport(done as SchemaChange);
      return;
    }
    const next = storedForm(names, done as Definition, rowSchema);
    setBase(next);
    setValue((now) => afterSave(now, value, next.before));
  };
  const save = async (confirm?: string): Promise<void> => {
    if (isSaving) return;
    setSaving(true);
    setError(undefined);
    setReport(undefined);
    await send(confirm).catch(setError);
    setSaving(false);
  };
  const said = { report, isSaving, error };
  return { stored, shown, value, setValue, text, setText, rowSchema, ...said, changes, save };
}

/** What a new schema would do to the rows, and the button that does it. */
function ReportView({
  report: { rows, invalid, fields, first },
  table,
  onConfirm,
}: {
  report: SchemaChange;
  table: string;
  onConfirm: () => void;
}) {
  return (
    <section class="panel" role="alert" aria-label={t.reportTitle}>
      <h2>{t.reportTitle}</h2>
      <p>{t.report(invalid, rows)}</p>
      <dl class="facts">
        {Object.entries(fields).map(([name, count]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{t.rows(count)}</dd>
          </div>
        ))}
      </dl>
      <ul class="plan">
        {first.map(({ id, fields: names }) => (
          <li key={id}>
            <a href={`#/tables/${table}/row/${id}`}>{id}</a>{' '}
            <span class="quiet">{names.join(', ')}</span>
          </li>
        ))}
      </ul>
      <button type="button" class="main-button" onClick={onConfirm}>
        {t.confirmSchema(invalid)}
      </button>
    </section>
  );
}

/** The fields of a schema at a glance. */
function FieldTable({ schema }: { schema: JsonObject | undefined }) {
  const fields = Object.entries((schema?.properties ?? {}) as JsonObject);
  const required = Array.isArray(schema?.required) ? schema.required : [];
  if (fields.length === 0) return null;
  return (
    <div class="grid-box" role="region" aria-label={t.fields} tabIndex={0}>
      <table class="grid table-fields">
        <thead>
          <tr>
            <th scope="col">{t.field}</th>
            <th scope="col">{t.type}</th>
            <th scope="col">{t.rules}</th>
          </tr>
        </thead>
        <tbody>
          {fields.map(([name, field]) => (
            <tr key={name}>
              <td>
                <b>{name}</b>
                {required.includes(name) ? <span class="tag">{texts.form.required}</span> : null}
              </td>
              <td>{typeText(field)}</td>
              <td class="quiet">{rulesText(field)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function typeText(field: Json): string {
  const { type, enum: values, 'x-table': table } = (field ?? {}) as JsonObject;
  if (typeof table === 'string') return t.reference(table);
  if (Array.isArray(values)) return values.map(String).join(' | ');
  return type === undefined ? t.anyType : [type].flat().map(String).join(' | ');
}

function rulesText(field: Json): string {
  const {
    type: _type,
    enum: _enum,
    'x-table': _table,
    description,
    ...rules
  } = (field ?? {}) as JsonObject;
  const shown = Object.entries(rules).map(([name, value]) => `${name} ${JSON.stringify(value)}`);
  return [...shown, ...(typeof description === 'string' ? [description] : [])].join(' · ');
}
