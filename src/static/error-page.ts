import { withoutFields, type Reply } from '../http/reply.ts';
import type { ContentRequest, Fields, RequestTarget } from '../http/request.ts';
import { Failure } from '../model/failure.ts';
import type { Mount } from './mount.ts';

/** Who asked for what has failed. */
export type Failed = RequestTarget & Pick<ContentRequest, 'fields' | 'address' | 'visitor'>;

/**
 * The page that the first mount which covers a request and has one shows in place of a failure,
 * with its status; undefined where none has. It says nothing by which it could be kept.
 */
export async function errorPage(
  mounts: readonly Mount[],
  status: number,
  failed: Failed,
): Promise<Reply | undefined> {
  const request = { ...failed, ...plainGet(failed.fields['accept-encoding']) };
  for (const mount of mounts) {
    const page = await unlessRefused(() => mount.errorPage(status, request));
    if (page !== undefined) return { ...withoutReuse(page), status };
  }
  return undefined;
}

/** Whatever was asked for, all of the page is meant. */
function plainGet(acceptEncoding: string | undefined) {
  const fields = Object.create(null) as Fields & Record<string, string>;
  if (acceptEncoding !== undefined) fields['accept-encoding'] = acceptEncoding;
  return { method: 'GET', fields, body: undefined, signal: new AbortController().signal };
}

function withoutReuse({ status, fields, body, source }: Reply): Reply {
  const names = ['etag', 'last-modified', 'accept-ranges', 'cache-control'];
  return { status, fields: withoutFields(fields, ...names), body, source };
}

/** A page that cannot be read is none: there is a failure to tell of already. */
async function unlessRefused(
  read: () => ReturnType<Mount['errorPage']>,
): Promise<Reply | undefined> {
  try {
    return await read();
  } catch (thrown) {
    if (thrown instanceof Failure) return undefined;
    throw thrown;
  }
}
