// Words of the views of channels.

export const channels = {
  'channels.empty': 'This store has no channels.',
  'channels.revision': 'Revision {n}',
  'channels.unused': 'No revision yet',
};
