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
INSERT INTO "daily" VALUES(20254,'owner',4,500000000000);
CREATE TABLE due_times(
    id INTEGER PRIMARY KEY AUTOINCREMENT, job TEXT NOT NULL, due_at REAL NOT NULL,
    owner TEXT NOT NULL, state TEXT NOT NULL, session_id TEXT NOT NULL DEFAULT '',
    claimed_at REAL NOT NULL, started_at REAL, ended_at REAL,
    error TEXT NOT NULL DEFAULT '', delivery TEXT NOT NULL DEFAULT '');
CREATE TABLE inbox(
    id INTEGER PRIMARY KEY AUTOINCREMENT, session INTEGER NOT NULL, key TEXT NOT NULL,
    body TEXT NOT NULL, at REAL NOT NULL, taken INTEGER NOT NULL DEFAULT 0);
INSERT INTO "inbox" VALUES(1,1,'m9','{"type":"say","text":"Are you there?","key":"m9"}',1750000000.0,0);
CREATE TABLE jobs(
    job TEXT PRIMARY KEY, tokens INTEGER NOT NULL, cost INTEGER NOT NULL) WITHOUT ROWID;
INSERT INTO "jobs" VALUES('golden-one',4,500000000000);
CREATE TABLE leases(session INTEGER PRIMARY KEY, owner TEXT NOT NULL, fence INTEGER NOT NULL);
INSERT INTO "leases" VALUES(1,'',1);
CREATE TABLE log(
    id INTEGER PRIMARY KEY, session INTEGER NOT NULL, n INTEGER NOT NULL, turn_id TEXT NOT NULL,
    shape INTEGER NOT NULL, rest TEXT NOT NULL, at REAL NOT NULL, hash BLOB NOT NULL);
