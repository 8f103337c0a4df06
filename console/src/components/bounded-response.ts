const bytesMax = 1024 * 1024;

/** A response whose content rejects as soon as more than 1 MB of it has come. */
export function boundedResponse({ body, headers }: Response): Response {
  let bytes = 0;
  const bounded = new TransformStream<Uint8Array, Uint8Array>({
    transform(chunk, controller) {
      bytes += chunk.length;
      if (bytes > bytesMax) throw new Error('the file is too large');
      controller.enqueue(chunk);
    },
  });
  return new Response(body?.pipeThrough(bounded), { headers });
}
