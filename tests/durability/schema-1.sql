CREATE TABLE event (
    seq INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, worker TEXT NOT NULL, mission TEXT,
    type TEXT NOT NULL, at INTEGER NOT NULL, line BLOB NOT NULL, applied INTEGER NOT NULL);
CREATE INDEX event_waiting ON event (worker, seq) WHERE applied <> 1;
CREATE TABLE worker (worker TEXT PRIMARY KEY, state BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE mission (
    worker TEXT NOT NULL, mission TEXT NOT NULL, state BLOB NOT NULL, shown INTEGER NOT NULL,
    archived INTEGER NOT NULL, PRIMARY KEY (worker, mission));
CREATE INDEX mission_by_id ON mission (mission);
CREATE INDEX mission_not_archived ON mission (worker) WHERE archived = 0;
CREATE INDEX mission_not_shown ON mission (worker) WHERE shown = 0;
CREATE TABLE rendered (
    worker TEXT NOT NULL, mission TEXT NOT NULL, section TEXT NOT NULL, line BLOB NOT NULL,
    PRIMARY KEY (worker, mission, section, line)) WITHOUT ROWID;
CREATE TABLE handoff (
    seq INTEGER PRIMARY KEY AUTOINCREMENT, worker TEXT NOT NULL, mission TEXT, sha256 TEXT NOT NULL,
    redacted TEXT NOT NULL, author TEXT NOT NULL, path TEXT NOT NULL, at INTEGER NOT NULL, text BLOB NOT NULL,
    placed INTEGER NOT NULL DEFAULT 0, UNIQUE (worker, sha256));
CREATE INDEX handoff_redacted ON handoff (worker, redacted);
CREATE TABLE made (worker TEXT PRIMARY KEY, read_back INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE file (
    worker TEXT NOT NULL, path TEXT NOT NULL, device INTEGER NOT NULL, inode INTEGER NOT NULL,
    size INTEGER NOT NULL, seq INTEGER NOT NULL, PRIMARY KEY (worker, path)) WITHOUT ROWID;
