import { temporaryFolder, type Cleaning } from '../folder.ts';
import { postOperation } from '../harness.ts';
import { portOf, startMember, startProxies, type Member } from './member.ts';

/** The members of a run: a centre, a replica and two counters, one of which follows the replica. */
export interface Shop {
  readonly centre: Member;
  readonly counters: readonly Member[];
  readonly members: readonly Member[];
  readonly apikey: string;
}

const plan = [
  { name: 'copy', kind: 'replica', follows: 'centre', workers: 1 },
  { name: 'shop-1', kind: 'counter', follows: 'centre', workers: 2 },
  { name: 'shop-2', kind: 'counter', follows: 'copy', workers: 1 },
] as const;

/** Starts the members; the centre has the table `orders`. */
export async function startShop(context: Cleaning): Promise<Shop> {
  const parent = await temporaryFolder(context);
  const centre = await startMember(context, parent, {
    ...{ name: 'centre', kind: 'centre', ini: '[node]\nrole = central\n', isFirst: true },
  });
  const { apikey } = centre;
  const call = (name: string, v: object) => postOperation(centre.url, name, v, { apikey });
  const schema = { type: 'object', properties: { no: { type: 'string' } } };
  await call('svc1.table.insert', { name: 'orders', schema, key: 'no' });
  const members = new Map<string, Member>([['centre', centre]]);
  for (const { name, kind, follows, workers } of plan) {
    const scopes = ['follow', 'event', 'record.write'];
    const { data } = await call('svc1.key.insert', { name, scopes, node: name });
    const { key } = data as { key: string };
    const target = portOf(members.get(follows)?.url ?? '');
    const proxies = await startProxies(context, [target]);
    const central = `http://127.0.0.1:${proxies[0]?.port}`;
    const ini = `[node]\nrole = ${kind}\nname = ${name}\ncentral = ${central}\nkey_file = k\n`;
    const member = await startMember(context, parent, { name, kind, workers, ini, key, proxies });
    members.set(name, member);
  }
  const all = [...members.values()];
  const counters = all.filter(({ kind }) => kind === 'counter');
  return { centre, counters, members: all, apikey };
}
