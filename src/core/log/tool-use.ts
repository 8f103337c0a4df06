import type { ToolUse } from './change.ts';
import { toolUseCharactersMax } from '../values/limits.ts';

/** The header field in which a node passes the tool of a write on to its centre. */
export const toolUseField = 'waymark-via';

/** The value of the field for a tool: client, tool and conversation, percent-encoded. */
export function toolUseText({ client, tool, conversation }: ToolUse): string {
  const parts = conversation === undefined ? [client, tool] : [client, tool, conversation];
  return parts.map(encodeURIComponent).join(' ');
}

/** The tool that the field names; undefined without the field, or for a value of another form. */
export function toolUseFrom(text: string | undefined): ToolUse | undefined {
  if (text === undefined || text.length > toolUseCharactersMax) return undefined;
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

/** A text without control characters, marks of direction and line breaks. */
export function visibleText(text: string): string {
  return text.replaceAll(/[^\p{L}\p{M}\p{N}\p{P}\p{S} ]/gu, '').trim();
}
