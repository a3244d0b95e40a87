// Applies the chosen theme before the first paint, to avoid a flash of the wrong one.
try {
  document.documentElement.dataset.theme = JSON.parse(localStorage.getItem('promptshelf.theme') ?? '"auto"');
} catch {
  // Storage is blocked or corrupt: the system's theme applies.
}
