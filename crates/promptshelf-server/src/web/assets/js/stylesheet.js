// Stylesheets that the first view does not need.

/** @type {Map<string, Promise<void>>} */
const styled = new Map();

/** Loads a stylesheet once. Later ones come after earlier ones in the cascade. @param {string} name */
export function stylesheet(name) {
  const known = styled.get(name) ?? linked(name);
  styled.set(name, known);
  return known;
}

/** @param {string} name @returns {Promise<void>} */
function linked(name) {
  const link = document.createElement('link');
  link.rel = 'stylesheet';
  link.href = `/assets/style/${name}.css`;
  document.head.append(link);
  return new Promise((resolve) => {
    link.onload = () => resolve();
    link.onerror = () => resolve();
  });
}
