import { type Module } from '../../core/module.ts';

/** Configurations of nginx, Caddy, Apache and Netlify as an ini file. */
export const convert: Module = {
  name: 'convert',
  commands: [
    {
      name: 'convert',
      summary: 'convert a configuration of nginx, Caddy, Apache or Netlify',
      load: async () => (await import('./command.ts')).defineConvert,
    },
  ],
};
