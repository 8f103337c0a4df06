import type { X509Certificate } from 'node:crypto';

/** A DER value (X.690 §8.1), with one byte for its tag. */
interface Value {
  readonly tag: number;
  readonly content: Buffer;
}

const integer = 0x02;
const objectIdentifier = 0x06;
const extensionsOfCertificate = 0xa3;
const keyIdentifier = 0x80;
/** id-ce-authorityKeyIdentifier, 2.5.29.35. */
const authorityKeyId = Buffer.from([0x55, 0x1d, 0x23]);

/**
 * The identifier by which an ACME server knows a certificate (RFC 9773 §4.1): the key identifier of
 * its issuer and its serial number, both in base64url. Undefined for a certificate without the
 * former.
 */
export function certificateId({ raw }: Pick<X509Certificate, 'raw'>): string | undefined {
  const [certificate] = valuesIn(raw);
  const [signed] = valuesIn(certificate?.content);
  const fields = valuesIn(signed?.content);
  const serial = fields.find(({ tag }) => tag === integer)?.content;
  const [extensions] = valuesIn(fields.find(({ tag }) => tag === extensionsOfCertificate)?.content);
  for (const { content } of valuesIn(extensions?.content)) {
    const [oid, ...others] = valuesIn(content);
    if (oid?.tag !== objectIdentifier || !oid.content.equals(authorityKeyId)) continue;
    const [sequence] = valuesIn(others.at(-1)?.content);
    const issuer = valuesIn(sequence?.content).find(({ tag }) => tag === keyIdentifier)?.content;
    if (issuer === undefined || serial === undefined) return undefined;
    return `${issuer.toString('base64url')}.${serial.toString('base64url')}`;
  }
  return undefined;
}

/** The values of a DER text, one after the other; those before the first that is not whole. */
function valuesIn(bytes: Buffer | undefined): readonly Value[] {
  const values: Value[] = [];
  let rest = bytes ?? Buffer.alloc(0);
  while (rest.length >= 2) {
    const [tag = 0, first = 0] = rest;
    const lengthBytes = first < 0x80 ? 0 : first & 0x7f;
    if (lengthBytes > 4 || first === 0x80 || rest.length < 2 + lengthBytes) break;
    const start = 2 + lengthBytes;
    const length = lengthBytes === 0 ? first : rest.readUIntBE(2, lengthBytes);
    if (rest.length < start + length) break;
    values.push({ tag, content: rest.subarray(start, start + length) });
    rest = rest.subarray(start + length);
  }
  return values;
}
