import { createHmac, timingSafeEqual } from 'node:crypto';
import { type ToolUse, visibleText } from '../../core/log/change.ts';
import type { Reads } from '../../core/log/store.ts';
import { currentKey, keyHash } from '../../core/operations/keys/authenticate.ts';
import type { Call } from '../../core/operations/operation.ts';
import type { ApiKey } from '../../core/values/key.ts';

/** Characters of the header field that names the tool of a change. */
const toolUseCharactersMax = 2_048;

/** The header fields in which a node passes the tool of a write on to its centre, and signs it. */
const [toolField, proofField] = ['waymark-via', 'waymark-via-proof'];

/** A write of a caller, by its operation and the id of its key. */
interface PassedWrite {
  readonly name: string;
  readonly keyId: string | undefined;
}

/**
 * The header fields with which a node passes the tool of a write on, signed with its own key: the
 * history names a tool on the word of a server, never on that of a caller. No fields if the log has
 * no such key (yet): the history then names no tool.
 */
export function passedToolFields(
  keys: Pick<Reads, 'keyByHash'>,
  tool: ToolUse,
  { apikey, ...write }: PassedWrite & { readonly apikey: string },
): Readonly<Record<string, string>> {
  const node = keys.keyByHash(keyHash(apikey));
  if (node === undefined) return {};
  const text = toolText(tool);
  return { [toolField]: text, [proofField]: `${node.id} ${proofOf(node, text, write)}` };
}

/** The tool of a call that a node has passed on; undefined without the signature of one. */
export function passedTool(
  { store, now }: { readonly store: Pick<Reads, 'key'>; readonly now: () => number },
  name: string,
  { fields, caller: { keyId } }: Pick<Call, 'fields' | 'caller'>,
): ToolUse | undefined {
  const { [toolField]: text, [proofField]: proof } = fields;
  if (text === undefined || proof === undefined || keyId === undefined) return undefined;
  const [nodeKeyId = '', sent = ''] = proof.split(' ');
  const node = currentKey(store, nodeKeyId, now());
  if (node?.node === undefined || !node.scopes.includes('follow')) return undefined;
  const due = Buffer.from(proofOf(node, text, { name, keyId }));
  const given = Buffer.from(sent);
  const isSigned = given.length === due.length && timingSafeEqual(given, due);
  return isSigned ? toolFrom(text) : undefined;
}

/** Both servers have the hash of the key, and nobody else who may not follow the log. */
function proofOf({ hash }: Pick<ApiKey, 'hash'>, text: string, write: PassedWrite): string {
  const signed = JSON.stringify([write.name, write.keyId, text]);
  return createHmac('sha256', hash).update(signed).digest('base64url');
}

/** A tool as a field: client, tool and conversation, percent-encoded. */
function toolText({ client, tool, conversation }: ToolUse): string {
  const parts = conversation === undefined ? [client, tool] : [client, tool, conversation];
  return parts.map(encodeURIComponent).join(' ');
}

function toolFrom(text: string): ToolUse | undefined {
  if (text.length > toolUseCharactersMax) return undefined;
  const [client = '', tool = '', conversation] = text.split(' ').map(decoded);
  if (client === '' || tool === '') return undefined;
  return { client, tool, ...(conversation !== undefined && { conversation }) };
}

/** A percent-encoded text without invisible characters; empty if it is none. */
function decoded(part: string): string {
  try {
    return visibleText(decodeURIComponent(part));
  } catch {
    return '';
  }
}
