/**
 * Whether a name that a client sends is one of a host in the DNS (RFC 1123 §2.1) for which an ACME
 * server may issue a certificate: with a dot, in lower case; no address and no wildcard.
 */
export function isPublicName(name: string): boolean {
  if (name.length > 253) return false;
  const labels = name.split('.');
  const [last = ''] = labels.slice(-1);
  return labels.length > 1 && labels.every((label) => labelForm.test(label)) && !/^\d/.test(last);
}

const labelForm = /^(?!-)[a-z\d-]{1,63}(?<!-)$/;
