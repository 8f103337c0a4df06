import type { ServicePath } from '../../core/operations/http/service-path.ts';
import { readBody } from '../../core/pipeline/body.ts';

/** The paths of the sign-in, if there is a provider. */
export const loginPath: ServicePath = ({ login }, { path, exchange, incoming, signal }) => {
  const rest = /^\/login\/(.*)$/.exec(path)?.[1];
  if (login === undefined || rest === undefined) return undefined;
  const { head, body } = exchange;
  const { target, fields, address } = incoming;
  return login.respond({
    ...{ path: rest, target, fields, address, signal, method: head.method },
    body: (bytesMax) => readBody({ body, fields }, bytesMax),
  });
};
