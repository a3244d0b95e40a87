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
};
