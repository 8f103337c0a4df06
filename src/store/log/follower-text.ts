import type { Change } from '../../model/change.ts';
import { changeInDraft } from '../../model/draft.ts';
import { replaceFormerHeaders, withheldValue } from '../../model/former-headers.ts';
import { storedJson } from '../encoding.ts';

const dataMember = '"data":';

/**
 * The text of a row of the log as other nodes get it (docs/design/nodes.md#what-a-follower-gets):
 * without the secret of a hook, and without the values of its header fields. The same for a text
 * that a node got so.
 */
export function followerText(text: string): string {
  // The members before the data have escaped texts only, so only a member can match.
  const head = text.slice(0, text.indexOf(dataMember));
  if (head.includes('"family":"secret"')) return `${head}${dataMember}{}}`;
  if (head.includes('"family":"draftchange"')) return draftedText(text);
  if (!head.includes('"family":"webhook"')) return text;
  const change = storedJson(text) as Change;
  const data = replaceFormerHeaders(change.data, undefined, withheldValue);
  return data === change.data ? text : JSON.stringify({ ...change, data });
}

/** As followerText, for a change in a draft: it has the change of the record as its data. */
function draftedText(text: string): string {
  const change = storedJson(text) as Change;
  const inside = changeInDraft(change)?.change;
  if (inside?.family !== 'secret' && inside?.family !== 'webhook') return text;
  const data =
    inside.family === 'secret' ? {} : replaceFormerHeaders(inside.data, undefined, withheldValue);
  return JSON.stringify({ ...change, data: { ...change.data, data } });
}
