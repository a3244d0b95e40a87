// Parses server-sent events from a response and yields each event's `data`.

/**
 * @param {ReadableStream<Uint8Array>} body
 * @returns {AsyncGenerator<string>}
 */
export async function* events(body) {
  const reader = body.pipeThrough(/** @type {any} */ (new TextDecoderStream())).getReader();
  let pending = '';
  /** @type {string[]} */
  let lines = [];
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      pending += value;
      // A trailing `\r` may be the first half of `\r\n`, so it waits for the next chunk.
      const whole = pending.endsWith('\r') ? pending.length - 1 : pending.length;
      const parts = pending.slice(0, whole).split(/\r\n|\r|\n/);
      pending = (parts.pop() ?? '') + pending.slice(whole);
      for (const line of parts) {
        if (line === '') {
          if (lines.length) yield lines.join('\n');
          lines = [];
        } else if (line.startsWith('data:')) {
          lines.push(line.slice(line[5] === ' ' ? 6 : 5));
        }
      }
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}
