import { useState } from 'preact/hooks';
import { kindSchemas } from '../../../src/modules/rules/operations/kind-schemas.ts';
import { service, type JsonObject, type Problem } from '../api/api.ts';
import { problemsOf } from '../api/problems.ts';
import { CodeEditor } from '../components/code-editor.tsx';
import type { Language } from '../components/codemirror.ts';
import { useLoad } from '../components/loading.ts';
import { SchemaFields } from '../components/schema-form.tsx';
import { linkTo } from '../route.ts';
import { texts } from '../texts.ts';
import { parsedObject } from '../api/json.ts';

const t = texts.editor;

/** The members that have an editor for code. */
const codes: Readonly<Record<string, Language>> = { template: 'liquid', html: 'html', css: 'css' };

/** The JSON Schema of enginedata of a kind or engine; undefined for one without a form. */
async function loadSchema(
  kind: string,
  engine: string,
  signal: AbortSignal,
): Promise<JsonObject | undefined> {
  if (kind === 'resolve') return undefined;
  // The schemas have no number that the console could not hold.
  if (Object.hasOwn(kindSchemas, kind)) {
    return kindSchemas[kind as keyof typeof kindSchemas] as JsonObject;
  }
  if (!/^[\w-]+$/.test(engine)) return undefined;
  const headers = { accept: 'application/schema+json' };
  const response = await fetch(new URL(`engines/${engine}`, service), { headers, signal });
  const isSchema = response.headers.get('content-type')?.includes('schema+json') === true;
  return response.ok && isSchema ? ((await response.json()) as JsonObject) : undefined;
}

interface EnginedataProps {
  readonly id: string;
  readonly kind: string;
  readonly engine: string;
  /** The JSON that is edited; empty for none. */
  readonly text: string;
  readonly onText: (text: string) => void;
  readonly problems: readonly Problem[];
  readonly isReadOnly: boolean;
}

/** The data of a kind or engine: a form from its JSON Schema, or the JSON itself. */
export function Enginedata(props: EnginedataProps) {
  const { id, kind, engine, text, onText, problems, isReadOnly } = props;
  const [isJson, setJson] = useState(false);
  const schema = useLoad((signal) => loadSchema(kind, engine, signal), [kind, engine]);
  const value = objectIn(text);
  const hasForm = schema.data !== undefined && value !== undefined;
  const isForm = hasForm && !isJson;
  if (kind === 'content' && engine === '' && text === '') return null;
  return (
    <section class="wide-field enginedata" aria-label={t.enginedata}>
      <div class="panel-head">
        <h2 class="field-label">{t.enginedata}</h2>
        {kind === 'resolve' && id !== '' ? (
          <a href={linkTo(`/breadcrumbs/${id}`)}>{t.asBreadcrumb}</a>
        ) : null}
        {hasForm ? <FormOrJson {...{ isJson, setJson }} /> : null}
      </div>
      {isForm ? (
        <div class="fields">
          <SchemaFields
            key={`${kind} ${engine}`}
            {...{ value, problems, codes }}
            schema={schema.data}
            path="enginedata"
            onChange={(next) => {
              onText(Object.keys(next).length === 0 ? '' : JSON.stringify(next, undefined, 2));
            }}
          />
          <OtherMembers schema={schema.data} value={value} />
        </div>
      ) : (
        <CodeEditor
          label={t.enginedataJson}
          value={text}
          language="json"
          isReadOnly={isReadOnly}
          onInput={onText}
        />
      )}
      {value === undefined ? <span class="problem">{t.badJson}</span> : null}
      {isForm
        ? null
        : problemsOf(problems, 'enginedata').map((problem) => (
            <span key={problem} class="problem">
              {problem}
            </span>
          ))}
    </section>
  );
}

function FormOrJson({ isJson, setJson }: { isJson: boolean; setJson: (isJson: boolean) => void }) {
  return (
    <div class="segments" role="group" aria-label={t.enginedataAs}>
      {[false, true].map((one) => (
        <button
          key={String(one)}
          type="button"
          aria-pressed={isJson === one}
          onClick={() => {
            setJson(one);
          }}
        >
          {one ? t.asJson : t.asForm}
        </button>
      ))}
    </div>
  );
}

/** The members that the schema does not name: the form leaves them as they are. */
function OtherMembers({ schema, value }: { schema: JsonObject; value: JsonObject }) {
  const known = (schema.properties ?? {}) as JsonObject;
  const others = Object.keys(value).filter((name) => !Object.hasOwn(known, name));
  if (others.length === 0) return null;
  return <p class="note wide-field">{t.otherMembers(others.join(', '))}</p>;
}

/** As parsedObject; no text is an empty object. */
function objectIn(text: string): JsonObject | undefined {
  return text === '' ? {} : parsedObject(text);
}
