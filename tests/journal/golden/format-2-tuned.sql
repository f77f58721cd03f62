BEGIN TRANSACTION;
CREATE TABLE assumed(
    session INTEGER NOT NULL, call TEXT NOT NULL, day INTEGER NOT NULL, turn TEXT NOT NULL,
    model TEXT NOT NULL, provider TEXT NOT NULL, cause TEXT NOT NULL, input INTEGER NOT NULL,
    output INTEGER NOT NULL, cost INTEGER NOT NULL, priced INTEGER NOT NULL,
    open INTEGER NOT NULL, PRIMARY KEY(session, call)) WITHOUT ROWID;
INSERT INTO "assumed" VALUES(4,'call_000000000003',20371,'turn_a00000000002','small-1','acme','cron',1200,4096,44500000000,1,0);
INSERT INTO "assumed" VALUES(4,'call_000000000004',20371,'turn_a00000000002','small-1','acme','cron',1200,4096,44500000000,1,1);
CREATE TABLE carried(
    id TEXT NOT NULL, principal TEXT NOT NULL, job TEXT NOT NULL, day INTEGER NOT NULL,
    model TEXT NOT NULL, provider TEXT NOT NULL, cause TEXT NOT NULL, calls INTEGER NOT NULL,
    replies INTEGER NOT NULL, input INTEGER NOT NULL, output INTEGER NOT NULL,
    cache_read INTEGER NOT NULL, cache_write INTEGER NOT NULL, reasoning INTEGER NOT NULL,
    cost INTEGER NOT NULL, unpriced INTEGER NOT NULL, assumed_calls INTEGER NOT NULL,
    assumed_input INTEGER NOT NULL, assumed_output INTEGER NOT NULL,
    assumed_cost INTEGER NOT NULL, assumed_unpriced INTEGER NOT NULL);
INSERT INTO "carried" VALUES('golden-gone','owner','golden-gone',20371,'small-1','acme','chat',1,1,900,120,200,0,0,4100000000,0,0,0,0,0,0);
CREATE TABLE daily(
    day INTEGER NOT NULL, principal TEXT NOT NULL, tokens INTEGER NOT NULL,
    cost INTEGER NOT NULL, PRIMARY KEY(day, principal)) WITHOUT ROWID;
INSERT INTO "daily" VALUES(20370,'owner',590,625000000000);
INSERT INTO "daily" VALUES(20371,'owner',13032,97200000000);
CREATE TABLE inbox(
    id INTEGER PRIMARY KEY AUTOINCREMENT, session INTEGER NOT NULL, key TEXT NOT NULL,
    body TEXT NOT NULL, at REAL NOT NULL, taken INTEGER NOT NULL DEFAULT 0);
INSERT INTO "inbox" VALUES(1,1,'m9','{"type":"say","text":"Are you there?","key":"m9"}',1760086461.5,0);
CREATE TABLE jobs(
    job TEXT PRIMARY KEY, tokens INTEGER NOT NULL, cost INTEGER NOT NULL) WITHOUT ROWID;
INSERT INTO "jobs" VALUES('golden-gone',1220,4100000000);
INSERT INTO "jobs" VALUES('golden-one',590,625000000000);
INSERT INTO "jobs" VALUES('nightly',11812,93100000000);
CREATE TABLE leases(session INTEGER PRIMARY KEY, owner TEXT NOT NULL, fence INTEGER NOT NULL);
INSERT INTO "leases" VALUES(1,'',1);
INSERT INTO "leases" VALUES(2,'',3);
INSERT INTO "leases" VALUES(3,'',1);
INSERT INTO "leases" VALUES(4,'',1);
CREATE TABLE log(
    id INTEGER PRIMARY KEY, session INTEGER NOT NULL, n INTEGER NOT NULL, turn_id TEXT NOT NULL,
    shape INTEGER NOT NULL, rest TEXT NOT NULL, at REAL NOT NULL, hash BLOB NOT NULL);
