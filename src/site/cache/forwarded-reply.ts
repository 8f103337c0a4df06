import { plainPage } from '../../http/html.ts';
import {
  isEmptyStatus,
  noBody,
  replyField,
  withoutFields,
  type FieldList,
  type Reply,
} from '../../http/reply.ts';
import { asksForLess, select } from '../../http/represent.ts';
import type { ContentRequest } from '../../http/request.ts';
import type { StoredAnswer } from './answer.ts';
import { toldForwarded, withTold } from './cache-status.ts';
import { representationOf } from './held-reply.ts';
import type { Intake } from './intake.ts';

/** The answer whose content is still on its way, to one of those who wait for it. */
export function arrivingReply(
  answer: StoredAnswer,
  content: Intake,
  request: ContentRequest,
): Reply {
  const { shownStatus: status, fields } = answer;
  const source = `rule:${answer.rule}`;
  const known = knownAlready(answer, request);
  if (known !== undefined) return known;
  if (isEmptyStatus(status)) {
    return { status, fields: withoutFields(fields, 'content-length'), body: noBody, source };
  }
  const length = replyField({ fields }, 'content-length');
  const bytesLength = length === undefined ? undefined : Number(length);
  const body = { kind: 'stream', stream: content.read(), bytesLength } as const;
  return { status, fields, body, source };
}

/** An answer that is for one who asked alone: as its source gave it, under the rule's status. */
export function passingReply(reply: Reply, httpresponse: number | undefined): Reply {
  const status = reply.status === 200 ? (httpresponse ?? 200) : reply.status;
  if (!isEmptyStatus(status) || reply.body.kind === 'none') return { ...reply, status };
  discardContent(reply);
  return { ...reply, status, fields: withoutFields(reply.fields, 'content-length'), body: noBody };
}

/** A 304 for who has an answer already that is on its way; undefined for who has not. */
function knownAlready(answer: StoredAnswer, { method, fields }: ContentRequest): Reply | undefined {
  if (!asksForLess(fields)) return undefined;
  const selection = select(representationOf(answer), { method, fields });
  if (selection.status !== 304) return undefined;
  return {
    status: 304,
    fields: [...selection.fields, ...dateOf(answer.fields)],
    body: noBody,
    source: `rule:${answer.rule}`,
  };
}

/** The field Date of an answer, as a field list. */
function dateOf(fields: FieldList): FieldList {
  const date = replyField({ fields }, 'date');
  return date === undefined ? [] : ['Date', date];
}

/** Lets the content of an answer go that nobody is sent. */
export function discardContent({ body }: Reply): void {
  if (body.kind === 'stream') body.stream.destroy();
}

/** The answer to who wants nothing but what is kept (RFC 9111 §5.2.1.7), where nothing is. */
export function notKeptReply(rule: string): Reply {
  const page = plainPage('504 Gateway Timeout', 'This page is not in the cache.');
  const bytes = Buffer.from(page);
  const type = ['Content-Type', 'text/html; charset=utf-8'];
  const length = ['Content-Length', String(bytes.length)];
  const fields = [...type, ...length, 'Cache-Control', 'no-store'];
  const reply: Reply = {
    status: 504,
    fields,
    body: { kind: 'bytes', bytes },
    source: `rule:${rule}`,
  };
  return withTold(reply, toldForwarded({ forwarded: 'miss' }));
}
