// Writes src/cli/client/operations.ts: the types of all operations, from the operations table. `npm run client` runs it, and
// so do `npm ci`, `npm run lint` and `npm run build`, because the file is not in Git.
import { rename, writeFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { shownInput } from '../../src/modules/docs/envelope.ts';
import { operations } from '../../src/modules.ts';
import { isJsonObject, type Json, type JsonObject } from '../../src/core/values/json/json.ts';

/** Generates the text of operations.ts. */
export function operationTypes(): string {
  const named = new Map<string, string>();
  const typed = operations.filter(({ replies }) => replies === undefined);
  const members = (streams: boolean): string =>
    typed
      .filter(({ effect }) => (effect === 'streams') === streams)
      .map((one) => {
        const packet =
          one.packets === undefined ? '' : ` packet: ${typeOf(one.packets.data, named)};`;
        const input = typeOf(shownInput(one), named);
        const output = typeOf(one.output, named);
        const name = one.name.replace(/^svc1\./, '');
        return `  /** ${one.summary} */\n  '${name}': { input: ${input}; output: ${output};${packet} };`;
      })
      .join('\n');
  const [calls, streams] = [members(false), members(true)];
  const types = [...named].map(
    ([name, text]) => `/** The schema ${name} of the API. */\ntype ${name} = ${text};`,
  );
  return `// Generated from the operations table by \`npm run client\`: do not edit.
import type { Json } from '../../core/values/json/json.ts';

${types.join('\n\n')}

/** The operations that answer once, by their names without \`svc1.\`. */
export interface Operations {
${calls}
}

/** The operations that stream, over the websocket only. */
export interface Streams {
${streams}
}
`;
}

function typeOf(schema: Json | undefined, named: Map<string, string>): string {
  if (!isJsonObject(schema)) return 'Json';
  const { title } = schema;
  if (typeof title !== 'string' || !/^[A-Z][A-Za-z]+$/.test(title)) return bareType(schema, named);
  if (!named.has(title)) {
    named.set(title, '');
    named.set(title, bareType(schema, named));
  }
  return title;
}

function bareType(schema: JsonObject, named: Map<string, string>): string {
  const { type, enum: values, const: constant, oneOf, anyOf, items, nullable } = schema;
  const orNull = nullable === true ? ' | null' : '';
  if (constant !== undefined) return JSON.stringify(constant);
  if (Array.isArray(values)) return values.map((one) => JSON.stringify(one)).join(' | ');
  const choices = oneOf ?? anyOf;
  if (Array.isArray(choices) && type === undefined) {
    return choices.map((one) => `(${typeOf(one as Json, named)})`).join(' | ');
  }
  if (Array.isArray(type)) {
    return type
      .map((one) => bareType({ ...schema, type: one as Json, nullable: false }, named))
      .join(' | ');
  }
  const simple = {
    string: 'string',
    integer: 'number',
    number: 'number',
    boolean: 'boolean',
    null: 'null',
  };
  if (typeof type === 'string' && type in simple)
    return simple[type as keyof typeof simple] + orNull;
  if (type === 'array') return `readonly (${typeOf(items, named)})[]${orNull}`;
  return type === 'object' || schema.properties !== undefined
    ? objectType(schema, named) + orNull
    : 'Json';
}

function objectType(
  { properties, required = [], additionalProperties }: JsonObject,
  named: Map<string, string>,
): string {
  const entries = isJsonObject(properties) ? Object.entries(properties) : [];
  if (entries.length === 0) {
    const value = isJsonObject(additionalProperties) ? typeOf(additionalProperties, named) : 'Json';
    return `{ readonly [name: string]: ${value} }`;
  }
  const lines = entries.map(([name, schema]) => {
    const description = isJsonObject(schema) ? schema.description : undefined;
    const comment =
      typeof description === 'string' ? `/** ${description.replaceAll('*/', '* /')} */\n` : '';
    const mark = (required as readonly Json[]).includes(name) ? '' : '?';
    const key = /^[A-Za-z_$][\w$]*$/.test(name) ? name : JSON.stringify(name);
    return `${comment}readonly ${key}${mark}: ${typeOf(schema, named)};`;
  });
  return `{\n${lines.join('\n')}\n}`;
}

if (import.meta.main) {
  const file = fileURLToPath(new URL('../../src/cli/client/operations.ts', import.meta.url));
  // Whole or not at all, because a type check may read it meanwhile.
  const draft = `${file}.${process.pid}`;
  await writeFile(draft, operationTypes());
  await rename(draft, file);
}
