import { type Module } from '../../core/module.ts';

/** The access log: `[log]`. */
export const logs: Module = {
  name: 'logs',
  needs: ['headers'],
};
