// Die Probleme der API, nach dem Namen ihrer Art.

export const problems = {
  'problem.changed': 'Die Datei hat sich geändert, seit sie gelesen wurde.',
  'problem.conflict': 'Jemand anderes hat dieselben Dateien geändert, seit Sie begonnen haben.',
  'problem.corrupt': 'Ein Inhalt der Datenbank ist beschädigt. Bitten Sie den Betreiber, ihn wiederherzustellen.',
  'problem.exists':
    'Eine Datei mit diesem Pfad gibt es schon, oder eine, die sich nur in der Groß- und Kleinschreibung unterscheidet. Wählen Sie einen anderen Pfad.',
  'problem.foreign-request':
    'Der Server lehnt Anfragen von dieser Adresse ab. Öffnen Sie die Seite unter der Adresse, die der Betreiber genannt hat.',
  'problem.internal-error':
    'Im Server ist ein Fehler aufgetreten. Versuchen Sie es noch einmal, oder fragen Sie den Betreiber: Die Ursache steht im Protokoll.',
  'problem.not-author': 'Das kann nur, wer den Vorschlag gemacht hat.',
  'problem.not-found': 'Das gibt es nicht, oder Sie haben keinen Zugriff darauf.',
  'problem.not-written':
    'Die Datei konnte nicht geschrieben werden. Nichts wurde geändert; fragen Sie den Betreiber: Die Ursache steht im Protokoll.',
  'problem.policy': 'Die Regeln des Kanals sind noch nicht erfüllt:',
  'problem.precondition-failed':
    'Es hat sich inzwischen geändert. Sehen Sie den jetzigen Stand an, und versuchen Sie es noch einmal.',
  'problem.state': 'Der Vorschlag ist nicht mehr offen.',
  'problem.store-newer':
    'Eine neuere Version des Programms hat die Datenbank geändert. Bitten Sie den Betreiber, diesen Server zu aktualisieren.',
  'problem.store-unreachable':
    'Die Datenbank ist nicht erreichbar. Nichts wurde geändert; versuchen Sie es später noch einmal.',
  'problem.too-many-requests': 'Zu viele Anfragen. Versuchen Sie es gleich noch einmal.',
  'problem.unavailable': 'Der Server ist ausgelastet. Versuchen Sie es gleich noch einmal.',
};
