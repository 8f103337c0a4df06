import { useState } from 'preact/hooks';
import { call, may, type JsonObject } from '../api.ts';
import { useInterval } from '../follow.ts';
import { texts } from '../texts.ts';
import { Busy, CopyCurl, Fault, ScreenHead, useLoad, When } from '../ui.tsx';

const t = texts.nodes;
const refreshMs = 5000;

interface NodeRow {
  readonly name: string;
  readonly role: string;
  readonly place?: string;
  readonly version: string;
  readonly seq: number;
  readonly lag: number;
  readonly outbox: { readonly waiting: number; readonly refused: number };
  readonly clock_offset_ms: number;
  readonly last_contact: string;
  readonly silent?: boolean;
}

interface NodeStatus {
  readonly role: string;
  readonly name: string;
  readonly central: {
    readonly url: string;
    readonly connected: boolean;
    readonly since?: string;
    readonly problem?: string;
    readonly outbox: { readonly waiting: number; readonly refused: number };
  } | null;
}

/** The nodes that follow this one, its own centre, and its outbox. */
export function Nodes() {
  const nodes = useLoad(
    (signal) => call<{ rows: readonly NodeRow[]; seq: number }>('node.list', {}, { signal }),
    [],
  );
  const status = useLoad(
    (signal) => call<{ node: NodeStatus }>('server.status', {}, { signal }),
    [],
  );
  useInterval(() => {
    nodes.reload();
    status.reload();
  }, refreshMs);
  const own = status.data?.node;
  const rows = nodes.data?.rows;
  return (
    <>
      <ScreenHead title={t.title} lead={t.lead} shown={['node.list', {}]} />
      <Fault error={nodes.error ?? status.error} onRetry={nodes.reload} />
      {rows === undefined && nodes.error === undefined ? <Busy /> : null}
      {own === undefined ? null : <OwnNode node={own} seq={nodes.data?.seq} />}
      {rows?.length === 0 && (own?.central ?? null) === null ? (
        <div class="empty">
          <h2>{t.empty}</h2>
          <p>{t.emptyHint}</p>
        </div>
      ) : null}
      <ul class="cards">
        {rows?.map((node) => (
          <li key={node.name} class="node-card">
            <h2>
              {node.name} <span class="tag">{node.role}</span>
              {node.silent === true ? <span class="tag bad">{t.silent}</span> : null}
            </h2>
            <NodeFacts node={node} />
          </li>
        ))}
      </ul>
      {(own?.central ?? null) === null ? null : <Outbox />}
    </>
  );
}

function OwnNode({ node, seq }: { node: NodeStatus; seq: number | undefined }) {
  const { central } = node;
  return (
    <section class="panel">
      <h2>
        {t.own}: {node.name} <span class="tag">{node.role}</span>
      </h2>
      <dl class="facts">
        {central === null ? null : (
          <Fact name={t.central}>
            {central.url}{' '}
            <span class={central.connected ? 'tag good' : 'tag bad'}>
              {central.connected ? t.connected : t.disconnected}
            </span>
            {central.since === undefined ? null : <When time={central.since} />}
            {central.problem === undefined ? null : <span class="problem">{central.problem}</span>}
          </Fact>
        )}
        {seq === undefined ? null : <Fact name={t.seq}>{seq.toLocaleString()}</Fact>}
      </dl>
    </section>
  );
}

function NodeFacts({ node }: { node: NodeRow }) {
  const { place, lag, outbox, version, clock_offset_ms: offset } = node;
  return (
    <dl class="facts">
      <Fact name={t.contact}>
        <When time={node.last_contact} />
      </Fact>
      {place === undefined ? null : <Fact name={t.place}>{place}</Fact>}
      <Fact name={t.lag}>
        {lag === 0 ? <span class="good-text">{t.noLag}</span> : t.lagOf(lag)}
      </Fact>
      <Fact name={t.outbox}>
        {t.waiting(outbox.waiting)}
        {outbox.refused === 0 ? null : (
          <span class="bad-text">, {t.refusedCount(outbox.refused)}</span>
        )}
      </Fact>
      <Fact name={t.clock}>
        <span class={Math.abs(offset) > 5000 ? 'bad-text' : ''}>{offset} ms</span>
      </Fact>
      <Fact name={t.version}>{version}</Fact>
    </dl>
  );
}

interface OutboxEntry {
  readonly n: number;
  readonly id: string;
  readonly a: string;
  readonly v: JsonObject;
  readonly dtu_txn: string;
  readonly refused?: { readonly code: string; readonly message: string; readonly at: string };
}

interface OutboxPage {
  readonly rows: readonly OutboxEntry[];
  readonly waiting: number;
  readonly refused: number;
}

function Outbox() {
  const refused = useLoad(
    (signal) => call<OutboxPage>('outbox.list', { refused: true }, { signal }),
    [],
  );
  const waiting = useLoad((signal) => call<OutboxPage>('outbox.list', {}, { signal }), []);
  const [error, setError] = useState<unknown>();
  const reload = (): void => {
    refused.reload();
    waiting.reload();
  };
  useInterval(reload, refreshMs);
  const change = async (verb: 'retry' | 'discard', n: number): Promise<void> => {
    if (verb === 'discard' && !confirm(t.discardConfirm)) return;
    setError(undefined);
    try {
      await call(`outbox.${verb}`, { n });
    } catch (failure) {
      setError(failure);
    }
    reload();
  };
  const rows = [...(refused.data?.rows ?? []), ...(waiting.data?.rows ?? [])];
  return (
    <section>
      <div class="panel-head">
        <h2>{t.outbox}</h2>
        <span class="note">
          {t.waiting(refused.data?.waiting ?? 0)}, {t.refusedCount(refused.data?.refused ?? 0)}
        </span>
        <CopyCurl shown={['outbox.list', { refused: true }]} />
      </div>
      <Fault error={error ?? refused.error ?? waiting.error} onRetry={reload} />
      {rows.length === 0 ? <p class="note">{t.outboxEmpty}</p> : null}
      <ul class="table-list">
        {rows.map((entry) => (
          <li key={entry.n}>
            <span>
              <b>{entry.a.replace('svc1.', '')}</b> {shownInput(entry.v)}
              <br />
              <span class="quiet">
                {entry.n} · <When time={entry.dtu_txn} /> · {entry.id}
              </span>
              {entry.refused === undefined ? null : (
                <span class="problem">
                  {entry.refused.code}: {entry.refused.message}
                </span>
              )}
            </span>
            {entry.refused === undefined || !may('event') ? null : (
              <span class="actions">
                {(['retry', 'discard'] as const).map((verb) => (
                  <button
                    key={verb}
                    type="button"
                    class="quiet-button"
                    onClick={() => void change(verb, entry.n)}
                  >
                    {t[verb]}
                    <span class="unseen"> {entry.n}</span>
                  </button>
                ))}
              </span>
            )}
          </li>
        ))}
      </ul>
    </section>
  );
}

function shownInput(v: JsonObject): string {
  const { type, table } = v;
  return typeof type === 'string' ? type : typeof table === 'string' ? table : '';
}

function Fact({ name, children }: { name: string; children: preact.ComponentChildren }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}
