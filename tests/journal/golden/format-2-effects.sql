BEGIN TRANSACTION;
CREATE TABLE assumed(
    session INTEGER NOT NULL, call TEXT NOT NULL, day INTEGER NOT NULL, turn TEXT NOT NULL,
    model TEXT NOT NULL, provider TEXT NOT NULL, cause TEXT NOT NULL, input INTEGER NOT NULL,
    output INTEGER NOT NULL, cost INTEGER NOT NULL, priced INTEGER NOT NULL,
    open INTEGER NOT NULL, PRIMARY KEY(session, call)) WITHOUT ROWID;
CREATE TABLE carried(
    id TEXT NOT NULL, principal TEXT NOT NULL, job TEXT NOT NULL, day INTEGER NOT NULL,
    model TEXT NOT NULL, provider TEXT NOT NULL, cause TEXT NOT NULL, calls INTEGER NOT NULL,
    replies INTEGER NOT NULL, input INTEGER NOT NULL, output INTEGER NOT NULL,
    cache_read INTEGER NOT NULL, cache_write INTEGER NOT NULL, reasoning INTEGER NOT NULL,
    cost INTEGER NOT NULL, unpriced INTEGER NOT NULL, assumed_calls INTEGER NOT NULL,
    assumed_input INTEGER NOT NULL, assumed_output INTEGER NOT NULL,
    assumed_cost INTEGER NOT NULL, assumed_unpriced INTEGER NOT NULL);
CREATE TABLE daily(
    day INTEGER NOT NULL, principal TEXT NOT NULL, tokens INTEGER NOT NULL,
    cost INTEGER NOT NULL, PRIMARY KEY(day, principal)) WITHOUT ROWID;
INSERT INTO "daily" VALUES(20370,'owner',0,0);
CREATE TABLE inbox(
    id INTEGER PRIMARY KEY AUTOINCREMENT, session INTEGER NOT NULL, key TEXT NOT NULL,
    body TEXT NOT NULL, at REAL NOT NULL, taken INTEGER NOT NULL DEFAULT 0);
INSERT INTO "inbox" VALUES(1,1,'m9','{"type":"say","text":"Are you there?","key":"m9"}',1760000001.5,0);
CREATE TABLE jobs(
    job TEXT PRIMARY KEY, tokens INTEGER NOT NULL, cost INTEGER NOT NULL) WITHOUT ROWID;
INSERT INTO "jobs" VALUES('golden-one',0,0);
CREATE TABLE leases(session INTEGER PRIMARY KEY, owner TEXT NOT NULL, fence INTEGER NOT NULL);
INSERT INTO "leases" VALUES(1,'',1);
CREATE TABLE log(
    id INTEGER PRIMARY KEY, session INTEGER NOT NULL, n INTEGER NOT NULL, turn_id TEXT NOT NULL,
    shape INTEGER NOT NULL, rest TEXT NOT NULL, at REAL NOT NULL, hash BLOB NOT NULL);