INSERT INTO "log" VALUES(1,1,1,'',19,'cli","cwd":"/work/plan","model":"small-1","provider":"acme","system":"You help.","tools":["read_file","terminal"]',1760000000.0,X'CCFE46D513B5A7EE3F12B9567BE28E24');
INSERT INTO "log" VALUES(2,1,2,'',21,'Plan',1760000000.0,X'E62577EA4DF10C41F594F1E94FDFBC76');
INSERT INTO "log" VALUES(3,1,3,'turn_0123456789ab',22,'[forgotten]"}]},"key":"k1',1760000001.5,X'7B6C78585A17914227D6F8E1425137B0');
INSERT INTO "log" VALUES(4,1,4,'turn_0123456789ab',25,'3',1760000001.5,X'BBA7D267DCC7CA3BFC9AA628AD851536');
INSERT INTO "log" VALUES(5,1,5,'turn_0123456789ab',27,'small-1","provider":"acme"',1760000001.5,X'B759D0954BB1932D80B57952C7319937');
INSERT INTO "log" VALUES(6,1,6,'turn_0123456789ab',29,'"},{"type":"tool_call","id":"call_1","name":"read_file","arguments":{"path":"notes.txt"}}]},"usage":{"input":100,"output":20,"cache_read":5,"requests":1,"cost":0.25},"model":"small-1","provider":"acme',1760000001.5,X'D8A1296724995AD41A0470F0D3259325');
INSERT INTO "log" VALUES(7,1,7,'turn_0123456789ab',31,'call_1","name":"read_file","repeat":"safe"',1760000001.5,X'58D2F61CBDFAEF6974CB0D7779AD1206');
INSERT INTO "log" VALUES(8,1,8,'turn_0123456789ab',32,'call_1',1760000001.5,X'AEDA10D13198B079423B8556AC1FF9B9');
INSERT INTO "log" VALUES(9,1,9,'turn_0123456789ab',33,'call_1","name":"read_file","parts":[{"type":"text","text":"line one"}]},"seconds":0.5',1760000001.5,X'BFEB9532AF098CB07EC8C7207CDA7816');
INSERT INTO "log" VALUES(10,1,10,'turn_0123456789ab',27,'small-1","provider":"acme"',1760000001.5,X'ED308BBEA09581ABE3C5F6A9341C1385');
INSERT INTO "log" VALUES(11,1,11,'turn_0123456789ab',29,'Answer 1."}]},"usage":{"input":100,"output":20,"cache_read":5,"requests":1,"cost":0.25},"model":"small-1","provider":"acme',1760000001.5,X'68E29B39B9EA8D25DE99BCDBCAC40F9E');
INSERT INTO "log" VALUES(12,1,12,'turn_0123456789ab',34,'done","usage":{"input":200,"output":40,"cache_read":10,"requests":2,"cost":0.5}',1760000001.5,X'DBDBD3BDE846676339FF231CBD98BAF0');
INSERT INTO "log" VALUES(13,1,13,'turn_ba9876543210',22,'Run the \"tests\"\né 漢 🧭 \u0000"},{"type":"image","file":"cache/images/a.png","media_type":"image/png"}]},"key":"m2',1760000061.5,X'632721A96AAA0C7012CD954657B1AFA2');
INSERT INTO "log" VALUES(14,1,14,'turn_ba9876543210',5,',"message":{"type":"user","parts":[{"type":"text","text":"process ended"}],"origin":"process:proc_1"},"steer":true',1760000061.5,X'6C440934B10DBECD264F90D1F5AF41FE');
INSERT INTO "log" VALUES(15,1,15,'turn_ba9876543210',25,'13',1760000061.5,X'09271BBA339DF1787475AE8082F4B913');
INSERT INTO "log" VALUES(16,1,16,'turn_ba9876543210',26,'14',1760000061.5,X'651376BC39A34E0FBD4FD57196700B5C');
INSERT INTO "log" VALUES(17,1,17,'turn_ba9876543210',27,'small-1","provider":"acme","reserved":{"input":500,"output":100,"cost":0.5}',1760000061.5,X'AD72B5AB7FDDA61D1A345E64B64A53F1');
INSERT INTO "log" VALUES(18,1,18,'turn_ba9876543210',28,'reasoning","text":"Hm.","sealed":{"signature":"abc"},"issuer":"acme"},{"type":"text","text":"I run them."},{"type":"tool_call","id":"call_2","name":"terminal","arguments":{"command":"make test","n":[1,2.5,null,true]}}],"stop":"calls"},"usage":{"input":300,"output":40,"reasoning":7,"requests":1,"cost":0.125},"model":"small-1","provider":"acme',1760000061.5,X'4DBFAE9DB43511B4D5861B1E86C07B1E');
INSERT INTO "log" VALUES(19,1,19,'turn_ba9876543210',31,'call_2","name":"terminal","repeat":"never","judged":[{"effect":{"type":"run_command","script":"make test","cwd":"/work/plan"},"decision":{"type":"ask","reason":"It runs a program.","category":"command"}}]',1760000061.5,X'F890B1719873BA694F69427040773067');
INSERT INTO "log" VALUES(20,1,20,'turn_ba9876543210',13,',"id":"ask_1","call_id":"call_2","effect":{"type":"run_command","script":"make test","cwd":"/work/plan"},"reason":"It runs a program.","category":"command","scopes":["once","session"],"expires_seconds":120.0',1760000061.5,X'C34E0BB4950EDC59407911A0069BA304');
INSERT INTO "log" VALUES(21,1,21,'turn_ba9876543210',14,',"id":"ask_1","choice":"once","by":"owner"',1760000061.5,X'DD794946EC38FD3FFEE3607AA30F8B6C');
INSERT INTO "log" VALUES(22,1,22,'turn_ba9876543210',32,'call_2',1760000061.5,X'C043EB8ECA85636174BF012D72DF8111');
INSERT INTO "log" VALUES(23,1,23,'turn_ba9876543210',33,'call_2","name":"terminal","parts":[{"type":"text","text":"ok"}],"details":{"exit_code":0}},"seconds":2.25',1760000061.5,X'9B1D93E8FF97A130C80F1C5C7BB9C9EB');
INSERT INTO "log" VALUES(24,1,24,'turn_ba9876543210',15,',"id":"q_1","call_id":"call_2","question":"Go on?","choices":["yes","no"],"expires_seconds":60.0',1760000061.5,X'2434902732D0757682DA5DFE5E30C9EE');
INSERT INTO "log" VALUES(25,1,25,'turn_ba9876543210',16,',"id":"q_1","text":"yes","by":"owner"',1760000061.5,X'4C6CC0B9A989BC89485FCFB99C9FED9C');
INSERT INTO "log" VALUES(26,1,26,'turn_ba9876543210',4,',"model":"big-1","provider":"other"',1760000061.5,X'7DB90EF6EA4554C7E173900BDEE4ED6F');
INSERT INTO "log" VALUES(27,1,27,'turn_ba9876543210',17,',"turns":1',1760000061.5,X'7038389E59BB5191FC6983A5ECA8E8CB');
INSERT INTO "log" VALUES(28,1,28,'turn_ba9876543210',34,'failed","usage":{"input":300,"output":40,"cost":0.125},"detail":"cut","error":"The model stopped."',1760000061.5,X'01C122044A431260181D118699D61314');
INSERT INTO "log" VALUES(29,1,29,'',20,'user_exit',1760086461.5,X'322141909881AC114043861B782F8A60');
INSERT INTO "log" VALUES(30,2,13,'',19,'telegram","cwd":"/work/plan","model":"small-1","provider":"acme","system":"You help.","principal":"member","parent":"golden-one","parent_n":12',1760086466.5,X'65605C4F9F3D19B3589100DAEFBD3F8E');
INSERT INTO "log" VALUES(31,2,14,'',21,'Plan #2',1760086466.5,X'91D79FD6CC7DD979777B07C3C5C9494E');
INSERT INTO "log" VALUES(32,2,15,'',22,'Another way"}]},"key":"m3',1760086466.5,X'DB0F4D9565A83575A3F4FF11E3991E66');
INSERT INTO "log" VALUES(33,3,1,'',19,'subagent","cwd":"/work/plan","model":"small-1","provider":"acme","system":"You help.","parent":"golden-two"',1760086466.5,X'9FCA9D283D4D4D3D97EE47BC8105251F');
INSERT INTO "log" VALUES(34,4,1,'',19,'cron","cwd":"/work/plan","model":"small-1","provider":"acme","system":"You help.","job":"nightly"',1760100000.0,X'64789EB1DB4CD5086DAFFE89CC8D458C');
INSERT INTO "log" VALUES(35,4,2,'',22,'What did it cost?"}]},"key":"c1',1760100000.0,X'C51ABE40F572FC6FBA0F71DCDCE2E710');
INSERT INTO "log" VALUES(36,4,3,'turn_a00000000001',25,'2',1760100000.0,X'7B4641EC564617F50B71A0D1C9DBE290');
INSERT INTO "log" VALUES(37,4,4,'turn_a00000000001',27,'small-1","provider":"acme","call":"call_000000000001","cause":"cron","reserved":{"input":1200,"output":4096,"requests":1,"cost":0.0445}',1760100002.0,X'3493DC451D4005BA51A90123169B1B22');
INSERT INTO "log" VALUES(38,4,5,'turn_a00000000001',39,'000000000001","usage":{"requests":1,"cost":0.0},"model":"small-1","provider":"acme"',1760100002.0,X'45234E12829091F18152DFD6ACFE39E4');
INSERT INTO "log" VALUES(39,4,6,'turn_a00000000001',27,'small-1","provider":"acme","call":"call_000000000002","cause":"retry","reserved":{"input":1200,"output":4096,"requests":1,"cost":0.0445}',1760100002.0,X'79E099DE36076BC1DA1B7D2C7B5B7C3E');
INSERT INTO "log" VALUES(40,4,7,'turn_a00000000001',39,'000000000002","usage":{"input":900,"output":120,"cache_read":200,"requests":1,"cost":0.0041},"model":"small-1","provider":"acme"',1760100002.0,X'63CC1A6CF4E6DDE95C9A2B728C56444E');
INSERT INTO "log" VALUES(41,4,8,'turn_a00000000001',29,'Little."}]},"usage":{"input":900,"output":120,"cache_read":200,"requests":1,"cost":0.0041},"model":"small-1","provider":"acme',1760100002.0,X'F5E85BA62F25B8A91C4A910F184749F1');
INSERT INTO "log" VALUES(42,4,9,'turn_a00000000001',34,'done","usage":{"input":900,"output":120,"cache_read":200,"requests":1,"cost":0.0041}',1760100002.0,X'764665B5A421CA35E218293BEDC29D3D');
INSERT INTO "log" VALUES(43,4,10,'',24,'And now?',1760100002.0,X'FCB8305DE6B7380DBE66EAAA99F7F650');
INSERT INTO "log" VALUES(44,4,11,'turn_a00000000002',25,'10',1760100002.0,X'7D44C0D3BEE8FF61465BDC50C1D6B693');
INSERT INTO "log" VALUES(45,4,12,'turn_a00000000002',27,'small-1","provider":"acme","call":"call_000000000003","cause":"cron","reserved":{"input":1200,"output":4096,"requests":1,"cost":0.0445}',1760100002.0,X'2A5101B0A7DC6D18B8C0C81F4C5CA210');
INSERT INTO "log" VALUES(46,4,13,'turn_a00000000002',39,'000000000003","usage":{"input":1200,"output":4096,"requests":1,"cost":0.0445},"certain":false,"model":"small-1","provider":"acme"',1760100062.0,X'8C4FE81DABA1B1D4D84C8235A088BEF6');
INSERT INTO "log" VALUES(47,4,14,'turn_a00000000002',38,',"scope":"day","key":"2025-10-10","usd":1.0',1760100062.0,X'C6A1BADEF3D3D8A84C6030A06B4878A7');
INSERT INTO "log" VALUES(48,4,15,'turn_a00000000002',27,'small-1","provider":"acme","call":"call_000000000004","cause":"cron","reserved":{"input":1200,"output":4096,"requests":1,"cost":0.0445}',1760100062.0,X'42DB40E82A5F34C941EF7B634218059E');
INSERT INTO "log" VALUES(49,4,16,'turn_a00000000002',34,'paused","usage":{},"detail":"cap(job)","error":"The cap for this job of $0.10 is reached."',1760100062.0,X'A5C98DC6C69B600B35AA8D17E53631E5');
INSERT INTO "log" VALUES(53,1,30,'',43,',"records":[3]',1760000000.0,X'6803CD541CC0EFB59313CD18889C3EE0');
INSERT INTO "log" VALUES(54,2,16,'',24,'Never mind',1760000000.0,X'0418C044137D389CA830F2EF84E963F7');
INSERT INTO "log" VALUES(55,2,17,'',44,',"n":16',1760000000.0,X'6AEA826C95AC36DECE602FA78BDA365A');
INSERT INTO "log" VALUES(56,2,18,'',46,',"effort":"high"',1760000000.0,X'9779CA46E04D094AF8A09879829F97FB');
INSERT INTO "log" VALUES(57,2,19,'',46,',"effort":"high","tier":"","mode":"off"',1760000000.0,X'5D235917BB257C7922E830467505AB2D');
CREATE TABLE message_keys(
    session INTEGER NOT NULL, key TEXT NOT NULL, n INTEGER NOT NULL,
    PRIMARY KEY(session, key)) WITHOUT ROWID;
