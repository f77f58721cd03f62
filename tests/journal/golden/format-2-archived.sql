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
INSERT INTO "daily" VALUES(20370,'owner',250,500000000000);
CREATE TABLE inbox(
    id INTEGER PRIMARY KEY AUTOINCREMENT, session INTEGER NOT NULL, key TEXT NOT NULL,
    body TEXT NOT NULL, at REAL NOT NULL, taken INTEGER NOT NULL DEFAULT 0);
INSERT INTO "inbox" VALUES(1,1,'m9','{"type":"say","text":"Are you there?","key":"m9"}',1760000120.0,0);
CREATE TABLE jobs(
    job TEXT PRIMARY KEY, tokens INTEGER NOT NULL, cost INTEGER NOT NULL) WITHOUT ROWID;
INSERT INTO "jobs" VALUES('golden-one',250,500000000000);
CREATE TABLE leases(session INTEGER PRIMARY KEY, owner TEXT NOT NULL, fence INTEGER NOT NULL);
INSERT INTO "leases" VALUES(1,'',1);
INSERT INTO "leases" VALUES(2,'',1);
CREATE TABLE log(
    id INTEGER PRIMARY KEY, session INTEGER NOT NULL, n INTEGER NOT NULL, turn_id TEXT NOT NULL,
    shape INTEGER NOT NULL, rest TEXT NOT NULL, at REAL NOT NULL, hash BLOB NOT NULL);
INSERT INTO "log" VALUES(1,1,1,'',19,'cli","cwd":"/work/plan","model":"small-1","provider":"acme","system":"You help."',1760000000.0,X'9AB1A810C8AF053E60ACDC1A7DDFDC08');
INSERT INTO "log" VALUES(2,1,2,'',22,'Question 1?"}]},"key":"k1',1760000000.0,X'1B94F13887362C9158F82E76F3404E92');
INSERT INTO "log" VALUES(3,1,3,'',25,'2',1760000000.0,X'5020CD2A346D364CB95EE37A1001F114');
INSERT INTO "log" VALUES(4,1,4,'',27,'small-1","provider":"acme"',1760000000.0,X'A2565B7EB861F84BC0618B63852C85AC');
INSERT INTO "log" VALUES(5,1,5,'',29,'"},{"type":"tool_call","id":"call_1","name":"read_file","arguments":{"path":"notes.txt"}}]},"usage":{"input":100,"output":20,"cache_read":5,"requests":1,"cost":0.25},"model":"small-1","provider":"acme',1760000000.0,X'B9737675A6E4123EC66BB2C69FFD1DAF');
INSERT INTO "log" VALUES(6,1,6,'',31,'call_1","name":"read_file","repeat":"safe"',1760000000.0,X'8ADCA4651C4136C286F9FC79E964F9B1');
INSERT INTO "log" VALUES(7,1,7,'',32,'call_1',1760000000.0,X'9D103B8BC149E821F218CC0AC7498F0F');
INSERT INTO "log" VALUES(8,1,8,'',33,'call_1","name":"read_file","parts":[{"type":"text","text":"line one"}]},"seconds":0.5',1760000000.0,X'3CC1176CC2032C7220C90D71F0736DF1');
INSERT INTO "log" VALUES(9,1,9,'',27,'small-1","provider":"acme"',1760000000.0,X'9B2F26DED86A134E2649C59A88CC6D13');
INSERT INTO "log" VALUES(10,1,10,'',29,'Answer 1."}]},"usage":{"input":100,"output":20,"cache_read":5,"requests":1,"cost":0.25},"model":"small-1","provider":"acme',1760000000.0,X'D7AA213D3AC53827BB0FB74815A73F2D');
INSERT INTO "log" VALUES(11,1,11,'',34,'done","usage":{"input":200,"output":40,"cache_read":10,"requests":2,"cost":0.5}',1760000000.0,X'D9EBDDFE397450DC63908A5F3EF39018');
INSERT INTO "log" VALUES(12,1,12,'',20,'user_exit',1760000060.0,X'B860DA659A0C7C55872AD51119B5301E');
INSERT INTO "log" VALUES(13,1,13,'',47,',"away":true',1760000060.0,X'CC56EABA6693409057257E2E43A4AF64');
INSERT INTO "log" VALUES(14,2,12,'',19,'api","cwd":"/work/plan","model":"small-1","provider":"acme","system":"You help.","parent":"golden-one","parent_n":11',1760000060.0,X'1F566A3D749FD2CF0B6A548675918B70');
INSERT INTO "log" VALUES(15,2,13,'',21,'Another way',1760000060.0,X'14FA23F0BD29BB6BE0B73D1FCE2BA624');
INSERT INTO "log" VALUES(16,2,14,'',47,',"away":true',1760000060.0,X'BB51FE8AD15D48A5495026044CFE1198');
INSERT INTO "log" VALUES(17,2,15,'',47,',"away":false',1760000120.0,X'91474C0029534E8EAE34FCD1681F0726');
INSERT INTO "log" VALUES(18,2,16,'',22,'Back again"}]},"key":"m2',1760000120.0,X'580235A9CC742E0F3594D1196C6F85B7');
CREATE TABLE message_keys(
    session INTEGER NOT NULL, key TEXT NOT NULL, n INTEGER NOT NULL,
    PRIMARY KEY(session, key)) WITHOUT ROWID;
