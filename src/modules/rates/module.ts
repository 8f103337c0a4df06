import { type Module } from '../../core/module.ts';

/** How often clients may ask: `[rate.<name>]`. */
export const rates: Module = {
  name: 'rates',
  needs: ['access', 'headers', 'login'],
};
