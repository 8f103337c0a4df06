import { Failure } from '../../values/failure.ts';
import { headerBlockBytesMax, requestLineBytesMax } from '../limits.ts';

/** Makes the 400 for a request that is not as RFC 9112 has it. */
export function malformedRequest(): Failure {
  return new Failure('invalid', 'The request is not valid HTTP/1.1.');
}

/** Makes the 400 for a connection that ends within a request (RFC 9112 §8). */
export function incompleteRequest(): Failure {
  return new Failure('invalid', 'The connection ended before the whole request had arrived.');
}

/** Makes the 414 for a request line of more than `requestLineBytesMax` (RFC 9110 §15.5.15). */
export function requestLineTooLong(): Failure {
  return new Failure('too_large', `The request line is longer than ${requestLineBytesMax} bytes.`, {
    status: 414,
    limit: 'target_size',
  });
}

/** Makes the 431 for a header section of more than `headerBlockBytesMax` (RFC 6585 §5). */
export function headerSectionTooLarge(): Failure {
  return new Failure(
    'too_large',
    `The header section is larger than ${headerBlockBytesMax} bytes.`,
    { status: 431, limit: 'header_size' },
  );
}

/** The status of unencodedTarget: the client has to send the target in its encoded form. */
export const unencodedStatus = 308;

/**
 * Makes the 308 for a target with raw bytes beyond ASCII, which no URI contains (RFC 9112 §3.2).
 */
export function unencodedTarget(): Failure {
  return new Failure('invalid', 'The request target has bytes that must be percent-encoded.', {
    status: unencodedStatus,
  });
}

/** Makes the 501 for a method that the server does not implement (RFC 9110 §15.6.2). */
export function methodNotImplemented(): Failure {
  return new Failure('invalid', 'The server does not implement the method of the request.', {
    status: 501,
  });
}
