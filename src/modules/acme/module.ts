import { type Module } from '../../core/module.ts';

/** Certificates from an ACME server (RFC 8555): `[tls] acme_*`. */
export const acme: Module = {
  name: 'acme',
};
