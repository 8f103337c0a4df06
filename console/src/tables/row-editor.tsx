import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { ApiError, call, type Json, type JsonObject, type Problem } from '../api/api.ts';
import { goTo, linkTo, type Route } from '../route.ts';
import { afterSave } from '../components/form-draft.ts';
import { useLoad } from '../components/loading.ts';
import { SchemaFields } from '../components/schema-form.tsx';
import {
  fieldsOf,
  referenceTitles,
  titleOf,
  valueText,
  type ShownRow,
  type TableShape,
} from './table-shape.ts';
import { texts } from '../texts.ts';
import { Busy, FailedScreen, Fault, saveByKey, ScreenHead } from '../components/ui.tsx';
import { RowHistory } from './row-history.tsx';
import { Undo } from '../history/undo.tsx';
import { parseJson } from '../api/json.ts';

const t = texts.tables;
const checkAfterMs = 400;

/** The form of a row of a table, or of a new one; and its history. */
export function RowEditor({ table, id, route }: { table: string; id: string; route: Route }) {
  const isNew = id === 'new';
  const loaded = useLoad(
    (signal) =>
      Promise.all([
        call<TableShape>('record.schema', { table }, { signal }),
        isNew ? undefined : call<ShownRow>('record.read', { table, id }, { signal }),
      ]),
    [table, id],
  );
  // The version that the form has saved last.
  const [savedSeq, setSavedSeq] = useState<number>();
  const { data, error } = loaded;
  if (error !== undefined) {
    const isGone = error instanceof ApiError && error.code === 'not_found';
    return (
      <>
        <FailedScreen title={table} error={error} onRetry={loaded.reload} />
        {isGone ? <RowHistory table={table} id={id} seq={route.params.get('seq')} /> : null}
      </>
    );
  }
  if (data === undefined) return <Busy />;
  const [shape, row] = data;
  return (
    <>
      <RowForm key={row?.seq ?? 'new'} {...{ shape, row }} onSaved={setSavedSeq} />
      {row === undefined ? null : (
        <RowHistory
          key={Math.max(row.seq, savedSeq ?? 0)}
          table={table}
          id={id}
          seq={route.params.get('seq')}
          onChange={loaded.reload}
        />
      )}
    </>
  );
}

/** The values of a row that its form shows: those that wait are there to be corrected. */
function valuesOf(shape: TableShape, row: ShownRow | undefined): JsonObject {
  const names = Object.keys(fieldsOf(shape));
  const all: JsonObject = { ...row, ...((row?._unknowns_ ?? {}) as JsonObject) };
  return Object.fromEntries(
    names.flatMap((name) => (all[name] === undefined ? [] : [[name, all[name]] as const])),
  );
}

function isSame(one: Json | undefined, other: Json | undefined): boolean {
  return JSON.stringify(one) === JSON.stringify(other);
}

/** The fields that a form has changed; null removes one. */
function changesOf(before: JsonObject, after: JsonObject): JsonObject {
  const names = [...new Set([...Object.keys(before), ...Object.keys(after)])];
  return Object.fromEntries(
    names
      .filter((name) => !isSame(before[name], after[name]))
      .map((name) => [name, after[name] ?? null] as const),
  );
}

/** What the server says about the fields, shortly after their last change; it stores nothing. */
function useRowProblems(table: string, id: string | undefined, value: JsonObject) {
  const [problems, setProblems] = useState<readonly Problem[]>([]);
  const input = JSON.stringify({ ...value, table, ...(id !== undefined && { id }) });
  useEffect(() => {
    const abort = new AbortController();
    const check = async (): Promise<void> => {
      const v = parseJson(input) as JsonObject;
      const { signal } = abort;
      const found = await call<{ problems: readonly Problem[] }>('record.check', v, { signal });
      setProblems(found.problems);
    };
    const timer = setTimeout(() => void check().catch(() => undefined), checkAfterMs);
    return () => {
      clearTimeout(timer);
      abort.abort();
    };
  }, [input]);
  return problems;
}

interface RowFormProps {
  readonly shape: TableShape;
  /** The row as it was when the form began. */
  readonly row: ShownRow | undefined;
  readonly onSaved: (seq: number) => void;
}

