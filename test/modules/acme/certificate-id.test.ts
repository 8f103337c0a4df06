import assert from 'node:assert/strict';
import { X509Certificate } from 'node:crypto';
import { suite, test } from 'node:test';
import { certificateId } from '../../../src/modules/acme/certificate-id.ts';
import { createAuthority } from '../../certificates.ts';

suite('the identifier of a certificate', () => {
  test('is that of the example in RFC 9773', async () => {
    const authority = await createAuthority();
    const { cert } = await authority.issue(['a.example'], {
      keyId: '69885b6b87464041e1b37b847ba0ae2cde01c8d4',
      serial: '87654321',
    });
    const id = certificateId(new X509Certificate(cert));
    assert.equal(id, 'aYhba4dGQEHhs3uEe6CuLN4ByNQ.AIdlQyE');
  });

  test('is none without the key of the issuer, and in a broken certificate', async () => {
    const authority = await createAuthority();
    const { cert } = await authority.issue(['a.example']);
    const { raw } = new X509Certificate(cert);
    assert.equal(certificateId({ raw }), undefined);
    const { cert: other } = await authority.issue(['a.example'], { keyId: 'a1b2' });
    const whole = new X509Certificate(other).raw;
    for (let length = 0; length < whole.length; length += 1) {
      assert.equal(certificateId({ raw: whole.subarray(0, length) }), undefined);
    }
  });
});
