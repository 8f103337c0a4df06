/** The parts of oidc-provider that the tests use; the package has no types of its own. */
declare module 'oidc-provider' {
  import type { IncomingMessage, ServerResponse } from 'node:http';

  interface Account {
    readonly accountId: string;
    claims(): object;
  }

  interface Configuration {
    readonly clients: readonly object[];
    readonly claims: Readonly<Record<string, readonly string[]>>;
    readonly scopes: readonly string[];
    readonly features: Readonly<Record<string, object>>;
    readonly cookies: { readonly keys: readonly string[] };
    readonly pkce: { required(): boolean };
    fetch(url: string, options: RequestInit & { readonly dispatcher?: unknown }): Promise<Response>;
    findAccount(context: unknown, id: string): Account;
  }

  export class Provider {
    constructor(issuer: string, configuration: Configuration);
    callback(): (request: IncomingMessage, response: ServerResponse) => void;
  }
}