INSERT INTO "log" VALUES(1,1,1,'',19,'cli","cwd":"/work/plan","model":"small-1","provider":"acme","system":"You help."',1750000000.0,X'6E917272835D1C72159EE18E15DB7DA1');
INSERT INTO "log" VALUES(2,1,2,'turn_1',20,'text',1750000000.0,X'AB517A658B50FD421240141B8A3F234F');
INSERT INTO "log" VALUES(3,1,3,'turn_1',21,'text',1750000000.0,X'4EA6844D96F055A526591F953601D743');
INSERT INTO "log" VALUES(4,1,4,'turn_1',4,',"model":"text","provider":"text"',1750000000.0,X'267190B2D60B128FF8C8BB98D18EEFEA');
INSERT INTO "log" VALUES(5,1,5,'turn_1',5,',"message":{"type":"user","parts":[{"type":"text","text":"text"}],"origin":"text"},"key":"text","steer":true,"past":true,"calls":[{"type":"tool_call","id":"text","name":"text","arguments":{"key":"value"},"broken":"text"}]',1750000000.0,X'FB41E991D00D3C2B1EF20727288D9DCF');
INSERT INTO "log" VALUES(6,1,6,'turn_1',25,'1',1750000000.0,X'C9CF7AE62C234D55F7B859891A6BC259');
INSERT INTO "log" VALUES(7,1,7,'turn_1',26,'1',1750000000.0,X'D800CF359053C28A3741CE5E0FC75958');
INSERT INTO "log" VALUES(8,1,8,'turn_1',27,'text","provider":"text","call":"text","cause":"text","reserved":{"input":1,"output":1,"cache_read":1,"cache_write":1,"reasoning":1,"requests":1,"cost":0.5,"estimated":true}',1750000000.0,X'013E7D2783E7497356F8F968DF6605B1');
INSERT INTO "log" VALUES(9,1,9,'turn_1',29,'text"}],"stop":"calls"},"usage":{"input":1,"output":1,"cache_read":1,"cache_write":1,"reasoning":1,"requests":1,"cost":0.5,"estimated":true},"model":"text","provider":"text',1750000000.0,X'AF5B63AB424109EAF1F7A353608D0BDC');
INSERT INTO "log" VALUES(10,1,10,'turn_1',31,'text","name":"text","repeat":"never","judged":[{"effect":{"type":"run_command","script":"text","cwd":"text","background":true,"grants":["text"],"offline":true},"decision":{"type":"allow","harmless":true,"reason":"text","lifted":true,"offline":true}}]',1750000000.0,X'F5D9E9ECDE243FFA43C2FE2BB2DCF114');
INSERT INTO "log" VALUES(11,1,11,'turn_1',32,'text',1750000000.0,X'87761AE7DB3AEFFC2F54AC43ADEA35FB');
INSERT INTO "log" VALUES(12,1,12,'turn_1',33,'text","name":"text","parts":[{"type":"text","text":"text"}],"failed":true,"origin":"text","details":{"key":"value"},"denied":"person"},"seconds":0.5',1750000000.0,X'C45309F6A61323E03EE3CE0B6D5E814D');
INSERT INTO "log" VALUES(13,1,13,'turn_1',13,',"id":"text","call_id":"text","effect":{"type":"run_command","script":"text","cwd":"text","background":true,"grants":["text"],"offline":true},"reason":"text","category":"text","scopes":["text"],"expires_seconds":0.5,"lasting":["text"]',1750000000.0,X'B8C9B32EF55E4AFADB3DD37703C1CDF0');
INSERT INTO "log" VALUES(14,1,14,'turn_1',14,',"id":"text","choice":"text","by":"text","reason":"text"',1750000000.0,X'890571278DBE8BB9BB97042A79BAA9EC');
INSERT INTO "log" VALUES(15,1,15,'turn_1',15,',"id":"text","call_id":"text","question":"text","choices":["text"],"expires_seconds":0.5,"secret":true',1750000000.0,X'CB21B33AA8F0E0AF24CAA62D494F55AF');
INSERT INTO "log" VALUES(16,1,16,'turn_1',16,',"id":"text","text":"text","by":"text"',1750000000.0,X'8163674A951872D63888967E92196E6A');
INSERT INTO "log" VALUES(17,1,17,'turn_1',17,',"turns":1',1750000000.0,X'355AA57DC40AB958FD4D457D06578C9F');
INSERT INTO "log" VALUES(18,1,18,'turn_1',34,'budget","usage":{"input":1,"output":1,"cache_read":1,"cache_write":1,"reasoning":1,"requests":1,"cost":0.5,"estimated":true},"detail":"text","error":"text"',1750000000.0,X'BEDE2EE64444BB640B215DF1FDF6147A');
INSERT INTO "log" VALUES(19,1,19,'turn_1',37,',"call":"text","usage":{"input":1,"output":1,"cache_read":1,"cache_write":1,"reasoning":1,"requests":1,"cost":0.5,"estimated":true},"model":"text","provider":"text","corrected":true',1750000000.0,X'79D21D8953620992C279988E33C968F6');
INSERT INTO "log" VALUES(20,1,20,'turn_1',38,',"scope":"day","key":"text","usd":0.5,"tokens":1,"by":"text"',1750000000.0,X'B6495EB9B40C0E39294385193FA96DB4');
INSERT INTO "log" VALUES(21,1,21,'turn_1',40,',"call_id":"text","judged":{"effect":{"type":"run_command","script":"text","cwd":"text","background":true,"grants":["text"],"offline":true},"decision":{"type":"allow","harmless":true,"reason":"text","lifted":true,"offline":true}},"by":"text"',1750000000.0,X'165F7809ACAF49FBEA951597E53F6D1E');
INSERT INTO "log" VALUES(22,1,22,'turn_1',41,',"upto":1,"head":[{"type":"user","parts":[{"type":"text","text":"text"}],"origin":"text"}],"summarised":1,"summary":"text","cause":"asked","topic":"text","keep":1,"window":1,"tokens_before":1,"tokens_after":1,"scale":0.5,"system":"text","origins":["text"]',1750000000.0,X'8B26DF0E8795773BABF3F44387971C52');
INSERT INTO "log" VALUES(23,1,23,'turn_1',42,',"name":"text","text":"text"',1750000000.0,X'4F4437BE652EEEAD324531E8B75758C2');
INSERT INTO "log" VALUES(24,1,24,'turn_1',43,',"records":[1],"by":"text"',1750000000.0,X'6A65A0CDB3D422F477362401D7EC04D9');
INSERT INTO "log" VALUES(25,1,25,'turn_1',44,',"n":1',1750000000.0,X'4CAE395EA3EF407B6F1B0D626D450B42');
INSERT INTO "log" VALUES(26,1,26,'turn_1',45,',"hook":"text","action":"approve","call_id":"text","text":"text","arguments":{"key":"value"},"origins":["text"]',1750000000.0,X'F95A8393AAE9DC05F5EF439E4CE8D3D6');
INSERT INTO "log" VALUES(27,1,27,'turn_1',46,',"effort":"text","tier":"text","mode":"text"',1750000000.0,X'FE8DB3DB6A44FC0AC856DACD47825D5C');
INSERT INTO "log" VALUES(28,1,28,'turn_1',47,',"away":true',1750000000.0,X'183795399B3F494B4031AE630DAC5709');
INSERT INTO "log" VALUES(29,1,29,'turn_1',48,',"call_id":"text","key":"text","name":"text","arguments":{"key":"value"}',1750000000.0,X'6ECDE52A4775DA583FD7BA8992CE3C4C');
INSERT INTO "log" VALUES(30,1,30,'turn_1',49,',"call_id":"text","key":"text","result":{"type":"tool_result","call_id":"text","name":"text","parts":[{"type":"text","text":"text"}],"failed":true,"origin":"text","details":{"key":"value"},"denied":"person"},"seconds":0.5',1750000000.0,X'2056550EA3440A7C7BCCA44BFA232CDA');
INSERT INTO "log" VALUES(31,1,31,'turn_1',50,',"id":"text","goal":"text","check":"text","why":"text","max_turns":1,"max_usd":0.5,"usd_before":0.5',1750000000.0,X'9F5EE4A8EC99333C24D024719644FE99');
INSERT INTO "log" VALUES(32,1,32,'turn_1',29,'One, two, th"}],"stop":"interrupted"},"usage":{},"model":"small-1","provider":"acme',1750000000.0,X'DADC7897D6A909E32045FC63D6244A50');
CREATE TABLE message_keys(
    session INTEGER NOT NULL, key TEXT NOT NULL, n INTEGER NOT NULL,
    PRIMARY KEY(session, key)) WITHOUT ROWID;