INSERT INTO "log" VALUES(1,1,1,'',19,'cli","cwd":"/work/plan","model":"small-1","provider":"acme","system":"You help."',1760000000.0,X'9AB1A810C8AF053E60ACDC1A7DDFDC08');
INSERT INTO "log" VALUES(2,1,2,'turn_1',24,'Push it',1760000001.5,X'F0EF60E71A34862532FAABFC5E287B6C');
INSERT INTO "log" VALUES(3,1,3,'turn_1',25,'2',1760000001.5,X'27138468E2F079CEFA10119851240303');
INSERT INTO "log" VALUES(4,1,4,'turn_1',29,'"},{"type":"tool_call","id":"call_1","name":"process","arguments":{"action":"submit","session_id":"proc_1","data":"ls"}}]},"usage":{},"model":"small-1","provider":"acme',1760000001.5,X'D6949958BB58994B5DDD84841F58C156');
INSERT INTO "log" VALUES(5,1,5,'turn_1',31,'call_1","name":"process","repeat":"never"',1760000001.5,X'574E7E85B1B46732B79C4A01CDC6F809');
INSERT INTO "log" VALUES(6,1,6,'turn_1',32,'call_1',1760000001.5,X'5038CD727E75A7B82CE495739AED592F');
INSERT INTO "log" VALUES(7,1,7,'turn_1',40,',"call_id":"call_1","judged":{"effect":{"type":"signal_process","process_id":"proc_1","action":"write","text":"git push\n","command":"bash","cwd":"/work/plan"},"decision":{"type":"ask","reason":"It sends commits to another repository. Text from web:a.example is in view, which may be what wants this.","category":"remote_state","scopes":["once","session"]}}',1760000001.5,X'66A881B199B25D2AE079EC75C6EB8114');
INSERT INTO "log" VALUES(8,1,8,'turn_1',13,',"id":"ask_1","call_id":"call_1","effect":{"type":"signal_process","process_id":"proc_1","action":"write","text":"git push\n","command":"bash","cwd":"/work/plan"},"reason":"It sends commits to another repository. Text from web:a.example is in view, which may be what wants this.","category":"remote_state","scopes":["once","session"],"expires_seconds":60,"lasting":["What is sent cannot be taken back."]',1760000001.5,X'1FE1921F5073C69DFD20F379BDB223FC');
INSERT INTO "log" VALUES(9,1,9,'turn_1',14,',"id":"ask_1","choice":"once","by":"owner"',1760000001.5,X'16C141BBE9656190A82DA750D7BFBE5E');
INSERT INTO "log" VALUES(10,1,10,'turn_1',40,',"call_id":"call_1","judged":{"effect":{"type":"run_command","script":"npm publish","cwd":"/work/plan"},"decision":{"type":"allow","reason":"The model for approvals takes it to be safe."}},"by":"judge"',1760000001.5,X'B121458D281719BEE38D46DDD1EEF2BC');
INSERT INTO "log" VALUES(11,1,11,'turn_1',33,'call_1","name":"process","parts":[{"type":"text","text":"Sent 9 characters."}]},"seconds":0.1',1760000001.5,X'CBD271B8C86E63052447472767E86237');
INSERT INTO "log" VALUES(12,1,12,'turn_1',29,'Done."}]},"usage":{},"model":"small-1","provider":"acme',1760000001.5,X'50453DD3219C59B35FCBFA0E0D22A4F3');
INSERT INTO "log" VALUES(13,1,13,'turn_1',35,'',1760000001.5,X'3CCA09A9FA85FCB4DD3128440620FE29');
CREATE TABLE message_keys(
    session INTEGER NOT NULL, key TEXT NOT NULL, n INTEGER NOT NULL,
    PRIMARY KEY(session, key)) WITHOUT ROWID;
CREATE TABLE meta(name TEXT PRIMARY KEY, value) WITHOUT ROWID;
INSERT INTO "meta" VALUES('projections',2);
CREATE TABLE owners(owner TEXT PRIMARY KEY, beat REAL NOT NULL) WITHOUT ROWID;
INSERT INTO "owners" VALUES('24174-026a842544e5',1760000000.0);
CREATE TABLE quarantine(
    event INTEGER PRIMARY KEY, session INTEGER NOT NULL, n INTEGER NOT NULL,
    why TEXT NOT NULL, found_at REAL NOT NULL);
CREATE TABLE raised(
    session INTEGER NOT NULL, scope TEXT NOT NULL, key TEXT NOT NULL, cost INTEGER NOT NULL,
    tokens INTEGER NOT NULL, PRIMARY KEY(session, scope, key)) WITHOUT ROWID;
CREATE TABLE removed(session INTEGER PRIMARY KEY, id TEXT NOT NULL, at REAL NOT NULL);
CREATE TABLE sessions(
    session INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE,
    parent INTEGER, parent_n INTEGER NOT NULL DEFAULT 0);
INSERT INTO "sessions" VALUES(1,'golden-one',NULL,0);
CREATE TABLE shapes(
    shape INTEGER PRIMARY KEY, kind TEXT NOT NULL, version INTEGER NOT NULL,
    head TEXT NOT NULL, tail TEXT NOT NULL);
