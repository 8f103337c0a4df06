import type { ServerResponse } from 'node:http';
import { fieldLines, type FieldList } from '../../http/reply.ts';

/** The members of an answer that those which come ahead of it need; an older Node has fewer. */
type Preceded = Pick<
  ServerResponse,
  'destroyed' | 'headersSent' | 'writeEarlyHints' | 'writeProcessing'
> & { readonly writeInformation?: (status: number, fields: FieldList) => unknown };

/**
 * Sends an answer ahead of the one that counts (RFC 9110 §15.2); nothing where it is too late, or
 * Node would not send it: it is not what counts. An older Node sends the links of a 103, and a 102.
 */
export function sendInterim(response: Preceded, status: number, fields: FieldList): void {
  if (response.headersSent || response.destroyed) return;
  try {
    if (response.writeInformation !== undefined) response.writeInformation(status, fields);
    else if (status === 103) response.writeEarlyHints({ link: [...fieldLines(fields, 'link')] });
    else if (status === 102) response.writeProcessing();
  } catch {
    // A field that cannot be sent.
  }
}