INSERT INTO "message_keys" VALUES(1,'k1',3);
INSERT INTO "message_keys" VALUES(1,'m2',13);
INSERT INTO "message_keys" VALUES(2,'m3',15);
INSERT INTO "message_keys" VALUES(4,'c1',2);
CREATE TABLE meta(name TEXT PRIMARY KEY, value) WITHOUT ROWID;
INSERT INTO "meta" VALUES('last_removed_id',52);
INSERT INTO "meta" VALUES('projections',2);
CREATE TABLE owners(owner TEXT PRIMARY KEY, beat REAL NOT NULL) WITHOUT ROWID;
INSERT INTO "owners" VALUES('25281-6d07f6aa830e',1760000000.0);
CREATE TABLE quarantine(
    event INTEGER PRIMARY KEY, session INTEGER NOT NULL, n INTEGER NOT NULL,
    why TEXT NOT NULL, found_at REAL NOT NULL);
CREATE TABLE raised(
    session INTEGER NOT NULL, scope TEXT NOT NULL, key TEXT NOT NULL, cost INTEGER NOT NULL,
    tokens INTEGER NOT NULL, PRIMARY KEY(session, scope, key)) WITHOUT ROWID;
INSERT INTO "raised" VALUES(4,'day','2025-10-10',1000000000000,0);
CREATE TABLE removed(session INTEGER PRIMARY KEY, id TEXT NOT NULL, at REAL NOT NULL);
INSERT INTO "removed" VALUES(5,'golden-gone',1760100062.0);
CREATE TABLE sessions(
    session INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE,
    parent INTEGER, parent_n INTEGER NOT NULL DEFAULT 0);
