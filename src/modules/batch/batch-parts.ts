import { silentLog } from '../../core/report/log.ts';
import { privatePlace } from '../../core/config/addresses.ts';
import type { Config } from '../../core/config/config.ts';
import type { Store } from '../../core/log/store.ts';
import { newId, now } from '../../core/values/clock.ts';
import { Failure } from '../../core/values/failure.ts';
import { parseCidr } from '../../core/values/network/cidr.ts';
import type { OperationDefinition } from '../../core/operations/operation.ts';
import type { RecordFamily, RecordFields } from '../../core/operations/records/family.ts';
import { editOperation, insertOperation } from '../../core/operations/records/write.ts';
import { builtInEngines } from '../rules/rule.ts';
import { type RuleParts, ruleFamily } from '../rules/operations/rule-family.ts';
import { type RowParts, rowFamily } from '../tables/rows/row-family.ts';
import { type TableParts, tableFamily } from '../tables/operations/table-family.ts';
import { parseJson } from '../../core/values/json/parse.ts';
import { type DeclaredEventType, createEventTypes } from '../webhooks/event-types.ts';
import { type EventParts, insertEvent } from '../webhooks/operations/events.ts';
import { type HookParts, hookFamily } from '../webhooks/operations/hook-family.ts';
import type { Node } from '../webhooks/hook.ts';
import type { ViewConfig } from '../rules/operations/rule-view.ts';
import { batchNames } from './run-batch.ts';
import { storedTables } from '../tables/log/family.ts';

/** The configuration that the operations of a batch need, as data for another thread. */
export interface BatchSettings {
  readonly base: string;
  readonly publicUrl: string | undefined;
  readonly engines: ViewConfig['engines'];
  readonly accessNames: readonly string[];
  readonly configuredTables: readonly string[];
  /** Networks as texts: a parsed one would lose its class on the way. */
  readonly allowPrivate: readonly string[];
  readonly webhookAllowPrivate: readonly string[];
  /** The JSON of the event types of the ini file: a number that is exact is no plain data. */
  readonly eventTypes: string;
  readonly node: Node;
}

/** The settings of a configuration. */
export function batchSettings(config: Config): BatchSettings {
  const { server, engines, access, tables, eventTypes, fetch, webhook, node } = config;
  const texts = (places: readonly { readonly text: string }[]): readonly string[] =>
    places.map(({ text }) => text);
  return {
    base: server.base,
    publicUrl: server.publicUrl,
    engines: engines.map(({ name, script, reference }) => ({ name, script, reference })),
    accessNames: access.map(({ name }) => name),
    configuredTables: tables.map(({ name }) => name),
    eventTypes: JSON.stringify(eventTypes.map(({ name, schema }) => ({ name, schema }))),
    allowPrivate: texts(fetch.allowPrivate),
    webhookAllowPrivate: texts(webhook.allowPrivate),
    node: { name: node.name, role: node.role },
  };
}

type FamilyParts = RuleParts & HookParts & TableParts & RowParts;

const families: readonly RecordFamily<FamilyParts, RecordFields>[] = [
  ruleFamily,
  hookFamily,
  tableFamily,
  rowFamily,
];

/** The operations that a batch can have. */
export const batched: readonly OperationDefinition<FamilyParts & EventParts>[] = [
  ...families.flatMap((family) => [insertOperation(family), editOperation(family)]),
  insertEvent,
].filter(({ name }) => batchNames.some((one) => one === name));

/** The parts of the operations of a batch, in its thread. */
export function createBatchParts(
  store: Store,
  settings: BatchSettings,
  newSecret: () => string,
): FamilyParts & EventParts {
  const { base, publicUrl, engines, accessNames, configuredTables, node } = settings;
  const declared = parseJson(settings.eventTypes) as readonly DeclaredEventType[];
  const places = settings.allowPrivate.flatMap((text) => {
    const read = privatePlace(text);
    return 'value' in read ? [read.value] : [];
  });
  return {
    ...{ store, newId, now, newSecret, node, log: silentLog, queuesEvents: false },
    engines: new Set([...builtInEngines, ...engines.map(({ name }) => name)]),
    accessNames: new Set(accessNames),
    configuredTables: new Set(configuredTables),
    eventTypes: createEventTypes(declared, store),
    allowPrivate: places,
    webhookAllowPrivate: settings.webhookAllowPrivate.flatMap((text) => parseCidr(text) ?? []),
    view: {
      base,
      publicUrl,
      engines,
      schemaOf: (name) => store.of(storedTables).table(name)?.table.schema,
    },
    // The thread that serves has the files of the site, and compares with them afterwards.
    site: {
      hasFile: () => false,
      explain: () => ({
        winner: { source: 'stored', status: null },
        status: null,
        tried: [],
        notes: [],
      }),
    },
    isOwnOrigin: (origin) => origin === publicUrl,
    anonymousWrites: {
      count() {
        throw new Failure('forbidden', 'A batch writes rows with the scope record.write only.', {
          field: 'table',
        });
      },
      discard: () => undefined,
      metrics: () => [],
    },
    revertInThread() {
      throw new TypeError('a batch reverts nothing');
    },
  };
}
