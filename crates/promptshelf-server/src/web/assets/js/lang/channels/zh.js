// 频道视图的文字。

export const channels = {
  'channels.empty': '此存储没有频道。',
  'channels.revision': '修订 {n}',
  'channels.unused': '尚无修订',
};
