// A form that the server asks for, from its schema.

/**
 * @typedef {import('../mcp/types.js').Schema} Schema
 * @typedef {import('../mcp/types.js').Question} Question
 * @typedef {import('./field.js').FieldKind} FieldKind
 */

/** @param {Question} question @returns {FieldKind[]} */
export function kinds(question) {
  const { properties = {}, required = [] } = question.requestedSchema ?? {};
  return Object.entries(properties).map(([name, schema]) => ({
    name,
    title: schema.title ?? name,
    description: schema.description,
    required: required.includes(name),
    type: typeOf(schema),
    format: schema.format,
    default:
      schema.default === undefined
        ? null
        : Array.isArray(schema.default)
          ? schema.default.join('\n')
          : String(schema.default),
    choices: choices(schema.type === 'array' ? (schema.items ?? {}) : schema),
    minimum: schema.minimum,
    maximum: schema.maximum,
    minLength: schema.minLength,
    maxLength: schema.maxLength,
  }));
}

/** @param {Schema} schema */
function typeOf(schema) {
  if (schema.type === 'array') return 'list';
  if (schema.type === 'string' && schema.format === 'date') return 'date';
  if (schema.type === 'string' && (schema.maxLength ?? 0) > 300) return 'text';
  return schema.type ?? 'string';
}

/** @param {Schema} schema */
function choices(schema) {
  const titled = schema.oneOf ?? schema.anyOf;
  if (titled) return titled.map((choice) => ({ value: choice.const, title: choice.title ?? null }));
  return (schema.enum ?? []).map((value, index) => ({ value, title: schema.enumNames?.[index] ?? null }));
}

/**
 * A field's text as the schema wants it.
 * @param {Schema} schema
 * @param {string} text
 */
export function content(schema, text) {
  if (schema.type === 'boolean') return text === 'true';
  // What is no number goes as it is: the server says what is wrong with it.
  if (schema.type === 'integer' || schema.type === 'number') return Number.isFinite(Number(text)) ? Number(text) : text;
  if (schema.type === 'array')
    return text
      .split('\n')
      .map((line) => line.trim())
      .filter(Boolean);
  return text;
}
