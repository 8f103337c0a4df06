import { useId, useState } from 'preact/hooks';
import type { Json, JsonObject, Problem } from '../api/api.ts';
import { texts } from '../texts.ts';
import { CodeEditor } from './code-editor.tsx';
import type { Language } from './codemirror.ts';
import './schema-form.css';
import { isObject, parseJson, typedNumber } from '../api/json.ts';

const t = texts.form;

/** The controls of a form, by what a JSON Schema allows. */
type Control =
  | 'choice'
  | 'switch'
  | 'number'
  | 'text'
  | 'long'
  | 'code'
  | 'lines'
  | 'pairs'
  | 'object'
  | 'json';

const wide: ReadonlySet<Control> = new Set(['code', 'long', 'json', 'pairs', 'lines']);

interface FormProps {
  /** JSON Schema of an object. */
  readonly schema: JsonObject;
  readonly value: JsonObject;
  readonly onChange: (value: JsonObject) => void;
  readonly problems?: readonly Problem[];
  /** The path of the object among the fields of the whole form. */
  readonly path?: string;
  /** Words that a text field with this name suggests. */
  readonly suggestions?: Readonly<Record<string, readonly string[]>>;
  /** The languages of text fields that have an editor for code, by field. */
  readonly codes?: Readonly<Record<string, Language>>;
  /** A text of which the schema allows so many characters has a field of several lines. */
  readonly longFrom?: number;
  /** The titles of suggested words, by field and word. */
  readonly titles?: Readonly<Record<string, Readonly<Record<string, string>>>>;
}

/** The fields of an object, made from its JSON Schema. An emptied field is absent from the value. */
export function SchemaFields(props: FormProps) {
  const {
    schema,
    value,
    onChange,
    problems = [],
    path = '',
    suggestions = {},
    titles = {},
    codes = {},
    longFrom = Infinity,
  } = props;
  const properties = objectOf(schema.properties);
  // An object that may be absent requires its members once it has one.
  const isBegun = path === '' || Object.keys(value).length > 0;
  const required = isBegun && Array.isArray(schema.required) ? schema.required : [];
  // `_unknowns_` is no field of its own: invalid values of fields wait there.
  const fields = Object.entries(properties).filter(([name]) => !name.startsWith('_'));
  const set = (name: string) => (next: Json | undefined) => {
    const { [name]: _former, ...others } = value;
    onChange(next === undefined ? others : { ...others, [name]: next });
  };
  return (
    <>
      {fields.map(([name, member]) => (
        <SchemaField
          key={name}
          name={name}
          path={path === '' ? name : `${path}.${name}`}
          schema={objectOf(member)}
          isRequired={required.includes(name)}
          value={value[name]}
          problems={problems}
          suggestions={suggestions[name] ?? []}
          titles={titles[name] ?? {}}
          code={codes[name]}
          longFrom={longFrom}
          onChange={set(name)}
        />
      ))}
    </>
  );
}

interface FieldProps {
  readonly name: string;
  readonly path: string;
  readonly schema: JsonObject;
  readonly isRequired: boolean;
  readonly value: Json | undefined;
  readonly problems: readonly Problem[];
  readonly suggestions: readonly string[];
  readonly titles: Readonly<Record<string, string>>;
  readonly code: Language | undefined;
  readonly longFrom: number;
  readonly onChange: (value: Json | undefined) => void;
}

function SchemaField(props: FieldProps) {
  const { name, path, schema, isRequired, value, problems, code, longFrom, onChange } = props;
  const id = useId();
  // It stays while somebody types.
  const [control] = useState(() => controlFor(value, schema, { code, longFrom }));
  if (control === 'object') return <ObjectField {...props} />;
  const own = problems
    .filter(({ field }) => field === path || field.startsWith(`${path}.`))
    .map(({ message }) => message);
  const description = typeof schema.description === 'string' ? schema.description : '';
  return (
    <div class={wide.has(control) ? 'wide-field' : 'field'}>
      <label for={id} class="field-label">
        {name}
        {isRequired ? <span class="required"> {t.required}</span> : null}
      </label>
      <ControlOf {...{ control, id, schema, value, onChange, isRequired }} {...props} />
      {description === '' ? null : (
        <span class="note" id={`${id}-hint`}>
          {description}
        </span>
      )}
      {own.map((problem) => (
        <span key={problem} class="problem" role="status">
          {problem}
        </span>
      ))}
    </div>
  );
}

