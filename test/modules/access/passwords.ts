import { scryptSync } from 'node:crypto';
import { hashSync } from 'bcryptjs';

/** The Authorization of a name and a password (RFC 7617). */
export function basic(name: string, password: string): string {
  return `Basic ${Buffer.from(`${name}:${password}`).toString('base64')}`;
}

/** A line of a password file with a hash of scrypt that takes a millisecond. */
export function scryptLine(name: string, password: string): string {
  const salt = Buffer.from(`salt of ${name}`.padEnd(16).slice(0, 16));
  const hash = scryptSync(password, salt, 32, { N: 1_024, r: 1, p: 1 });
  const [writtenSalt, written] = [salt, hash].map((bytes) =>
    bytes.toString('base64').replace(/=+$/, ''),
  );
  return `${name}:$scrypt$ln=10,r=1,p=1$${writtenSalt}$${written}`;
}

/** A line as `htpasswd -B` writes it. */
export function bcryptLine(name: string, password: string): string {
  return `${name}:${hashSync(password, 4).replace('$2b$', '$2y$')}`;
}
