import { service, type JsonObject } from './api.ts';

interface OpenApi {
  readonly components: { readonly schemas: Readonly<Record<string, JsonObject>> };
}

let loaded: Promise<OpenApi> | undefined;

/** A schema of the OpenAPI document of this server, with its references replaced. */
export async function schemaNamed(name: string): Promise<JsonObject> {
  loaded ??= fetch(new URL('openapi.json', service)).then(
    async (response) => (await response.json()) as OpenApi,
  );
  const { schemas } = (await loaded).components;
  return resolved(schemas[name] ?? {}, schemas) as JsonObject;
}

const prefix = '#/components/schemas/';

function resolved(value: unknown, schemas: OpenApi['components']['schemas']): unknown {
  if (Array.isArray(value)) return value.map((one) => resolved(one, schemas));
  if (typeof value !== 'object' || value === null) return value;
  const { $ref } = value as { readonly $ref?: unknown };
  if (typeof $ref === 'string' && $ref.startsWith(prefix))
    return resolved(schemas[$ref.slice(prefix.length)] ?? {}, schemas);
  return Object.fromEntries(
    Object.entries(value).map(([name, one]) => [name, resolved(one, schemas)]),
  );
}