type ControlProps = FieldProps & { readonly control: Control; readonly id: string };

function ControlOf(props: ControlProps) {
  const { control, id, schema, value, onChange, suggestions } = props;
  const hint = typeof schema.description === 'string' ? `${id}-hint` : undefined;
  switch (control) {
    case 'choice':
      return (
        <select
          id={id}
          aria-describedby={hint}
          value={textOf(value)}
          onChange={({ currentTarget: { value: chosen } }) => {
            onChange(chosen === '' ? undefined : chosen);
          }}
        >
          <option value="">{t.standard}</option>
          {choicesOf(schema).map((choice) => (
            <option key={choice} value={choice}>
              {choice}
            </option>
          ))}
        </select>
      );
    case 'switch':
      return (
        <input
          id={id}
          class="switch"
          type="checkbox"
          aria-describedby={hint}
          checked={value === true}
          onChange={({ currentTarget }) => {
            onChange(currentTarget.checked);
          }}
        />
      );
    case 'lines':
      return <Lines {...{ id, hint, value, onChange, suggestions }} />;
    case 'pairs':
      return <Pairs {...{ id, value, onChange }} />;
    case 'json':
      return <JsonText {...{ id, hint, value, onChange }} />;
    case 'code':
      return (
        <CodeEditor
          label={props.name}
          value={textOf(value)}
          language={props.code ?? 'text'}
          onInput={(text) => {
            onChange(text === '' ? undefined : text);
          }}
        />
      );
    case 'long':
      return <LongText {...{ id, hint, value, onChange }} isRequired={props.isRequired} />;
    case 'text':
    case 'number':
    case 'object':
      return <TextInput {...{ ...props, hint }} />;
  }
}

function TextInput(props: ControlProps & { readonly hint: string | undefined }) {
  const { control, id, hint, value, onChange, isRequired, suggestions, titles } = props;
  return (
    <>
      <input
        id={id}
        type="text"
        spellcheck={false}
        inputMode={control === 'number' ? 'decimal' : 'text'}
        aria-describedby={hint}
        required={isRequired}
        list={suggestions.length > 0 ? `${id}-list` : undefined}
        value={textOf(value)}
        onInput={({ currentTarget: { value: text } }) => {
          const number = control === 'number' ? typedNumber(text) : undefined;
          onChange(text === '' ? undefined : (number ?? text));
        }}
      />
      {suggestions.length > 0 ? (
        <datalist id={`${id}-list`}>
          {suggestions.map((one) => (
            <option key={one} value={one}>
              {titles[one] ?? ''}
            </option>
          ))}
        </datalist>
      ) : null}
      {Object.hasOwn(titles, textOf(value)) ? (
        <span class="note">{titles[textOf(value)]}</span>
      ) : null}
    </>
  );
}

function ObjectField({ name, path, schema, value, problems, onChange }: FieldProps) {
  const variants = variantsOf(schema);
  const current = objectOf(value);
  const chosen = variants.find(
    ({ discriminator, constant }) => current[discriminator] === constant,
  );
  const shown = variants.length === 0 ? schema : objectOf(chosen?.schema);
  const fields = variants.length === 0 ? shown : withoutConstant(shown, chosen?.discriminator);
  return (
    <fieldset class="wide-field nested">
      <legend class="field-label">{name}</legend>
      {typeof schema.description === 'string' ? <p class="note">{schema.description}</p> : null}
      <div class="fields">
        {variants.length === 0 ? null : (
          <select
            aria-label={name}
            value={chosen?.constant ?? ''}
            onChange={({ currentTarget }) => {
              const next = variants.find(({ constant }) => constant === currentTarget.value);
              onChange(next && { [next.discriminator]: next.constant });
            }}
          >
            <option value="">{t.standard}</option>
            {variants.map(({ constant }) => (
              <option key={constant} value={constant}>
                {constant}
              </option>
            ))}
          </select>
        )}
        <SchemaFields
          {...{ schema: fields, value: current, problems, path }}
          onChange={(next) => {
            onChange(Object.keys(next).length === 0 ? undefined : next);
          }}
        />
      </div>
    </fieldset>
  );
}