INSERT INTO "sessions" VALUES(1,'golden-one',NULL,0);
INSERT INTO "sessions" VALUES(2,'golden-two',1,12);
INSERT INTO "sessions" VALUES(3,'golden-three',2,0);
INSERT INTO "sessions" VALUES(4,'golden-costs',NULL,0);
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
INSERT INTO "summaries" VALUES(1,30,'Plan','cli','/work/plan','big-1','other','owner','[forgotten]',1760000000.0,1760086461.5,1760086461.5,'user_exit',6,2,3,500,80,10,0,7,0.625,'turn_ba9876543210','chat',0,'golden-one','turn_ba9876543210',340,125000000000);
INSERT INTO "summaries" VALUES(2,19,'Plan #2','telegram','/work/plan','small-1','acme','member','Another way',1760086466.5,1760000000.0,NULL,'',1,0,0,0,0,0,0,0,NULL,'','',0,'golden-one','',0,0);
INSERT INTO "summaries" VALUES(3,1,'','subagent','/work/plan','small-1','acme','owner','',1760086466.5,1760086466.5,NULL,'',0,0,0,0,0,0,0,0,NULL,'','',0,'golden-two','',0,0);
INSERT INTO "summaries" VALUES(4,16,'','cron','/work/plan','small-1','acme','owner','What did it cost?',1760100000.0,1760100062.0,NULL,'',3,0,4,900,120,200,0,0,0.0041,'turn_a00000000002','cron',1,'nightly','turn_a00000000002',10592,89000000000);
CREATE TABLE usage(
    session INTEGER NOT NULL, day INTEGER NOT NULL, model TEXT NOT NULL, provider TEXT NOT NULL,
    cause TEXT NOT NULL, calls INTEGER NOT NULL, replies INTEGER NOT NULL,
    input INTEGER NOT NULL, output INTEGER NOT NULL, cache_read INTEGER NOT NULL,
    cache_write INTEGER NOT NULL, reasoning INTEGER NOT NULL, cost INTEGER NOT NULL,
    unpriced INTEGER NOT NULL,
    PRIMARY KEY(session, day, model, provider, cause)) WITHOUT ROWID;
