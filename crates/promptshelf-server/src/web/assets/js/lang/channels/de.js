// Die Wörter der Ansichten von Kanälen.

export const channels = {
  'channels.empty': 'Dieser Speicher hat keine Kanäle.',
  'channels.revision': 'Revision {n}',
  'channels.unused': 'Noch keine Revision',
};
