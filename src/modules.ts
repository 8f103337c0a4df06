import { operationsOf } from './core/loader.ts';
import type { Module, PartsOf } from './core/module.ts';
import type { OperationDefinition } from './core/operations/operation.ts';
import { access } from './modules/access/module.ts';
import { acme } from './modules/acme/module.ts';
import { assets } from './modules/assets/module.ts';
import { batch } from './modules/batch/module.ts';
import { breadcrumbs } from './modules/breadcrumbs/module.ts';
import { cache } from './modules/cache/module.ts';
import { changes } from './modules/changes/module.ts';
import { cluster } from './modules/cluster/module.ts';
import { compare } from './modules/compare/module.ts';
import { compression } from './modules/compression/module.ts';
import { console } from './modules/console/module.ts';
import { convert } from './modules/convert/module.ts';
import { docs } from './modules/docs/module.ts';
import { drafts } from './modules/drafts/module.ts';
import { files } from './modules/files/module.ts';
import { follow } from './modules/follow/module.ts';
import { headers } from './modules/headers/module.ts';
import { hosts } from './modules/hosts/module.ts';
import { keys } from './modules/keys/module.ts';
import { login } from './modules/login/module.ts';
import { logs } from './modules/logs/module.ts';
import { mcp } from './modules/mcp/module.ts';
import { nodes } from './modules/nodes/module.ts';
import { peers } from './modules/peers/module.ts';
import { proxy } from './modules/proxy/module.ts';
import { rates } from './modules/rates/module.ts';
import { redirects } from './modules/redirects/module.ts';
import { rendering } from './modules/rendering/module.ts';
import { rules } from './modules/rules/module.ts';
import { status } from './modules/status/module.ts';
import { tables } from './modules/tables/module.ts';
import { telemetry } from './modules/telemetry/module.ts';
import { transfer } from './modules/transfer/module.ts';
import { upkeep } from './modules/upkeep/module.ts';
import { visitors } from './modules/visitors/module.ts';
import { visits } from './modules/visits/module.ts';
import { webhooks } from './modules/webhooks/module.ts';

const all = [
  access,
  acme,
  assets,
  batch,
  breadcrumbs,
  cache,
  changes,
  cluster,
  compare,
  compression,
  console,
  convert,
  docs,
  drafts,
  files,
  follow,
  headers,
  hosts,
  keys,
  login,
  logs,
  mcp,
  nodes,
  peers,
  proxy,
  rates,
  redirects,
  rendering,
  rules,
  status,
  tables,
  telemetry,
  transfer,
  upkeep,
  visitors,
  visits,
  webhooks,
] as const;

/** All modules of Waymark, a line each; the only file that names them. */
export const modules: readonly Module[] = all;

/** What the operations of all modules together need. */
export type OperationParts = PartsOf<NonNullable<(typeof all)[number]['operations']>[number]>;

/** Every operation of Waymark (docs/design/operations.md#one-definition). */
export const operations = operationsOf(modules) as readonly OperationDefinition<OperationParts>[];
