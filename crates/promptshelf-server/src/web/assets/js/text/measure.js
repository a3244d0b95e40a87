// Human-readable sizes and token estimates.

/**
 * Estimates a model's token count. Vocabularies differ, so it uses only their common ground: a few letters of English
 * make a token, most other scripts need more.
 *
 * @param {string} text
 */
export function tokens(text) {
  let latin = 0;
  let wide = 0;
  let other = 0;
  for (const character of text) {
    const point = character.codePointAt(0) ?? 0;
    if (point < 0x80) latin++;
    else if (point >= 0x2e80 && point < 0xfb00) wide++;
    else other++;
  }
  return Math.ceil(latin / 4 + wide * 0.9 + other / 2);
}

/** @param {number} bytes @param {string} language */
export function size(bytes, language) {
  const units = ['byte', 'kilobyte', 'megabyte', 'gigabyte'];
  let step = 0;
  let amount = bytes;
  while (amount >= 1000 && step < units.length - 1) {
    amount /= 1000;
    step++;
  }
  const format = new Intl.NumberFormat(language, {
    style: 'unit',
    unit: units[step],
    unitDisplay: step === 0 ? 'long' : 'short',
    maximumFractionDigits: amount < 10 && step ? 1 : 0,
  });
  return format.format(amount);
}

/** @param {string} text */
export function bytes(text) {
  return new TextEncoder().encode(text).length;
}

/** Decodes Base64 to bytes. @param {string} base64 */
export function decodedBytes(base64) {
  const padding = base64.endsWith('==') ? 2 : base64.endsWith('=') ? 1 : 0;
  return Math.max(0, Math.floor((base64.length * 3) / 4) - padding);
}
