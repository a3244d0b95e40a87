// Runs before the first paint, so that nobody in the dark is dazzled.
try {
  document.documentElement.dataset.theme = JSON.parse(localStorage.getItem('promptshelf.theme') ?? '"auto"');
} catch {
  // Storage is forbidden or spoilt: the system's theme it is.
}
