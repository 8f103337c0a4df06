import type { User } from '../../core/http/visitor.ts';
import type { Reads } from '../../core/log/store.ts';
import { keyHash, type WrongKeys } from '../../core/operations/keys/authenticate.ts';
import type { Bounds } from '../../core/values/bounds.ts';
import { Failure } from '../../core/values/failure.ts';
import { type ApiKey, type TokenSubject, boundsOf, keyEndMs } from '../../core/values/key.ts';
import type { ClientAddress } from '../../core/values/network/peer.ts';
import type { KeyUseRecorder } from '../keys/key-use-recorder.ts';

/** A stored token of a breadcrumb. */
export type BreadcrumbToken = ApiKey & { readonly breadcrumb: TokenSubject };

/** The parts that check tokens; `now` is in milliseconds since 1970. */
export interface TokenParts {
  readonly store: Pick<Reads, 'keyByHash'>;
  readonly wrongKeys: WrongKeys;
  readonly keyUses: Pick<KeyUseRecorder, 'count'>;
  readonly now: () => number;
}

/** The person for whom a token resolves a breadcrumb. */
export interface TokenHolder {
  readonly user: User;
  /** The rules that it may lead over: those that the key which has made it may see. */
  readonly bounds: Bounds | undefined;
  /** Counts a use. */
  readonly used: () => void;
}

/** Whether a stored key is the token of a breadcrumb. */
export function isBreadcrumbToken(key: ApiKey | undefined): key is BreadcrumbToken {
  return key?.breadcrumb !== undefined;
}

/**
 * The person of a token, for the breadcrumb that it was made for and no other one
 * (docs/design/rendering.md#tokens). Throws `not_found` for a token that is unknown, revoked, ended
 * or for another breadcrumb, and `rate_limited` after too many of them, as for wrong keys.
 */
export function holderOf(
  { store, wrongKeys, keyUses, now }: TokenParts,
  text: string,
  { k, origin, address }: Pick<TokenSubject, 'k' | 'origin'> & { readonly address: ClientAddress },
): TokenHolder {
  const token = store.keyByHash(keyHash(text));
  const isRight =
    isBreadcrumbToken(token) &&
    token.revoked === undefined &&
    token.breadcrumb.k === k &&
    token.breadcrumb.origin === origin;
  if (!isRight) {
    wrongKeys.count(address);
    throw refusal('The token of this link is unknown, revoked, or for another link.');
  }
  if (keyEndMs(token) <= now()) {
    wrongKeys.count(address);
    throw refusal(`The token of this link ended at ${token.until ?? ''}. Ask for another link.`);
  }
  const { user: name, roles = [] } = token.breadcrumb;
  return {
    user: { name, roles },
    bounds: boundsOf(token),
    used: () => {
      keyUses.count(token.id);
    },
  };
}

function refusal(message: string): Failure {
  return new Failure('not_found', message, { field: 't', isPrivate: true });
}