interface TextProps {
  readonly id: string;
  readonly hint: string | undefined;
  readonly value: Json | undefined;
  readonly onChange: (value: Json | undefined) => void;
}

/** A list of texts, one a line. */
function Lines({
  id,
  hint,
  value,
  onChange,
  suggestions,
}: TextProps & { readonly suggestions: readonly string[] }) {
  const [text, setText] = useState(() => (Array.isArray(value) ? value.join('\n') : textOf(value)));
  const change = (next: string): void => {
    setText(next);
    const lines = next.split('\n').flatMap((line) => (line.trim() === '' ? [] : [line.trim()]));
    onChange(lines.length === 0 ? undefined : lines);
  };
  const used = new Set(text.split('\n'));
  return (
    <>
      <textarea
        id={id}
        rows={Math.max(2, text.split('\n').length)}
        spellcheck={false}
        aria-describedby={hint}
        placeholder={t.onePerLine}
        value={text}
        onInput={({ currentTarget }) => {
          change(currentTarget.value);
        }}
      />
      {suggestions.length === 0 ? null : (
        <span class="suggestions">
          {suggestions
            .filter((one) => !used.has(one))
            .map((one) => (
              <button
                key={one}
                type="button"
                class="tag"
                onClick={() => {
                  change(text.trim() === '' ? one : `${text.trim()}\n${one}`);
                }}
              >
                + {one}
              </button>
            ))}
        </span>
      )}
    </>
  );
}

/** Names with values, such as header fields. */
function Pairs({ id, value, onChange }: Omit<TextProps, 'hint'>) {
  const [pairs, setPairs] = useState(() => [
    ...Object.entries(objectOf(value)).map(([name, one]) => [name, textOf(one)] as const),
    ['', ''] as const,
  ]);
  const change = (at: number, pair: readonly [string, string]): void => {
    const next = pairs.map((one, index) => (index === at ? pair : one));
    const filled = next.filter(([name]) => name !== '');
    setPairs(next.at(-1)?.[0] === '' ? next : [...next, ['', '']]);
    onChange(filled.length === 0 ? undefined : Object.fromEntries(filled));
  };
  return (
    <span class="pairs" id={id} role="group">
      {pairs.map(([name, one], at) => (
        // oxlint-disable-next-line react/no-array-index-key -- a pair has no other identity
        <span key={at} class="pair">
          <input
            type="text"
            spellcheck={false}
            aria-label={t.pairName}
            placeholder={t.pairName}
            value={name}
            onInput={({ currentTarget }) => {
              change(at, [currentTarget.value, one]);
            }}
          />
          <input
            type="text"
            spellcheck={false}
            aria-label={t.pairValue}
            placeholder={t.pairValue}
            value={one}
            onInput={({ currentTarget }) => {
              change(at, [name, currentTarget.value]);
            }}
          />
        </span>
      ))}
    </span>
  );
}

/** A text of several lines. */
function LongText({
  id,
  hint,
  value,
  onChange,
  isRequired,
}: TextProps & { readonly isRequired: boolean }) {
  const text = textOf(value);
  return (
    <textarea
      id={id}
      rows={Math.min(12, Math.max(3, Math.ceil(text.length / 90), text.split('\n').length))}
      aria-describedby={hint}
      required={isRequired}
      value={text}
      onInput={({ currentTarget: { value: next } }) => {
        onChange(next === '' ? undefined : next);
      }}
    />
  );
}

