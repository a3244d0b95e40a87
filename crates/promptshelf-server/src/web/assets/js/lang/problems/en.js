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
  'problem.unchanged': 'Nothing has to be changed: it is in this state already.',
  'reason.already-approved': 'You have approved these changes.',
  'reason.approvals': '{n} more approval is needed.|{n} more approvals are needed.',
  'reason.approvals-by-others':
    '{n} more approval is needed by a reviewer other than {author}.|{n} more approvals are needed by reviewers other than {author}.',
  'reason.breaking': 'A reviewer has to confirm: {effect}',
  'reason.changed-since': 'The channel has changed {paths} since. Propose again, based on its newest revision.',
  'reason.check-errors': 'The check found {n} error.|The check found {n} errors.',
  'reason.check-warnings': 'The check found {n} warning.|The check found {n} warnings.',
  'reason.evaluation-failed':
    'The prompt {prompt} does not pass the evaluation {evaluation} ({scores}). Change the prompt.',
  'reason.evaluation-missing':
    'The new version of the prompt {prompt} has no result of the evaluation {evaluation}. Run {command}',
  'reason.evaluation-not-compared':
    'The served version of the prompt {prompt} has no result of the evaluation {evaluation} to compare with. Run {command}',
  'reason.evaluation-worse':
    'The prompt {prompt} is worse than the served version in the evaluation {evaluation} ({scores}). Change the prompt.',
  'reason.evaluations-more':
    '{n} more result of evaluations is missing or does not pass.|{n} more results of evaluations are missing or do not pass.',
  'reason.insufficient-role': 'The policy of the channel permits this to these roles alone: {roles}.',
  'reason.insufficient-scope': 'It needs a sign-in with {scopes}.',
  'reason.may-not-publish': '{name} may not publish.',
  'reason.mixed-scripts': 'The name {name} mixes letters of several scripts. Is it the person that it seems to be?',
  'reason.not-author': 'Only its author can do this.',
  'reason.opening': 'Someone else, or an administrator, has to confirm: {effect}',
  'reason.own-opening': '{name} opens something. Someone else has to confirm it, or an administrator.',
  'reason.own-proposal': 'Authors cannot approve their own proposals: the policy demands four eyes.',
  'reason.policy-changed-since': 'The policy has changed since. Propose the change again.',
  'reason.proposal-closed': 'The state of the proposal is: {state}.',
  'reason.rollout-opening': '{name} opens something in {target}. Promote it, so that someone confirms the opening.',
  'reason.rollout-policy': '{target} asks for less than {channel} ({conditions}). Give it the same policy first.',
  'reason.similar-names': '{name} and {other} are different names that look alike. Are they two people?',
  'reason.tests-failed': '{failed} of {n} prompt test failed.|{failed} of {n} prompt tests failed.',
  'reason.tests-not-run': 'The prompt tests have not run.',
};