INSERT INTO "message_keys" VALUES(1,'k1',2);
INSERT INTO "message_keys" VALUES(2,'m2',16);
CREATE TABLE meta(name TEXT PRIMARY KEY, value) WITHOUT ROWID;
INSERT INTO "meta" VALUES('projections',3);
CREATE TABLE owners(owner TEXT PRIMARY KEY, beat REAL NOT NULL) WITHOUT ROWID;
INSERT INTO "owners" VALUES('22678-4ad7b7ebda7e',1760000120.0);
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
INSERT INTO "sessions" VALUES(2,'golden-two',1,11);
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
INSERT INTO "shapes" VALUES(46,'tuned',1,'{"type":"tuned"','}');
INSERT INTO "shapes" VALUES(47,'archived',1,'{"type":"archived"','}');
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
    task_cost INTEGER NOT NULL, inherited INTEGER NOT NULL, archived INTEGER NOT NULL);
INSERT INTO "summaries" VALUES(1,13,'','cli','/work/plan','small-1','acme','owner','Question 1?',1760000000.0,1760000060.0,1760000060.0,'user_exit',3,1,2,200,40,10,0,0,0.5,'','chat',0,'golden-one','',250,500000000000,0,1);
INSERT INTO "summaries" VALUES(2,16,'Another way','api','/work/plan','small-1','acme','owner','Back again',1760000060.0,1760000120.0,NULL,'',1,0,0,0,0,0,0,0,NULL,'','',0,'golden-one','',0,0,3,0);
CREATE TABLE usage(
    session INTEGER NOT NULL, day INTEGER NOT NULL, model TEXT NOT NULL, provider TEXT NOT NULL,
    cause TEXT NOT NULL, calls INTEGER NOT NULL, replies INTEGER NOT NULL,
    input INTEGER NOT NULL, output INTEGER NOT NULL, cache_read INTEGER NOT NULL,
    cache_write INTEGER NOT NULL, reasoning INTEGER NOT NULL, cost INTEGER NOT NULL,
    unpriced INTEGER NOT NULL,
    PRIMARY KEY(session, day, model, provider, cause)) WITHOUT ROWID;
INSERT INTO "usage" VALUES(1,20370,'small-1','acme','chat',2,2,200,40,10,0,0,500000000000,0);
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
INSERT INTO "sqlite_sequence" VALUES('sessions',2);
INSERT INTO "sqlite_sequence" VALUES('inbox',1);
COMMIT;
PRAGMA user_version = 2;