/** Any value as JSON; a text that is not JSON yet is the value itself, which the server refuses. */
function JsonText({ id, hint, value, onChange }: TextProps) {
  const [text, setText] = useState(() =>
    value === undefined ? '' : JSON.stringify(value, undefined, 2),
  );
  const [isBad, setBad] = useState(false);
  return (
    <>
      <textarea
        id={id}
        class="mono"
        rows={Math.max(3, text.split('\n').length)}
        spellcheck={false}
        aria-describedby={hint}
        aria-invalid={isBad}
        value={text}
        onInput={({ currentTarget: { value: next } }) => {
          setText(next);
          try {
            onChange(next.trim() === '' ? undefined : parseJson(next));
            setBad(false);
          } catch {
            setBad(true);
          }
        }}
      />
      {isBad ? (
        <span class="problem" role="status">
          {t.badJson}
        </span>
      ) : null}
    </>
  );
}

function objectOf(value: Json | undefined): JsonObject {
  return isObject(value) ? value : {};
}

function textOf(value: Json | undefined): string {
  if (value === undefined || value === null) return '';
  return typeof value === 'string' ? value : JSON.stringify(value);
}

function alternativesOf(schema: JsonObject): readonly JsonObject[] {
  const { oneOf, anyOf } = schema;
  const all = Array.isArray(oneOf) ? oneOf : Array.isArray(anyOf) ? anyOf : [];
  return all.map(objectOf);
}

function typesOf({ type }: JsonObject): readonly Json[] {
  return type === undefined ? [] : [type].flat();
}

function choicesOf(schema: JsonObject): readonly string[] {
  return Array.isArray(schema.enum)
    ? schema.enum.filter((one): one is string => typeof one === 'string')
    : [];
}

/** The control of a value: JSON, where the one of its schema would change it. */
function controlFor(
  value: Json | undefined,
  schema: JsonObject,
  { code, longFrom }: Pick<FieldProps, 'code' | 'longFrom'>,
): Control {
  if (code !== undefined && (value === undefined || typeof value === 'string')) return 'code';
  const control = controlOf(schema);
  if (control === 'text' && isLongText(schema, longFrom)) return 'long';
  if (control !== 'lines' && control !== 'pairs') return control;
  const isOfLines = Object.values(objectOf(value))
    .concat(Array.isArray(value) ? value : [])
    .every((one) => typeof one === 'string' && !one.includes('\n'));
  return isOfLines ? control : 'json';
}

function controlOf(schema: JsonObject): Control {
  if (choicesOf(schema).length > 0) return 'choice';
  if (variantsOf(schema).length > 0) return 'object';
  const alternatives = alternativesOf(schema);
  const types = [schema, ...alternatives].flatMap(typesOf);
  const lists = [schema, ...alternatives].filter((one) => typesOf(one).includes('array'));
  if (lists.length > 0) {
    const isOfTexts = lists.every(({ items }) => typesOf(objectOf(items)).includes('string'));
    return isOfTexts ? 'lines' : 'json';
  }
  if (types.includes('boolean')) return 'switch';
  if (types.includes('string')) return 'text';
  if (types.includes('integer') || types.includes('number')) return 'number';
  if (Object.keys(objectOf(schema.properties)).length > 0) return 'object';
  const { type } = objectOf(schema.additionalProperties);
  return type === 'string' ? 'pairs' : 'json';
}

function isLongText({ maxLength, format, pattern }: JsonObject, longFrom: number): boolean {
  const isFree = format === undefined && pattern === undefined;
  return isFree && typeof maxLength === 'number' && maxLength >= longFrom;
}

interface Variant {
  /** The property that tells the variants apart, and its value. */
  readonly discriminator: string;
  readonly constant: string;
  readonly schema: JsonObject;
}

/** The alternatives of an object that differ by a constant property; none for another schema. */
function variantsOf(schema: JsonObject): readonly Variant[] {
  const variants = alternativesOf(schema).flatMap((one): readonly Variant[] => {
    const found = Object.entries(objectOf(one.properties)).find(
      ([, member]) => typeof objectOf(member).const === 'string',
    );
    if (found === undefined) return [];
    const [discriminator, member] = found;
    return [{ discriminator, constant: textOf(objectOf(member).const), schema: one }];
  });
  return variants.length === alternativesOf(schema).length ? variants : [];
}

function withoutConstant(schema: JsonObject, discriminator = ''): JsonObject {
  const { [discriminator]: _constant, ...properties } = objectOf(schema.properties);
  return { ...schema, properties };
}
