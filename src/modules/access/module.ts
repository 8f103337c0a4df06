import { type Module } from '../../core/module.ts';

/** Who may see what: `[access.<name>]`, passwords, networks, signed links. */
export const access: Module = {
  name: 'access',
  needs: ['headers', 'login'],
};