INSERT INTO "shapes" VALUES(1,'session_opened',1,'{"type":"session_opened"','}');
INSERT INTO "shapes" VALUES(2,'session_ended',1,'{"type":"session_ended"','}');
INSERT INTO "shapes" VALUES(3,'titled',1,'{"type":"titled"','}');
INSERT INTO "shapes" VALUES(4,'model_switched',1,'{"type":"model_switched"','}');
INSERT INTO "shapes" VALUES(5,'message_received',1,'{"type":"message_received"','}');
INSERT INTO "shapes" VALUES(6,'turn_started',1,'{"type":"turn_started"','}');
INSERT INTO "shapes" VALUES(7,'steered',1,'{"type":"steered"','}');
INSERT INTO "shapes" VALUES(8,'model_called',1,'{"type":"model_called"','}');
INSERT INTO "shapes" VALUES(9,'reply_added',1,'{"type":"reply_added"','}');
INSERT INTO "shapes" VALUES(10,'tool_intended',1,'{"type":"tool_intended"','}');
INSERT INTO "shapes" VALUES(11,'tool_started',1,'{"type":"tool_started"','}');
INSERT INTO "shapes" VALUES(12,'tool_finished',1,'{"type":"tool_finished"','}');
INSERT INTO "shapes" VALUES(13,'approval_asked',1,'{"type":"approval_asked"','}');
INSERT INTO "shapes" VALUES(14,'approval_answered',1,'{"type":"approval_answered"','}');
INSERT INTO "shapes" VALUES(15,'question_asked',1,'{"type":"question_asked"','}');
INSERT INTO "shapes" VALUES(16,'question_answered',1,'{"type":"question_answered"','}');
INSERT INTO "shapes" VALUES(17,'rewound',1,'{"type":"rewound"','}');
INSERT INTO "shapes" VALUES(18,'turn_ended',1,'{"type":"turn_ended"','}');
INSERT INTO "shapes" VALUES(19,'session_opened',1,'{"type":"session_opened","source":"','}');
INSERT INTO "shapes" VALUES(20,'session_ended',1,'{"type":"session_ended","reason":"','"}');
INSERT INTO "shapes" VALUES(21,'titled',1,'{"type":"titled","title":"','"}');
INSERT INTO "shapes" VALUES(22,'message_received',1,'{"type":"message_received","message":{"type":"user","parts":[{"type":"text","text":"','"}');
INSERT INTO "shapes" VALUES(23,'message_received',1,'{"type":"message_received","message":{"type":"user","parts":[{"type":"text","text":"','"}}');
INSERT INTO "shapes" VALUES(24,'message_received',1,'{"type":"message_received","message":{"type":"user","parts":[{"type":"text","text":"','"}]}}');
INSERT INTO "shapes" VALUES(25,'turn_started',1,'{"type":"turn_started","takes":[',']}');
INSERT INTO "shapes" VALUES(26,'steered',1,'{"type":"steered","takes":[',']}');
INSERT INTO "shapes" VALUES(27,'model_called',1,'{"type":"model_called","model":"','}');
INSERT INTO "shapes" VALUES(28,'reply_added',1,'{"type":"reply_added","message":{"type":"assistant","parts":[{"type":"','"}');
INSERT INTO "shapes" VALUES(29,'reply_added',1,'{"type":"reply_added","message":{"type":"assistant","parts":[{"type":"text","text":"','"}');
INSERT INTO "shapes" VALUES(30,'reply_added',1,'{"type":"reply_added","message":{"type":"assistant","parts":[{"type":"text","text":"','"}]},"usage":{},"model":"","provider":""}');
INSERT INTO "shapes" VALUES(31,'tool_intended',1,'{"type":"tool_intended","call_id":"','}');
INSERT INTO "shapes" VALUES(32,'tool_started',1,'{"type":"tool_started","call_id":"','"}');
INSERT INTO "shapes" VALUES(33,'tool_finished',1,'{"type":"tool_finished","result":{"type":"tool_result","call_id":"','}');
INSERT INTO "shapes" VALUES(34,'turn_ended',1,'{"type":"turn_ended","reason":"','}');
INSERT INTO "shapes" VALUES(35,'turn_ended',1,'{"type":"turn_ended","reason":"done","usage":{}}','');
INSERT INTO "shapes" VALUES(36,'message_received',1,'{"type":"message_received","message":{"type":"user","parts":[{"type":"text","text":"','"}]},"past":true}');
INSERT INTO "shapes" VALUES(37,'call_settled',1,'{"type":"call_settled"','}');
INSERT INTO "shapes" VALUES(38,'cap_raised',1,'{"type":"cap_raised"','}');
INSERT INTO "shapes" VALUES(39,'call_settled',1,'{"type":"call_settled","call":"call_','}');
INSERT INTO "shapes" VALUES(40,'effect_decided',1,'{"type":"effect_decided"','}');
CREATE TABLE summaries(
    session INTEGER PRIMARY KEY, last_n INTEGER NOT NULL, title TEXT NOT NULL,
    source TEXT NOT NULL, cwd TEXT NOT NULL, model TEXT NOT NULL, provider TEXT NOT NULL,
    principal TEXT NOT NULL, preview TEXT NOT NULL, started_at REAL NOT NULL,
    last_at REAL NOT NULL, ended_at REAL, end_reason TEXT NOT NULL,
    message_count INTEGER NOT NULL, tool_call_count INTEGER NOT NULL,
    api_calls INTEGER NOT NULL, input INTEGER NOT NULL, output INTEGER NOT NULL,
    cache_read INTEGER NOT NULL, cache_write INTEGER NOT NULL, reasoning INTEGER NOT NULL,
    cost REAL, call_turn TEXT NOT NULL, call_cause TEXT NOT NULL, call_booked INTEGER NOT NULL,
    job TEXT NOT NULL, task TEXT NOT NULL, task_tokens INTEGER NOT NULL,
    task_cost INTEGER NOT NULL);
