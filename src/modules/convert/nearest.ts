/** What comes nearest to PHP by FastCGI. */
export const phpNearest =
  'run PHP with an HTTP server of its own (`frankenphp`, `php -S`) behind a [proxy.<name>]';
/** What comes nearest to directives about who may see something. */
export const accessNearest = 'an `[access.<name>]` section';
/** What comes nearest to a redirect that has other variables. */
export const redirectNearest =
  'a [redirect.<name>], whose `to` knows {splat}, {path}, {query} and {host}';
/** What comes nearest to error pages of other names. */
export const errorsNearest =
  '`errors` of a [disk.<name>]: a folder with pages such as 404.html and 5xx.html';
/** What differs for a file of `htpasswd`. */
export const htpasswdNote = 'Waymark reads the lines of `htpasswd -B`, and no older hashes';
