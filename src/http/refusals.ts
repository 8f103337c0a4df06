import { Failure } from '../model/failure.ts';
import { headerBlockBytesMax, requestLineBytesMax } from './limits.ts';

/** What a client is told whose request line is longer than it may be (RFC 9110 §15.5.15). */
export function requestLineTooLong(): Failure {
  return new Failure('too_large', `The request line is longer than ${requestLineBytesMax} bytes.`, {
    status: 414,
    limit: 'target_size',
  });
}

/** What a client is told whose header section is larger than it may be (RFC 6585 §5). */
export function headerSectionTooLarge(): Failure {
  return new Failure(
    'too_large',
    `The header section is larger than ${headerBlockBytesMax} bytes.`,
    { status: 431, limit: 'header_size' },
  );
}

/** What a client is told whose request has a method that nobody here knows (RFC 9110 §15.6.2). */
export function methodNotImplemented(): Failure {
  return new Failure('invalid', 'The method of the request is not implemented here.', {
    status: 501,
  });
}
