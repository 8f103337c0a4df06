import { natsServer } from '../../core/config/addresses.ts';
import { checkFile } from '../../core/config/files.ts';
import { type FieldsOf, fileKey, list, optional, single } from '../../core/config/ini-key.ts';
import {
  iniSection,
  type ParsedIni,
  type ParsedSection,
  problemOf,
} from '../../core/config/ini-section.ts';
import { readCaCertificates } from '../../core/config/key-pair.ts';
import { packageProblems } from '../../core/config/needed-package.ts';
import type { LineProblem } from '../../core/config/problem.ts';
import { checkPair } from '../../core/config/references.ts';
import { makeSecretsKey, readSecretsKeys } from '../../core/config/secrets-keys.ts';
import { anyText, plainName } from '../../core/config/values.ts';
import { acmeHostSection, acmeSection } from '../acme/section.ts';
import { nodeSection } from '../nodes/section.ts';

declare module '../../core/config/config.ts' {
  interface Config {
    /** Without servers, this machine is no node of a cluster. */
    readonly cluster: FieldsOf<typeof clusterKeys>;
  }
}

const clusterKeys = {
  servers: list(natsServer, '', {
    about: 'The servers of NATS JetStream that have the log of the cluster, version 2.12 or newer.',
    example: 'nats://10.0.0.1:4222, nats://10.0.0.2:4222, nats://10.0.0.3:4222',
    restart: true,
  }),
  name: single(plainName, 'waymark', {
    about: 'The name of the stream that the nodes of the cluster share.',
    example: 'shop',
    restart: true,
  }),
  credentials: fileKey({
    field: 'credentialsFile',
    holds: 'the credentials of the cluster',
    checkPath: checkFile,
    about: "A file with the user's credentials (`.creds`), or with the seed of its nkey.",
    example: '/etc/waymark/nats.creds',
    restart: true,
  }),
  user: optional(anyText, {
    about: 'The name of the user, instead of `credentials`.',
    example: 'waymark',
    restart: true,
    beside: { password_file: '/etc/waymark/nats.password' },
  }),
  password_file: fileKey({
    holds: 'the credentials of the cluster',
    checkPath: checkFile,
    about: 'A file with the password of `user`.',
    example: '/etc/waymark/nats.password',
    restart: true,
    beside: { user: 'waymark' },
  }),
  ca: fileKey({
    checkPath: readCaCertificates,
    field: 'caFile',
    about:
      'A PEM file with the certificate authorities of the servers. With it, connections use TLS.',
    example: '/etc/waymark/nats-ca.pem',
    restart: true,
  }),
  cert: fileKey({
    field: 'certFile',
    about: 'A PEM file with the certificate that this machine shows to the servers.',
    example: '/etc/waymark/node.pem',
    restart: true,
    beside: { key: '/etc/waymark/node.key' },
  }),
  key: fileKey({
    field: 'keyFile',
    holds: 'a private key',
    about: 'A PEM file with its private key.',
    example: '/etc/waymark/node.key',
    restart: true,
    beside: { cert: '/etc/waymark/node.pem' },
  }),
  secrets_key_file: fileKey({
    checkPath: readSecretsKeys,
    holds: 'the secrets key of the cluster',
    about:
      'A file with the keys that encrypt what the machines share in secret, such as the private ' +
      'keys of certificates: 32 bytes in base64, one key a line. The first encrypts, all decrypt.',
    example: '/etc/waymark/cluster.key',
    restart: true,
  }),
};

/** `[cluster]`: the log that several machines share. */
export const clusterSection = iniSection({
  header: 'cluster',
  keys: clusterKeys,
  place: 'cluster',
  since: '0.2',
  example: {
    lines: { servers: '"nats://10.0.0.1:4222, nats://10.0.0.2:4222, nats://10.0.0.3:4222"' },
  },
  check: ([cluster], ini) => (cluster?.isValid === true ? wrongCluster(cluster, ini) : []),
  async read(cluster, around) {
    const files = await checkPair(cluster, around);
    if (cluster.values.servers.length === 0) return files;
    const load = () => import('@nats-io/transport-node');
    const { problems } = await packageProblems(cluster, 'servers', load);
    return { ...files, problems: [...(files.problems ?? []), ...problems] };
  },
});

function wrongCluster(
  cluster: ParsedSection<typeof clusterKeys>,
  ini: ParsedIni,
): readonly LineProblem[] {
  const { values } = cluster;
  const at = (key: string, message: string) => [problemOf(cluster, key, message)];
  if (values.servers.length === 0) {
    // `check` prints each key, also without a value.
    const others = ['credentials', 'user', 'password_file', 'ca', 'cert', 'key'] as const;
    const first = [...others, 'secrets_key_file' as const].find((key) => values[key] !== undefined);
    return first === undefined ? [] : at(first, `\`${first}\` needs \`servers\`, too`);
  }
  if (ini.one(nodeSection).values.central !== undefined) {
    return at('servers', 'a node of a cluster has the log itself: remove `central` of [node]');
  }
  for (const [one, other] of [
    ['user', 'password_file'],
    ['cert', 'key'],
  ] as const) {
    if ((values[one] === undefined) === (values[other] === undefined)) continue;
    const [present, missing] = values[one] === undefined ? [other, one] : [one, other];
    return at(present, `\`${present}\` needs \`${missing}\`, too: add it to [cluster]`);
  }
  const tls = ini.one(acmeSection);
  const onDemand = tls.values.acme_on_demand === undefined ? undefined : tls;
  const managed = ini.all(acmeHostSection).find((host) => host.values.acme) ?? onDemand;
  if (managed !== undefined && values.secrets_key_file === undefined) {
    const why = 'the machines of a cluster share certificates with their private keys';
    const key = managed === tls ? 'acme_on_demand' : 'acme';
    const advice = `\`${key}\` needs \`secrets_key_file\` in [cluster], whose key encrypts them`;
    return [problemOf(managed, key, `${why}, so ${advice}: ${makeSecretsKey}`)];
  }
  return values.credentials !== undefined && values.user !== undefined
    ? at('user', 'set either `credentials` or `user`, not both')
    : [];
}
