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
INSERT INTO "daily" VALUES(20370,'owner',37,0);
CREATE TABLE inbox(
    id INTEGER PRIMARY KEY AUTOINCREMENT, session INTEGER NOT NULL, key TEXT NOT NULL,
    body TEXT NOT NULL, at REAL NOT NULL, taken INTEGER NOT NULL DEFAULT 0);
INSERT INTO "inbox" VALUES(1,1,'m9','{"type":"say","text":"Are you there?","key":"m9"}',1760000061.5,0);
CREATE TABLE jobs(
    job TEXT PRIMARY KEY, tokens INTEGER NOT NULL, cost INTEGER NOT NULL) WITHOUT ROWID;
INSERT INTO "jobs" VALUES('golden-one',37,0);
CREATE TABLE leases(session INTEGER PRIMARY KEY, owner TEXT NOT NULL, fence INTEGER NOT NULL);
INSERT INTO "leases" VALUES(1,'',1);
CREATE TABLE log(
    id INTEGER PRIMARY KEY, session INTEGER NOT NULL, n INTEGER NOT NULL, turn_id TEXT NOT NULL,
    shape INTEGER NOT NULL, rest TEXT NOT NULL, at REAL NOT NULL, hash BLOB NOT NULL);
INSERT INTO "log" VALUES(1,1,1,'',19,'cli","cwd":"/work/plan","model":"small-1","provider":"acme","system":"You help."',1760000000.0,X'9AB1A810C8AF053E60ACDC1A7DDFDC08');
INSERT INTO "log" VALUES(2,1,2,'',22,'Tidy up"}]},"key":"m1',1760000001.5,X'183989458094CDB400FFDECFC2FF3402');
INSERT INTO "log" VALUES(3,1,3,'turn_c00000000001',25,'2',1760000001.5,X'927644FB450B81B907E2B1455B40060A');
INSERT INTO "log" VALUES(4,1,4,'turn_c00000000001',45,',"hook":"pre_llm_call","action":"context","text":"It is Friday."',1760000001.5,X'D5571707B68FC680A3A1B198BF82E1F4');
INSERT INTO "log" VALUES(5,1,5,'turn_c00000000001',28,'tool_call","id":"call_1","name":"terminal","arguments":{"command":"rm -r build"}},{"type":"tool_call","id":"call_2","name":"terminal","arguments":{"command":"ls /"}},{"type":"tool_call","id":"call_3","name":"terminal","arguments":{"command":"make"}}],"stop":"calls"},"usage":{"input":10,"output":5,"requests":1},"model":"small-1","provider":"acme',1760000001.5,X'051297C50991D1C7A976A8F9A406B664');
INSERT INTO "log" VALUES(6,1,6,'turn_c00000000001',45,',"hook":"pre_tool_call","action":"modify","call_id":"call_1","arguments":{"command":"rm -r build/tmp"}',1760000001.5,X'6341955417B13D197F9FEC370E902B81');
INSERT INTO "log" VALUES(7,1,7,'turn_c00000000001',45,',"hook":"pre_tool_call","action":"block","call_id":"call_2","text":"Not there."',1760000001.5,X'BF8FF1055E76FC1E0D66952721CF40CA');
INSERT INTO "log" VALUES(8,1,8,'turn_c00000000001',33,'call_2","name":"terminal","parts":[{"type":"text","text":"Not there."}],"failed":true,"details":{"blocked_by":"hook"}}',1760000001.5,X'19E613F0DDCC6FA3F7B9D221E5ABE78F');
INSERT INTO "log" VALUES(9,1,9,'turn_c00000000001',45,',"hook":"pre_tool_call","action":"approve","call_id":"call_3","text":"Is it wanted?"',1760000001.5,X'7866409017622594130EE7FB7DEBDA0D');
INSERT INTO "log" VALUES(10,1,10,'turn_c00000000001',33,'call_1","name":"terminal","parts":[{"type":"text","text":"ok"}]},"seconds":0.25',1760000001.5,X'EAC35FA0CBE2B138BC0AD0B3B5CD9B44');
INSERT INTO "log" VALUES(11,1,11,'turn_c00000000001',33,'call_3","name":"terminal","parts":[{"type":"text","text":"made"}],"details":{"transformed":true}},"seconds":0.5',1760000001.5,X'61B371F75D2787E419E52F520AE268F9');
INSERT INTO "log" VALUES(12,1,12,'turn_c00000000001',45,',"hook":"transform_llm_output","action":"replace","text":"Done."',1760000001.5,X'EC75862B04F3D492C14B6146638DBAC3');
INSERT INTO "log" VALUES(13,1,13,'turn_c00000000001',29,'Done."}]},"usage":{"input":20,"output":2,"requests":1},"model":"small-1","provider":"acme',1760000001.5,X'47348832117E809F9D5B1F9E9BD66075');
INSERT INTO "log" VALUES(14,1,14,'turn_c00000000001',34,'done","usage":{"input":30,"output":7,"requests":2},"detail":"text_response(done)"',1760000001.5,X'6EF62EE693F90BD3620D16166A5A6040');
CREATE TABLE message_keys(
    session INTEGER NOT NULL, key TEXT NOT NULL, n INTEGER NOT NULL,
    PRIMARY KEY(session, key)) WITHOUT ROWID;
INSERT INTO "message_keys" VALUES(1,'m1',2);
CREATE TABLE meta(name TEXT PRIMARY KEY, value) WITHOUT ROWID;
INSERT INTO "meta" VALUES('projections',2);
CREATE TABLE owners(owner TEXT PRIMARY KEY, beat REAL NOT NULL) WITHOUT ROWID;
INSERT INTO "owners" VALUES('9899-939ee916985e',1760000061.5);
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
INSERT INTO "shapes" VALUES(41,'compacted',1,'{"type":"compacted"','}');
INSERT INTO "shapes" VALUES(42,'overlaid',1,'{"type":"overlaid"','}');
INSERT INTO "shapes" VALUES(43,'erased',1,'{"type":"erased"','}');
INSERT INTO "shapes" VALUES(44,'withdrawn',1,'{"type":"withdrawn"','}');
INSERT INTO "shapes" VALUES(45,'hook_answered',1,'{"type":"hook_answered"','}');
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
INSERT INTO "summaries" VALUES(1,14,'','cli','/work/plan','small-1','acme','owner','Tidy up',1760000000.0,1760000001.5,NULL,'',3,3,0,30,7,0,0,0,NULL,'','',0,'golden-one','turn_c00000000001',37,0);
CREATE TABLE usage(
    session INTEGER NOT NULL, day INTEGER NOT NULL, model TEXT NOT NULL, provider TEXT NOT NULL,
    cause TEXT NOT NULL, calls INTEGER NOT NULL, replies INTEGER NOT NULL,
    input INTEGER NOT NULL, output INTEGER NOT NULL, cache_read INTEGER NOT NULL,
    cache_write INTEGER NOT NULL, reasoning INTEGER NOT NULL, cost INTEGER NOT NULL,
    unpriced INTEGER NOT NULL,
    PRIMARY KEY(session, day, model, provider, cause)) WITHOUT ROWID;
INSERT INTO "usage" VALUES(1,20370,'small-1','acme','chat',0,2,30,7,0,0,0,0,2);
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
