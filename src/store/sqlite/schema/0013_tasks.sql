-- hikyaku, schema version 13: names of tasks, which stay taken for a while.

-- A task with a name is a message with that message_id. Its name is not given again while the task lives, nor within an hour after its
-- end. Not a unique index of outbox: no INSERT of an application may fail for a reason that it does not expect.
CREATE TABLE outbox_task (
    id          INTEGER PRIMARY KEY,
    destination TEXT    NOT NULL, -- the queue's
    task        TEXT    NOT NULL,
    created_ms  INTEGER NOT NULL
);
CREATE UNIQUE INDEX outbox_task_name ON outbox_task (destination, task);
CREATE INDEX outbox_task_created ON outbox_task (created_ms);
