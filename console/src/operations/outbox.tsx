import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import { call, may } from '../api/api.ts';
import { texts } from '../texts.ts';
import { useAction, useLoad, type Loaded } from '../components/loading.ts';
import { Busy, CopyCurl, Fault, When } from '../components/ui.tsx';

const t = texts.outbox;
const pageRows = 50;
const rowsMax = 1000;

interface OutboxEntry {
  readonly n: number;
  readonly id: string;
  readonly a: string;
  readonly v: { readonly type?: string; readonly table?: string };
  readonly dtu_txn: string;
  readonly refused?: { readonly code: string; readonly message: string; readonly at: string };
}

interface OutboxList {
  readonly rows: readonly OutboxEntry[];
  readonly waiting: number;
  readonly refused: number;
}

type Verb = 'retry' | 'discard';

interface OutboxChanged {
  readonly count: number;
  readonly next: number | null;
  readonly up_to: number;
}

/** Changes all entries that the centre has refused so far; resolves to their number. */
async function changeRefused(verb: Verb): Promise<number> {
  let [count, after] = [0, 0];
  let range: object | undefined = {};
  while (range !== undefined) {
    const v = { all: true, ...range };
    const changed: OutboxChanged = await call<OutboxChanged>(`outbox.${verb}`, v);
    count += changed.count;
    const { next, up_to } = changed;
    range = typeof next === 'number' && next > after ? { after: next, up_to } : undefined;
    after = next ?? after;
  }
  return count;
}

/** The entries of the outbox of this counter: those that wait, and those that the centre refused. */
export function Outbox({ counts }: { counts: { waiting: number; refused: number } }) {
  const [isRefused, setRefused] = useState(counts.refused > 0);
  const [limit, setLimit] = useState(pageRows);
  const shown = { ...(isRefused && { refused: true }), limit };
  const list = useLoad(
    (signal) => call<OutboxList>('outbox.list', shown, { signal }),
    [isRefused, limit, counts.waiting, counts.refused],
  );
  const { waiting, refused } = list.data ?? counts;
  const choose = (name: string, isChosen: boolean, value: boolean) => (
    <button
      type="button"
      aria-pressed={isChosen}
      onClick={() => {
        setRefused(value);
      }}
    >
      {name}
    </button>
  );
  const more = (isRefused ? refused : waiting) > limit && limit < rowsMax;
  return (
    <section class="panel">
      <div class="panel-head">
        <h2>{t.title}</h2>
        <div class="segments" role="group" aria-label={t.which}>
          {choose(t.waiting(waiting), !isRefused, false)}
          {choose(t.refused(refused), isRefused, true)}
        </div>
        <CopyCurl shown={['outbox.list', shown]} />
      </div>
      <p class="note">{isRefused ? t.refusedLead : t.waitingLead}</p>
      <Entries list={list} isRefused={isRefused} />
      {more ? (
        <button
          type="button"
          onClick={() => {
            setLimit(Math.min(rowsMax, limit + pageRows));
          }}
        >
          {texts.states.more}
        </button>
      ) : null}
    </section>
  );
}

function Entries({ list, isRefused }: { list: Loaded<OutboxList>; isRefused: boolean }) {
  const { error, said, isRunning, run } = useAction(list.reload);
  const changeAll = (verb: Verb): void => {
    if (verb === 'discard' && !confirm(t.discardAllConfirm)) return;
    void run(async () => {
      const count = await changeRefused(verb);
      return verb === 'retry' ? t.retriedAll(count) : t.discardedAll(count);
    });
  };
  const change = (verb: Verb, { n }: OutboxEntry): void => {
    if (verb === 'discard' && !confirm(t.discardConfirm)) return;
    void run(async () => {
      await call(`outbox.${verb}`, { n });
      return verb === 'retry' ? t.retried : t.discarded;
    });
  };
  const rows = list.data?.rows;
  const hasSeveral = isRefused && rows !== undefined && rows.length > 1;
  return (
    <>
      <Fault error={list.error ?? error} onRetry={list.reload} />
      {hasSeveral && may('event') ? (
        <p class="actions">
          <Verbs isRunning={isRunning} text={(verb) => t.all[verb]} onClick={changeAll} />
        </p>
      ) : null}
      {rows === undefined && list.error === undefined ? <Busy /> : null}
      {rows?.length === 0 ? <p>{isRefused ? t.noneRefused : t.noneWaiting}</p> : null}
      <ul class="table-list">
        {rows?.map((entry) => (
          <li key={entry.n}>
            <EntryFacts entry={entry} />
            {isRefused && may('event') ? (
              <span class="actions">
                <Verbs
                  isRunning={isRunning}
                  isQuiet
                  text={(verb) => (
                    <>
                      {t[verb]}
                      <span class="unseen"> {entry.id}</span>
                    </>
                  )}
                  onClick={(verb) => {
                    change(verb, entry);
                  }}
                />
              </span>
            ) : null}
          </li>
        ))}
      </ul>
      {isRefused && !may('event') ? <p class="note">{texts.states.scope('event')}</p> : null}
      <p role="status">{said}</p>
    </>
  );
}

/** The buttons that change refused entries. */
function Verbs({
  isRunning,
  isQuiet = false,
  text,
  onClick,
}: {
  isRunning: boolean;
  isQuiet?: boolean;
  text: (verb: Verb) => ComponentChildren;
  onClick: (verb: Verb) => void;
}) {
  return (['retry', 'discard'] as const).map((verb) => (
    <button
      key={verb}
      type="button"
      class={`${isQuiet ? 'quiet-button' : ''} ${verb === 'discard' ? 'danger' : ''}`.trim()}
      disabled={isRunning}
      onClick={() => {
        onClick(verb);
      }}
    >
      {text(verb)}
    </button>
  ));
}

function EntryFacts({ entry: { a, v, id, dtu_txn, refused } }: { entry: OutboxEntry }) {
  const isRow = a === 'svc1.record.insert';
  return (
    <span>
      <b>{isRow ? t.row(v.table ?? '') : (v.type ?? a)}</b>{' '}
      <span class="quiet">
        <When time={dtu_txn} /> · <code>{id}</code>
      </span>
      {refused === undefined ? null : (
        <span class="problem">
          {refused.message} (<When time={refused.at} />)
        </span>
      )}
    </span>
  );
}