INSERT INTO "usage" VALUES(1,20370,'small-1','acme','chat',3,3,500,80,10,0,7,625000000000,0);
INSERT INTO "usage" VALUES(4,20371,'small-1','acme','cron',1,1,0,0,0,0,0,0,0);
INSERT INTO "usage" VALUES(4,20371,'small-1','acme','retry',1,1,900,120,200,0,0,4100000000,0);
CREATE INDEX sessions_parent ON sessions(parent) WHERE parent IS NOT NULL;
CREATE UNIQUE INDEX log_place ON log(session, n);
CREATE INDEX inbox_waiting ON inbox(session, id) WHERE taken = 0;
CREATE UNIQUE INDEX inbox_key ON inbox(session, key) WHERE key <> '';
CREATE INDEX quarantine_session ON quarantine(session);
CREATE INDEX carried_id ON carried(id);
CREATE INDEX summaries_title ON summaries(title) WHERE title <> '';
CREATE INDEX usage_day ON usage(day);
CREATE INDEX raised_key ON raised(scope, key);
CREATE VIEW events AS
    SELECT id, session, n, turn_id,
        (SELECT kind FROM shapes WHERE shape = log.shape) AS kind,
        (SELECT version FROM shapes WHERE shape = log.shape) AS version,
        (SELECT head || log.rest || tail FROM shapes WHERE shape = log.shape) AS body,
        at, hash
    FROM log;
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('sessions',5);
INSERT INTO "sqlite_sequence" VALUES('inbox',1);
COMMIT;
PRAGMA user_version = 2;
