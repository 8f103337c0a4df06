import { call, type Json } from '../api/api.ts';
import { usePages } from '../components/loading.ts';
import { ListFrame } from '../components/list.tsx';
import { CopyCurl, Fact } from '../components/ui.tsx';
import { texts } from '../texts.ts';
import type { DraftedChange } from './draft-record.ts';

const t = texts.drafts;

/** The records that a draft changes, with their versions side by side. */
export function DraftChanges({ id, turn }: { id: string; turn: number }) {
  const pages = usePages<DraftedChange, string>(
    (after, limit) =>
      call('draft.changes', { draft: id, limit, ...(after !== undefined && { after }) }),
    turn,
  );
  return (
    <section>
      <div class="panel-head">
        <h2>{t.changes}</h2>
        <CopyCurl shown={['draft.changes', { draft: id }]} />
      </div>
      <ListFrame pages={pages} empty={t.noChanges} hasMore>
        <ol class="draft-changes">
          {pages.rows.map((change) => (
            <Change
              key={`${change.family} ${change.id}`}
              change={change}
              isOpen={pages.rows.length < 4}
            />
          ))}
        </ol>
      </ListFrame>
    </section>
  );
}

function Change({ change, isOpen }: { change: DraftedChange; isOpen: boolean }) {
  const { becomes, problem, conflict = false } = change;
  return (
    <li>
      <details open={isOpen || conflict || problem !== undefined}>
        <summary>
          <ChangeName change={change} /> <span class="tag">{t.becomes[becomes]}</span>
          {conflict ? <span class="tag bad">{t.conflict}</span> : null}{' '}
          <span class="quiet">{isFile(change) ? '' : Object.keys(change.fields).join(', ')}</span>
        </summary>
        {problem === undefined ? null : <p class="problem">{problem}</p>}
        <Versions change={change} />
      </details>
    </li>
  );
}

/** Whether a row is that of an asset: one that is added or removed has the name of its table. */
function isFile({
  family,
  fields,
}: Pick<DraftedChange, 'family'> & {
  readonly fields: Readonly<Record<string, object>>;
}): boolean {
  return family === 'record' && Object.values(fields.table ?? {}).includes('asset');
}

/** What a change is about: the path of a page, or the kind and name of another record. */
export function ChangeName({
  change: { family, id, label, fields = {} },
}: {
  change: Pick<DraftedChange, 'family' | 'id' | 'label'> & {
    readonly fields?: Readonly<Record<string, object>>;
  };
}) {
  return (
    <b>
      {family === 'userinterface'
        ? ''
        : `${isFile({ family, fields }) ? t.file : t.families[family]} `}
      {label ?? id}
    </b>
  );
}

/** Each field that differs: live when the draft began, live now, and in the draft. */
export function Versions({
  change: { fields, becomes, conflict = false },
}: {
  change: DraftedChange;
}) {
  const all = Object.entries(fields);
  const isNew = becomes === 'inserted' && !conflict;
  if (isNew && all.every(([, { base }]) => base === undefined)) {
    return (
      <dl class="facts draft-fields">
        {all.map(([name, { draft }]) => (
          <Fact key={name} name={name}>
            <pre>{textOf(draft)}</pre>
          </Fact>
        ))}
      </dl>
    );
  }
  return (
    <>
      {all.map(([name, { base, live, draft }]) => {
        const then = base === undefined ? live : base;
        return (
          <FieldVersions
            key={name}
            name={name}
            then={{ name: t.then, value: then }}
            now={live}
            next={{ name: t.drafted, value: draft }}
          />
        );
      })}
    </>
  );
}

interface NamedVersion {
  readonly name: string;
  readonly value: Json;
}

/** Three versions of a field: of then, live now, and what would be. */
export function FieldVersions({
  name,
  then,
  now,
  next,
}: {
  name: string;
  then: NamedVersion;
  now: Json;
  next: NamedVersion;
}) {
  return (
    <figure class="diff">
      <figcaption>{name}</figcaption>
      <div class="diff-sides">
        <Side name={then.name} value={then.value} />
        <Side name={t.now} value={now} others={then.value} sign="later" />
        <Side name={next.name} value={next.value} others={now} sign="added" />
      </div>
    </figure>
  );
}

function textOf(value: Json): string {
  if (value === null) return '';
  return typeof value === 'string' ? value : JSON.stringify(value, undefined, 2);
}

/** One version of a field; lines that the version before it lacks are marked, also by a sign. */
function Side({
  name,
  value,
  others,
  sign,
}: {
  name: string;
  value: Json;
  others?: Json;
  sign?: 'added' | 'later';
}) {
  const text = textOf(value);
  const known = new Set(textOf(others ?? null).split('\n'));
  return (
    <div>
      <span class="quiet">{name}</span>
      <pre class="side" role="group" aria-label={name} tabIndex={0}>
        {text === '' ? <span class="quiet">{t.nothing}</span> : null}
        {text.split('\n').map((line, at) => {
          const isNew = sign !== undefined && text !== '' && !known.has(line);
          return (
            <span key={`${at} ${line}`} class={isNew ? sign : ''}>
              {isNew ? '+ ' : ''}
              {line}
              {'\n'}
            </span>
          );
        })}
      </pre>
    </div>
  );
}
