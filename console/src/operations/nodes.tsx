import { call } from '../api/api.ts';
import { useLive } from '../api/live.ts';
import { texts } from '../texts.ts';
import { useLoad } from '../components/loading.ts';
import { Busy, Fact, Fault, ScreenHead, When } from '../components/ui.tsx';
import { NodeLinks, type NodeStatus } from '../components/node-links.tsx';
import { Outbox } from './outbox.tsx';

const t = texts.nodes;

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
  /** What is wrong with it, and what to do. */
  readonly problem?: string;
  /** The machine of the cluster that a follower reports to. */
  readonly via?: string;
  /** Of a machine of the cluster. */
  readonly cluster?: { readonly position: number; readonly tasks: readonly string[] };
}

/**
 * This node with its outbox, the machines of its cluster, and the nodes that follow it, whose
 * consoles have their outboxes.
 */
export function Nodes() {
  const live = useLive(['nodes']);
  const nodes = useLoad(
    (signal) => call<{ rows: readonly NodeRow[]; seq: number }>('node.list', {}, { signal }),
    [],
    live,
  );
  const status = useLoad(
    (signal) => call<{ node: NodeStatus }>('server.status', {}, { signal }),
    [],
    live,
  );
  const own = status.data?.node;
  const rows = nodes.data?.rows;
  return (
    <>
      <ScreenHead title={t.title} lead={t.lead} shown={['node.list', {}]} />
      <Fault error={nodes.error ?? status.error} onRetry={nodes.reload} />
      {rows === undefined && nodes.error === undefined ? <Busy /> : null}
      {own === undefined ? null : <OwnNode node={own} seq={nodes.data?.seq} />}
      {own?.central == null || own.role !== 'counter' ? null : (
        <Outbox counts={own.central.outbox} />
      )}
      {rows?.length === 0 && own?.central === null ? (
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
              {node.cluster === undefined ? null : <span class="tag">{t.member}</span>}
              {node.silent === true ? <span class="tag bad">{t.silent}</span> : null}
            </h2>
            {node.problem === undefined ? null : <p class="fault soft">{node.problem}</p>}
            <NodeFacts node={node} />
          </li>
        ))}
      </ul>
    </>
  );
}

function OutboxFact({ counts: { waiting, refused } }: { counts: NodeRow['outbox'] }) {
  return (
    <Fact name={t.outbox}>
      {t.waiting(waiting)}
      {refused === 0 ? null : (
        <>
          <span class="bad-text">, {t.refusedCount(refused)}</span>
          <span class="note refused-hint">{t.refusedHint}</span>
        </>
      )}
    </Fact>
  );
}

function OwnNode({ node, seq }: { node: NodeStatus; seq: number | undefined }) {
  return (
    <section class="panel">
      <h2>
        {t.own}: {node.name} <span class="tag">{node.role}</span>
      </h2>
      <dl class="facts">
        {seq === undefined ? null : <Fact name={t.seq}>{seq.toLocaleString()}</Fact>}
        <NodeLinks node={node} />
      </dl>
    </section>
  );
}

function NodeFacts({ node }: { node: NodeRow }) {
  const { place, lag, outbox, version, via, cluster, clock_offset_ms: offset } = node;
  return (
    <dl class="facts">
      <Fact name={t.contact}>
        <When time={node.last_contact} />
      </Fact>
      {place === undefined ? null : <Fact name={t.place}>{place}</Fact>}
      <Fact name={t.lag}>
        {lag === 0 ? <span class="good-text">{t.noLag}</span> : t.lagOf(lag)}
      </Fact>
      {cluster === undefined ? null : (
        <>
          <Fact name={t.applied}>{cluster.position.toLocaleString()}</Fact>
          <Fact name={t.tasks}>{cluster.tasks.map(t.task).join(', ') || t.noTask}</Fact>
        </>
      )}
      {via === undefined ? null : <Fact name={t.via}>{via}</Fact>}
      {cluster === undefined ? <OutboxFact counts={outbox} /> : null}
      <Fact name={t.clock}>
        <span class={Math.abs(offset) > 5000 ? 'bad-text' : ''}>{offset} ms</span>
      </Fact>
      <Fact name={t.version}>{version}</Fact>
    </dl>
  );
}
