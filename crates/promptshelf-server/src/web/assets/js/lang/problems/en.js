// Problems of the API, by the stable name of their kind.

export const problems = {
  'problem.changed': 'The file has changed since it was read.',
  'problem.conflict': 'Someone else has changed the same files since you began.',
  'problem.corrupt': 'A content in the store is damaged. Ask the operator to restore it.',
  'problem.exists':
    'A file with this path, or one that differs in upper and lower case only, exists. Choose another path.',
  'problem.foreign-request':
    'The server refuses requests from this address. Open the page at the address that its operator named.',
  'problem.internal-error': 'The server has failed. Try again, or ask its operator: the log has the cause.',
  'problem.not-author': 'Only the author of the proposal can do this.',
  'problem.not-found': 'This does not exist, or you have no access to it.',
  'problem.not-written': 'The file could not be written. Nothing was changed; ask the operator: the log has the cause.',
  'problem.policy': 'The rules of the channel are not met yet:',
  'problem.precondition-failed': 'It has changed in the meantime. Look at the present state, and try again.',
  'problem.state': 'The proposal is no longer open.',
  'problem.store-newer':
    'A newer release of the program has changed the store. Ask the operator to update this server.',
  'problem.store-unreachable': 'The database cannot be reached. Nothing was changed; try again later.',
  'problem.too-many-requests': 'Too many requests. Try again in a moment.',
  'problem.unavailable': 'The server is busy. Try again in a moment.',
};