function RowForm(props: RowFormProps) {
  const { shape, row: loaded } = props;
  const form = useRow(props);
  const { base, value, theirs, changes } = form;
  const latest = useRef(form.save);
  latest.current = form.save;
  useLayoutEffect(() => saveByKey(() => void latest.current()), []);
  const waiting = Object.keys((base?._unknowns_ ?? {}) as JsonObject).flatMap((name) =>
    value[name] === undefined ? [] : [[name, value[name]] as const],
  );
  const checked = base === undefined ? value : { ...Object.fromEntries(waiting), ...changes };
  const problems = useRowProblems(shape.table, base?.id, checked);
  const isChanged = Object.keys(changes).length > 0;
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        void form.save();
      }}
    >
      <RowHead {...{ shape, row: base, changes }} isSaving={form.isSaving} />
      <p class="note" role="status">
        {isChanged ? texts.editor.changed : base !== loaded ? texts.editor.saved : ''}
      </p>
      <Fault error={form.error} />
      {theirs === undefined || base === undefined ? null : (
        <Conflict {...{ shape, theirs, base, value }} onResolved={form.rebase} />
      )}
      <RowFields
        key={form.merges}
        {...{ shape, value, problems }}
        // A new row has a screen of its own once it is stored.
        isDisabled={base === undefined && form.isSaving}
        onChange={form.setValue}
      />
      {base === undefined ? null : <Waiting row={base} />}
    </form>
  );
}

/** The state of the form: the row as it is stored, its values, and a newer version of others. */
function useRow({ shape, row, onSaved }: RowFormProps) {
  const { table } = shape;
  const [base, setBase] = useState(row);
  const [value, setValue] = useState(() => valuesOf(shape, row));
  const [theirs, setTheirs] = useState<ShownRow>();
  const [merges, setMerges] = useState(0);
  const [isSaving, setSaving] = useState(false);
  const [error, setError] = useState<unknown>();
  const [vk] = useState(() => crypto.randomUUID());
  const changes = changesOf(valuesOf(shape, base), value);
  const send = async (): Promise<void> => {
    if (base === undefined) {
      const made = await call<ShownRow>('record.insert', { ...value, table }, { vk });
      goTo(`/tables/${table}/row/${made.id}`);
      return;
    }
    if (Object.keys(changes).length === 0) return;
    const edit = { ...changes, table, id: base.id, if_seq: base.seq };
    const edited = await call<ShownRow>('record.edit', edit);
    setBase(edited);
    setValue((now) => afterSave(now, value, valuesOf(shape, edited)));
    onSaved(edited.seq);
  };
  const save = async (): Promise<void> => {
    if (isSaving) return;
    setSaving(true);
    setError(undefined);
    try {
      await send();
    } catch (failure) {
      const isOutdated = failure instanceof ApiError && failure.code === 'precondition_failed';
      if (isOutdated && base !== undefined) {
        await call<ShownRow>('record.read', { table, id: base.id }).then(setTheirs, setError);
      } else setError(failure);
    }
    setSaving(false);
  };
  const rebase = (merged: JsonObject): void => {
    setBase(theirs);
    setValue(merged);
    setTheirs(undefined);
    setMerges((before) => before + 1);
  };
  return { base, value, setValue, theirs, merges, isSaving, error, changes, save, rebase };
}

function RowHead({
  shape,
  row,
  changes,
  isSaving,
}: Pick<RowFormProps, 'shape' | 'row'> & {
  readonly changes: JsonObject;
  readonly isSaving: boolean;
}) {
  const { table } = shape;
  const [isDeleting, setDeleting] = useState(false);
  const canWrite = shape.may[row === undefined ? 'insert' : 'edit'] !== 'none';
  const isChanged = Object.keys(changes).length > 0;
  return (
    <>
      <ScreenHead
        title={row === undefined ? t.newRow : titleOf(shape, row)}
        back={{ href: linkTo(`/tables/${table}`), name: table }}
        shown={
          row === undefined
            ? ['record.insert', { ...changes, table }]
            : ['record.edit', { ...changes, table, id: row.id, if_seq: row.seq }]
        }
      >
        {row === undefined || !canWrite ? null : (
          <button
            type="button"
            class="quiet-button danger"
            onClick={() => {
              setDeleting(true);
            }}
          >
            {t.remove}
          </button>
        )}
        <button type="submit" class="main-button" disabled={!canWrite || !isChanged || isSaving}>
          {isSaving ? texts.editor.saving : texts.editor.save}
        </button>
      </ScreenHead>
      {isDeleting && row !== undefined ? (
        <Undo
          selection={{ table, id: row.id }}
          operation="record.invalidate"
          onClose={() => {
            setDeleting(false);
          }}
        />
      ) : null}
    </>
  );
}

