import { type Module } from '../../core/module.ts';

/** Content codings (RFC 9110 §8.4.1). */
export const compression: Module = {
  name: 'compression',
};
