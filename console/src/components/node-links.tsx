import { texts } from '../texts.ts';
import { Fact, When } from './ui.tsx';

const t = texts.nodes;

/** The node that answers, and its connections to a centre and a cluster; null for none. */
export interface NodeStatus {
  readonly role: string;
  readonly name: string;
  readonly central: {
    readonly url: string;
    readonly connected: boolean;
    readonly since?: string;
    readonly problem?: string;
    readonly outbox: { readonly waiting: number; readonly refused: number };
  } | null;
  readonly cluster: {
    readonly connected: boolean;
    readonly problem?: string;
    readonly position: number;
  } | null;
}

/** How a node is connected to its centre and its cluster. */
export function NodeLinks({ node: { central, cluster } }: { node: NodeStatus }) {
  return (
    <>
      {central === null ? null : (
        <Fact name={t.centre}>
          {central.url}: <Link {...central} />
        </Fact>
      )}
      {cluster === null ? null : (
        <Fact name={t.cluster}>
          {cluster.connected ? t.position(cluster.position) : <Link {...cluster} />}
        </Fact>
      )}
    </>
  );
}

interface LinkState {
  readonly connected: boolean;
  readonly since?: string;
  readonly problem?: string;
}

function Link({ connected, since, problem }: LinkState) {
  return (
    <>
      <span class={connected ? 'good-text' : 'bad-text'}>
        {connected ? t.connected : t.notConnected}
      </span>
      {since === undefined ? null : (
        <>
          {' '}
          {t.since} <When time={since} />
        </>
      )}
      {problem === undefined ? null : <span class="problem">{problem}</span>}
    </>
  );
}