function RowFields({
  shape,
  value,
  problems,
  isDisabled,
  onChange,
}: {
  shape: TableShape;
  value: JsonObject;
  problems: readonly Problem[];
  isDisabled: boolean;
  onChange: (value: JsonObject) => void;
}) {
  const suggestions = Object.fromEntries(
    Object.entries(shape.references).map(([name, { choices }]) => [
      name,
      choices.map((choice) => valueText(choice.value)),
    ]),
  );
  const known = new Set(Object.keys(fieldsOf(shape)));
  const others = problems.filter(({ field }) => !known.has(field.split('.')[0] ?? ''));
  const titles = referenceTitles(shape);
  return (
    <>
      {others.map(({ field, message }) => (
        <p key={`${field} ${message}`} class="problem" role="status">
          {message}
        </p>
      ))}
      <fieldset class="fields" disabled={isDisabled}>
        <SchemaFields
          longFrom={200}
          {...{ schema: shape.schema, value, problems, suggestions, titles, onChange }}
        />
      </fieldset>
    </>
  );
}

/** The values that wait because the schema does not permit them. */
function Waiting({ row }: { row: ShownRow }) {
  const waiting = Object.entries((row._unknowns_ ?? {}) as JsonObject);
  if (waiting.length === 0) return null;
  return (
    <section>
      <h2>{texts.editor.waiting}</h2>
      <p class="note">{texts.editor.waitingHint}</p>
      <dl class="facts waiting">
        {waiting.map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{valueText(value)}</dd>
          </div>
        ))}
      </dl>
    </section>
  );
}

/** Two people have changed the row: each field that both have changed has to be chosen. */
function Conflict({
  shape,
  base,
  theirs,
  value,
  onResolved,
}: {
  shape: TableShape;
  base: ShownRow;
  theirs: ShownRow;
  value: JsonObject;
  onResolved: (merged: JsonObject) => void;
}) {
  const [before, now] = [valuesOf(shape, base), valuesOf(shape, theirs)];
  const [mine, other] = [changesOf(before, value), changesOf(before, now)];
  const both = Object.keys(mine).filter(
    (name) => Object.hasOwn(other, name) && !isSame(mine[name], other[name]),
  );
  const [chosen, setChosen] = useState<Readonly<Record<string, 'mine' | 'theirs'>>>({});
  const resolve = (): void => {
    const kept = Object.entries(mine).filter(([name]) => chosen[name] !== 'theirs');
    const merged: JsonObject = { ...now, ...Object.fromEntries(kept) };
    onResolved(Object.fromEntries(Object.entries(merged).filter(([, one]) => one !== null)));
  };
  return (
    <section class="panel" role="alert" aria-label={t.conflict}>
      <h2>{t.conflict}</h2>
      <p class="note">{both.length === 0 ? t.noOverlap : t.conflictLead}</p>
      {both.map((name) => (
        <fieldset key={name}>
          <legend class="field-label">{name}</legend>
          <div class="choice-sides">
            {(['mine', 'theirs'] as const).map((side) => (
              <label key={side}>
                <input
                  type="radio"
                  name={`conflict-${name}`}
                  checked={chosen[name] === side}
                  onChange={() => {
                    setChosen({ ...chosen, [name]: side });
                  }}
                />
                <span>
                  <b>{t[side]}</b>
                  <br />
                  {valueText((side === 'mine' ? mine : other)[name]) || t.noValue}
                </span>
              </label>
            ))}
          </div>
        </fieldset>
      ))}
      <p class="actions">
        <button
          type="button"
          class="main-button"
          disabled={both.some((name) => chosen[name] === undefined)}
          onClick={resolve}
        >
          {t.resolve}
        </button>
      </p>
    </section>
  );
}
