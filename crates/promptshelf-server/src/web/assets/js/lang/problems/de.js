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
  'problem.unchanged': 'Es gibt nichts zu ändern: Der Stand ist bereits so.',
  'reason.already-approved': 'Sie haben diesen Änderungen zugestimmt.',
  'reason.approvals': '{n} weitere Zustimmung fehlt.|{n} weitere Zustimmungen fehlen.',
  'reason.approvals-by-others':
    '{n} weitere Zustimmung fehlt, und nicht von {author}.|{n} weitere Zustimmungen fehlen, und nicht von {author}.',
  'reason.breaking': 'Eine prüfende Person muss bestätigen: {effect}',
  'reason.changed-since':
    'Der Kanal hat {paths} inzwischen geändert. Machen Sie einen neuen Vorschlag auf der neuesten Revision.',
  'reason.check-errors': 'Die Prüfung hat {n} Fehler gefunden.|Die Prüfung hat {n} Fehler gefunden.',
  'reason.check-warnings': 'Die Prüfung hat {n} Warnung ausgegeben.|Die Prüfung hat {n} Warnungen ausgegeben.',
  'reason.evaluation-failed':
    'Der Prompt {prompt} besteht die Bewertung {evaluation} nicht ({scores}). Ändern Sie den Prompt.',
  'reason.evaluation-missing':
    'Die neue Version des Prompts {prompt} hat kein Ergebnis der Bewertung {evaluation}. Führen Sie das aus: {command}',
  'reason.evaluation-not-compared':
    'Die ausgelieferte Version des Prompts {prompt} hat kein Ergebnis der Bewertung {evaluation} zum Vergleich. Führen Sie das aus: {command}',
  'reason.evaluation-worse':
    'Der Prompt {prompt} ist in der Bewertung {evaluation} schlechter als die ausgelieferte Version ({scores}). Ändern Sie den Prompt.',
  'reason.evaluations-more':
    '{n} weiteres Ergebnis von Bewertungen fehlt oder reicht nicht.|{n} weitere Ergebnisse von Bewertungen fehlen oder reichen nicht.',
  'reason.insufficient-role': 'Nach den Regeln des Kanals dürfen das nur diese Rollen: {roles}.',
  'reason.insufficient-scope': 'Das braucht eine Anmeldung mit {scopes}.',
  'reason.may-not-publish': '{name} darf nicht veröffentlichen.',
  'reason.mixed-scripts':
    'Der Name {name} mischt Buchstaben mehrerer Schriften. Ist es die Person, die es zu sein scheint?',
  'reason.not-author': 'Das kann nur, wer den Vorschlag gemacht hat.',
  'reason.opening': 'Eine andere Person oder die Verwaltung muss bestätigen: {effect}',
  'reason.own-opening': '{name} öffnet etwas. Eine andere Person oder die Verwaltung muss es bestätigen.',
  'reason.own-proposal': 'Dem eigenen Vorschlag kann man nicht zustimmen: Die Regeln verlangen vier Augen.',
  'reason.policy-changed-since': 'Die Regeln haben sich seither geändert. Schlagen Sie die Änderung erneut vor.',
  'reason.proposal-closed': 'Der Stand des Vorschlags ist: {state}.',
  'reason.rollout-opening':
    '{name} öffnet etwas in {target}. Übernehmen Sie den Kanal, damit jemand die Öffnung bestätigt.',
  'reason.rollout-policy':
    '{target} verlangt weniger als {channel} ({conditions}). Geben Sie ihm zuerst dieselben Regeln.',
  'reason.similar-names': '{name} und {other} sind verschiedene Namen, die gleich aussehen. Sind es zwei Personen?',
  'reason.tests-failed':
    '{failed} von {n} Prompt-Test ist fehlgeschlagen.|{failed} von {n} Prompt-Tests sind fehlgeschlagen.',
  'reason.tests-not-run': 'Die Prompt-Tests sind nicht gelaufen.',
};