INSERT INTO "summaries" VALUES(1,13,'','cli','/work/plan','small-1','acme','owner','Push it',1760000000.0,1760000001.5,NULL,'',3,1,0,0,0,0,0,0,NULL,'','',0,'golden-one','turn_1',0,0);
CREATE TABLE usage(
    session INTEGER NOT NULL, day INTEGER NOT NULL, model TEXT NOT NULL, provider TEXT NOT NULL,
    cause TEXT NOT NULL, calls INTEGER NOT NULL, replies INTEGER NOT NULL,
    input INTEGER NOT NULL, output INTEGER NOT NULL, cache_read INTEGER NOT NULL,
    cache_write INTEGER NOT NULL, reasoning INTEGER NOT NULL, cost INTEGER NOT NULL,
    unpriced INTEGER NOT NULL,
    PRIMARY KEY(session, day, model, provider, cause)) WITHOUT ROWID;
INSERT INTO "usage" VALUES(1,20370,'small-1','acme','chat',0,2,0,0,0,0,0,0,2);
CREATE INDEX sessions_parent ON sessions(parent) WHERE parent IS NOT NULL;
CREATE UNIQUE INDEX log_place ON log(session, n);
CREATE VIEW events AS
    SELECT id, session, n, turn_id,
        (SELECT kind FROM shapes WHERE shape = log.shape) AS kind,
        (SELECT version FROM shapes WHERE shape = log.shape) AS version,
        (SELECT head || log.rest || tail FROM shapes WHERE shape = log.shape) AS body,
        at, hash
    FROM log;
CREATE INDEX inbox_waiting ON inbox(session, id) WHERE taken = 0;
CREATE UNIQUE INDEX inbox_key ON inbox(session, key) WHERE key <> '';
CREATE INDEX quarantine_session ON quarantine(session);
CREATE INDEX carried_id ON carried(id);
CREATE INDEX summaries_title ON summaries(title) WHERE title <> '';
CREATE INDEX usage_day ON usage(day);
CREATE INDEX raised_key ON raised(scope, key);
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('sessions',1);
INSERT INTO "sqlite_sequence" VALUES('inbox',1);
COMMIT;
PRAGMA user_version = 2;