INSERT INTO "message_keys" VALUES(1,'text',5);
CREATE TABLE meta(name TEXT PRIMARY KEY, value) WITHOUT ROWID;
INSERT INTO "meta" VALUES('projections',3);
CREATE TABLE owners(owner TEXT PRIMARY KEY, beat REAL NOT NULL) WITHOUT ROWID;
INSERT INTO "owners" VALUES('30226-904bd0f81a8c',1750000000.0);
CREATE TABLE posts(
    id INTEGER PRIMARY KEY AUTOINCREMENT, key TEXT NOT NULL UNIQUE, platform TEXT NOT NULL,
    address TEXT NOT NULL, body TEXT NOT NULL, state TEXT NOT NULL,
    message_id TEXT NOT NULL DEFAULT '', session_id TEXT NOT NULL DEFAULT '',
    attempts INTEGER NOT NULL DEFAULT 0, at REAL NOT NULL, changed_at REAL NOT NULL,
    note TEXT NOT NULL DEFAULT '');
CREATE TABLE quarantine(
    event INTEGER PRIMARY KEY, session INTEGER NOT NULL, n INTEGER NOT NULL,
    why TEXT NOT NULL, found_at REAL NOT NULL);
CREATE TABLE raised(
    session INTEGER NOT NULL, scope TEXT NOT NULL, key TEXT NOT NULL, cost INTEGER NOT NULL,
    tokens INTEGER NOT NULL, PRIMARY KEY(session, scope, key)) WITHOUT ROWID;
INSERT INTO "raised" VALUES(1,'day','text',500000000000,1);
CREATE TABLE received(
    id INTEGER PRIMARY KEY AUTOINCREMENT, platform TEXT NOT NULL, key TEXT NOT NULL,
    session_key TEXT NOT NULL, body TEXT NOT NULL, at REAL NOT NULL, state TEXT NOT NULL,
    session_id TEXT NOT NULL DEFAULT '', changed_at REAL NOT NULL, note TEXT NOT NULL DEFAULT '');
CREATE TABLE removed(session INTEGER PRIMARY KEY, id TEXT NOT NULL, at REAL NOT NULL);
CREATE TABLE routes(
    key TEXT PRIMARY KEY, session_id TEXT NOT NULL, body TEXT NOT NULL,
    used_at REAL NOT NULL) WITHOUT ROWID;
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
INSERT INTO "shapes" VALUES(46,'tuned',1,'{"type":"tuned"','}');
INSERT INTO "shapes" VALUES(47,'archived',1,'{"type":"archived"','}');
INSERT INTO "shapes" VALUES(48,'inner_call_intended',1,'{"type":"inner_call_intended"','}');
INSERT INTO "shapes" VALUES(49,'inner_call_finished',1,'{"type":"inner_call_finished"','}');
INSERT INTO "shapes" VALUES(50,'goal_changed',1,'{"type":"goal_changed"','}');
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
INSERT INTO "summaries" VALUES(1,32,'text','cli','/work/plan','text','text','owner','',1750000000.0,1750000000.0,NULL,'',2,0,1,1,1,1,1,1,0.5,'turn_1','text',1,'golden-one','turn_1',4,500000000000,0,1);
CREATE TABLE usage(
    session INTEGER NOT NULL, day INTEGER NOT NULL, model TEXT NOT NULL, provider TEXT NOT NULL,
    cause TEXT NOT NULL, calls INTEGER NOT NULL, replies INTEGER NOT NULL,
    input INTEGER NOT NULL, output INTEGER NOT NULL, cache_read INTEGER NOT NULL,
    cache_write INTEGER NOT NULL, reasoning INTEGER NOT NULL, cost INTEGER NOT NULL,
    unpriced INTEGER NOT NULL,
    PRIMARY KEY(session, day, model, provider, cause)) WITHOUT ROWID;
INSERT INTO "usage" VALUES(1,20254,'text','text','text',1,1,1,1,1,1,1,500000000000,0);
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
CREATE UNIQUE INDEX received_key ON received(platform, key);
CREATE INDEX received_open ON received(platform, id) WHERE state <> 'finished';
CREATE INDEX posts_open ON posts(platform, id) WHERE state NOT IN ('confirmed', 'abandoned');
CREATE UNIQUE INDEX due_times_slot ON due_times(job, due_at);
CREATE INDEX due_times_open ON due_times(id) WHERE ended_at IS NULL;
CREATE INDEX summaries_title ON summaries(title) WHERE title <> '';
CREATE INDEX usage_day ON usage(day);
CREATE INDEX raised_key ON raised(scope, key);
CREATE INDEX summaries_recent ON summaries(last_at, session);
CREATE INDEX log_goals ON log(session, n) WHERE shape = 50;
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('sessions',1);
INSERT INTO "sqlite_sequence" VALUES('inbox',1);
COMMIT;
PRAGMA user_version = 3;
