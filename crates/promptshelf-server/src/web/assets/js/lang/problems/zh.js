// API 的问题，按其类型名称。

export const problems = {
  'problem.changed': '文件在读取后已被更改。',
  'problem.conflict': '自您开始以来，其他人更改了相同的文件。',
  'problem.corrupt': '数据库中的内容已损坏。请管理员恢复。',
  'problem.exists': '已有此路径的文件，或仅大小写不同的文件。请选择其他路径。',
  'problem.foreign-request': '服务器拒绝来自此地址的请求。请使用管理员提供的地址打开页面。',
  'problem.internal-error': '服务器出错。请重试，或联系管理员：原因在日志中。',
  'problem.not-author': '只有提案的作者可以这样做。',
  'problem.not-found': '不存在，或者您没有访问权限。',
  'problem.not-written': '无法写入文件。没有任何更改；请联系管理员：原因在日志中。',
  'problem.policy': '尚未满足频道的规则：',
  'problem.precondition-failed': '在此期间已被更改。请查看当前状态后重试。',
  'problem.state': '该提案已不再开放。',
  'problem.store-newer': '较新版本的程序更改了数据库。请管理员更新此服务器。',
  'problem.store-unreachable': '无法连接数据库。没有任何更改；请稍后重试。',
  'problem.too-many-requests': '请求过多。请稍后重试。',
  'problem.unavailable': '服务器繁忙。请稍后重试。',
};
