import { pageFields } from '../../core/http/content/page.ts';
import { preferredType } from '../../core/http/representation/negotiation.ts';
import { type ServicePath, methodReply } from '../../core/operations/http/service-path.ts';
import { consoleFile, redirectToConsole } from './console.ts';

/** The files of the console, and the way to them. */
export const consolePath: ServicePath = (serving, { path, exchange, incoming }) => {
  const { config, consoleFiles, ownFiles } = serving;
  if (path === '/console') return methodReply(exchange) ?? redirectToConsole(config);
  const { origin } = incoming.target;
  const found = consoleFile(config, consoleFiles, { path, origin });
  if (found === undefined) return undefined;
  const { file, fields } = found;
  const asked = { method: exchange.head.method, fields: incoming.fields };
  return methodReply(exchange) ?? ownFiles.respond(file, { fields, source: 'svc1' }, asked);
};

const ownFields = [
  ...['Cache-Control', 'public, no-cache', ...pageFields],
  // Generic pages on other origins load the script from here.
  ...['Access-Control-Allow-Origin', '*'],
];
const negotiatedFields = [...ownFields, 'Vary', 'Accept'];

/** The scripts and engines of generic pages, and the indexes. */
export const publicPath: ServicePath = (serving, { path, exchange, incoming }) => {
  const { publicFiles, indexPages, ownFiles } = serving;
  const { accept } = incoming.fields;
  const name = /^\/engines\/([^/]+)$/.exec(path)?.[1];
  const reference = name === undefined ? undefined : publicFiles.engineReference(name);
  const schemaType = 'application/schema+json';
  const wantsSchema = preferredType(accept, ['text/html', schemaType]) === schemaType;
  const index = indexPages.file(path, accept);
  const file =
    index ?? publicFiles.file(path) ?? (wantsSchema ? reference?.schema : reference?.page);
  if (file === undefined) return undefined;
  const varies = index !== undefined || reference !== undefined;
  const fields = varies ? negotiatedFields : ownFields;
  const asked = { method: exchange.head.method, fields: incoming.fields };
  return methodReply(exchange) ?? ownFiles.respond(file, { fields, source: 'svc1' }, asked);
};
