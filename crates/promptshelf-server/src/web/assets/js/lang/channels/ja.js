// チャンネルの表示の語句。

export const channels = {
  'channels.empty': 'このストアにチャンネルはありません。',
  'channels.revision': 'リビジョン {n}',
  'channels.unused': 'リビジョンはまだありません',
};
