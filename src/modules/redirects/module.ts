import { type Module } from '../../core/module.ts';

/** Redirects and rewritten paths: `[redirect.<name>]`, `[rewrite.<name>]`. */
export const redirects: Module = {
  name: 'redirects',
  needs: ['files', 'headers', 'rules'],
};
