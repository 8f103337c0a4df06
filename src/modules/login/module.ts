import { type Module } from '../../core/module.ts';
import { loginPath } from './path.ts';

/** Sign-in at providers of OpenID Connect: `[login]`. */
export const login: Module = {
  name: 'login',
  needs: ['acme', 'visitors'],
  provision: () => ({ paths: { login: loginPath } }),
};
