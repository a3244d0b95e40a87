// API の問題を種類の名前で示す文。

export const problems = {
  'problem.changed': '読み込んだ後に、ファイルが変更されています。',
  'problem.conflict': '編集を始めた後に、ほかの人が同じファイルを変更しました。',
  'problem.corrupt': 'データベースの内容が破損しています。管理者に復元を依頼してください。',
  'problem.exists':
    '同じパスのファイル、または大文字と小文字だけが異なるファイルがあります。別のパスを選んでください。',
  'problem.foreign-request':
    'サーバーはこのアドレスからの要求を受け付けません。管理者が示したアドレスでページを開いてください。',
  'problem.internal-error':
    'サーバーでエラーが発生しました。もう一度試すか、管理者に問い合わせてください。原因はログにあります。',
  'problem.not-author': 'この操作は提案の作成者だけができます。',
  'problem.not-found': '存在しないか、アクセス権がありません。',
  'problem.not-written':
    'ファイルを書き込めませんでした。何も変更されていません。管理者に問い合わせてください。原因はログにあります。',
  'problem.policy': 'チャネルの規則をまだ満たしていません:',
  'problem.precondition-failed': 'その間に変更されました。現在の状態を確認して、もう一度試してください。',
  'problem.state': 'この提案はすでに終了しています。',
  'problem.store-newer':
    '新しい版のプログラムがデータベースを変更しました。管理者にこのサーバーの更新を依頼してください。',
  'problem.store-unreachable': 'データベースに接続できません。何も変更されていません。後でもう一度試してください。',
  'problem.too-many-requests': '要求が多すぎます。少し待ってから、もう一度試してください。',
  'problem.unavailable': 'サーバーが混み合っています。少し待ってから、もう一度試してください。',
  'problem.unchanged': '変更の必要はありません。すでにこの状態です。',
  'reason.already-approved': 'この変更はすでに承認済みです。',
  'reason.approvals': 'あと {n} 件の承認が必要です。',
  'reason.approvals-by-others': '{author} 以外のレビュー担当者による承認が、あと {n} 件必要です。',
  'reason.breaking': 'レビュー担当者の確認が必要です: {effect}',
  'reason.changed-since':
    'その後、チャネルで {paths} が変更されました。最新のリビジョンに基づいて、もう一度提案してください。',
  'reason.check-errors': '検査で {n} 件のエラーが見つかりました。',
  'reason.check-warnings': '検査で {n} 件の警告が見つかりました。',
  'reason.evaluation-failed':
    'プロンプト {prompt} は評価 {evaluation} に合格していません({scores})。プロンプトを変更してください。',
  'reason.evaluation-missing':
    'プロンプト {prompt} の新しいバージョンには、評価 {evaluation} の結果がありません。実行: {command}',
  'reason.evaluation-not-compared':
    'プロンプト {prompt} の配信中のバージョンには、比較する評価 {evaluation} の結果がありません。実行: {command}',
  'reason.evaluation-worse':
    'プロンプト {prompt} は、評価 {evaluation} で配信中のバージョンより劣っています({scores})。プロンプトを変更してください。',
  'reason.evaluations-more': 'ほかに {n} 件の評価の結果がないか、合格していません。',
  'reason.insufficient-role': 'チャネルの規則により、この操作ができるのは次のロールだけです: {roles}',
  'reason.insufficient-scope': '{scopes} でのサインインが必要です。',
  'reason.may-not-publish': '{name} は公開できません。',
  'reason.mixed-scripts': '名前 {name} には複数の文字体系が混在しています。本人かどうか確認してください。',
  'reason.not-author': 'この操作は作成者だけができます。',
  'reason.opening': '作成者以外の人または管理者の確認が必要です: {effect}',
  'reason.own-opening': '{name} はアクセスを広げます。作成者以外の人または管理者が確認する必要があります。',
  'reason.own-proposal': '自分の提案は承認できません。規則により、別の人の承認が必要です。',
  'reason.policy-changed-since': 'その後ポリシーが変更されました。もう一度提案してください。',
  'reason.proposal-closed': '提案の状態: {state}',
  'reason.rollout-opening':
    '{name} により {target} で公開範囲が広がります。昇格すると、その公開範囲を誰かが確認できます。',
  'reason.rollout-policy':
    '{target} の条件は {channel} より緩やかです ({conditions})。先に同じポリシーを設定してください。',
  'reason.similar-names': '{name} と {other} はよく似た別の名前です。別人かどうか確認してください。',
  'reason.tests-failed': 'プロンプトテスト {n} 件のうち {failed} 件が失敗しました。',
  'reason.tests-not-run': 'プロンプトテストが実行されていません。',
};
