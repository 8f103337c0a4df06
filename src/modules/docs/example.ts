import { isJsonObject, type Json, type JsonObject } from '../../core/values/json/json.ts';
import type { OperationDescription } from '../../core/operations/operation.ts';
import { shownInput } from './envelope.ts';

/** An input with the required fields, and those that make it useful. */
export function exampleInput(operation: OperationDescription): JsonObject {
  const known = knownInputs[operation.name];
  if (known !== undefined) return known;
  const { required = [], properties = {} } = shownInput(operation);
  const names = required as readonly string[];
  return Object.fromEntries(
    names.map((name) => {
      const schema = (properties as Readonly<Record<string, Json>>)[name];
      return [name, exampleValue(name, isJsonObject(schema) ? schema : {})];
    }),
  );
}

const knownInputs: Readonly<Record<string, JsonObject>> = {
  'svc1.userinterface.insert': { path: '/hello', kind: 'content', content: '<h1>Hello</h1>' },
  'svc1.userinterface.edit': { id: '0198…', content: '<h1>Hello again</h1>' },
  'svc1.userinterface.explain': { url: 'http://localhost:8080/hello' },
  'svc1.webhook.insert': { event: ['sale.completed'], url: 'https://books.example.com/hook' },
  'svc1.event.insert': { type: 'sale.completed', data: { id: 'S-1042' } },
  'svc1.cache.purge': { url: 'https://www.example.com/news' },
  'svc1.key.insert': { name: 'deploy', scopes: ['design', 'read'] },
  'svc1.webhook.edit': { id: '0198…', active: false },
};

function exampleValue(name: string, schema: JsonObject): Json {
  const known: Readonly<Record<string, Json>> = {
    id: '0198…',
    k: 'summer',
    path: '/hello',
    origin: 'http://localhost:8080',
    apikey: 'wmk_…',
  };
  const { examples, enum: values, type } = schema;
  if (Array.isArray(examples)) return (examples as readonly Json[])[0] ?? null;
  if (Array.isArray(values)) return (values as readonly Json[])[0] ?? null;
  if (known[name] !== undefined) return known[name];
  if (type === 'array') return [];
  if (type === 'integer' || type === 'number') return 1;
  return type === 'object' ? {} : '…';
}
