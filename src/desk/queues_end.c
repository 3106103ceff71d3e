/* SPDX-License-Identifier: Apache-2.0 */
/* Queues: emptied and deleted.
 *
 * DESIGN. Tasks are cancelled, which a person can undo (messages restore). One page of tasks is cancelled at once. More tasks become a
 * job: the call answers, relays cancel batch after batch, and another relay continues when one dies.
 *
 * A purge means the tasks that were created before it. Its time is the store's, one millisecond ahead, and the call answers only when that
 * millisecond is over: whatever its caller creates next is younger.
 *
 * A delete takes the section `queue` out of the definition at once. From then on nobody sees a queue, and no new task comes. The job pauses
 * the destination that is left, cancels what waits, and removes the destination at last. Tasks that are in flight cannot be taken back: it
 * waits a little for them, then they end as they end, and what fails is a dead letter. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/parse.h"
#include "base/str.h"
#include "desk/forms.h"
#include "desk/job.h"
#include "desk/messages.h"
#include "desk/queues.h"

enum {
    PASSES = 10, /* over what waits, while some of it is in flight */
    PASS_MS = 500,
    CUT_MS = 1
};

static void sleep_ms(long ms)
{
    const struct timespec pause = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L};
    (void)nanosleep(&pause, NULL);
}

/* ---- which tasks ---- */

static enum hk_code look(struct hk_desk *desk, const char *destination, uint32_t most, bool *out_any,
                         bool *out_more, struct hk_err *err)
{
    const struct hk_rows *rows = NULL;
    const struct hk_list list = {.live = true, .destination = destination, .limit = most};
    enum hk_code rc = desk->ops->list(desk->admin, &list, &rows, err);
    *out_any = rc == HK_OK && rows->n > 0;
    *out_more = rc == HK_OK && rows->more;
    return rc;
}

struct meant {
    struct hk_messages_act_ask ask;
    char before[HK_TIME_TEXT_MAX + sizeof "before:"];
};

/* All that wait for it; `before_ms` 0: whenever they were created. */
static const struct hk_messages_act_ask *tasks_of(struct meant *m, const char *destination, int64_t before_ms)
{
    char time[HK_TIME_TEXT_MAX];
    m->ask = (struct hk_messages_act_ask){.words = {.destination = destination}};
    if (!before_ms)
        return &m->ask;
    (void)hk_format_rfc3339(before_ms, time);
    (void)snprintf(m->before, sizeof m->before, "before:%s", time);
    m->ask.words.filter = m->before;
    return &m->ask;
}

/* Cancels them now where they are few, else starts a job for `op`, whose request is `ask`. */
static enum hk_code cancel_or_start(struct hk_desk *desk, const struct hk_caller *caller,
                                    const struct hk_op *op, const void *ask,
                                    const struct hk_messages_act_ask *tasks, struct hk_pool *mem,
                                    struct hk_queue_gone *out, struct hk_err *err)
{
    struct hk_messages_acted acted = {.done = 0};
    struct hk_job_shown job;
    bool any = false, more = false;
    enum hk_code rc = look(desk, tasks->words.destination, HK_REFS_MAX, &any, &more, err);
    if (rc == HK_OK && more) {
        rc = hk_job_start(desk, op, caller, ask, mem, &job, err);
        out->job_id = rc == HK_OK ? job.job.id : 0;
        return rc;
    }
    if (rc == HK_OK && any)
        rc = hk_op_messages_cancel.run(desk, caller, tasks, mem, &acted, err);
    out->cancelled = acted.done;
    out->left = acted.refused;
    return rc;
}

/* ---- purge ---- */

static enum hk_code purge_queue(struct hk_desk *desk, const struct hk_caller *caller,
                                const struct hk_queue_ask *ask, struct hk_pool *mem,
                                struct hk_queue_gone *out, struct hk_err *err)
{
    struct hk_queue queue;
    struct meant meant;
    const struct hk_store_status *status = NULL;
    struct hk_queue_gone gone = {.did = "purged"};
    enum hk_code rc = hk_queue_resolve(desk, ask->name, mem, &gone.name, err);
    if (rc == HK_OK)
        rc = hk_queue_find(desk, gone.name, mem, &queue, NULL, err);
    if (rc == HK_OK)
        rc = desk->ops->status(desk->admin, &status, err);
    if (rc != HK_OK)
        return rc;
    gone.name = queue.name;
    gone.before_ms = status->now_ms + CUT_MS;
    sleep_ms(2L * CUT_MS);
    const struct hk_messages_act_ask *tasks = tasks_of(&meant, queue.destination, gone.before_ms);
    rc = cancel_or_start(desk, caller, &hk_op_messages_cancel, tasks, tasks, mem, &gone, err);
    if (rc == HK_OK)
        *out = gone;
    return rc;
}

/* ---- delete ---- */

/* The destination that is left of the queue, and its pause, which would be that of the next queue of this name. */
static enum hk_code remove_rest(struct hk_desk *desk, const struct hk_caller *caller, const char *destination,
                                struct hk_err *err)
{
    struct hk_defined done;
    bool changed = false;
    const struct hk_undefine undefine = {.name = destination,
                                         .version = HK_DEFINITION_ANY,
                                         .force = true,
                                         .actor = caller->actor,
                                         .reason = caller->reason};
    enum hk_code rc = desk->ops->undefine(desk->admin, &undefine, &done, err);
    if (rc == HK_OK || rc == HK_NOTFOUND)
        rc = desk->ops->pause(desk->admin, destination, false, caller->actor, caller->reason, &changed, err);
    return rc;
}

static enum hk_code delete_queue(struct hk_desk *desk, const struct hk_caller *caller,
                                 const struct hk_queue_ask *ask, struct hk_pool *mem,
                                 struct hk_queue_gone *out, struct hk_err *err)
{
    struct hk_queue queue;
    struct meant meant;
    struct hk_queue_ask whole = {.name = NULL};
    struct hk_queue_gone gone = {.did = "deleted"};
    enum hk_code rc = hk_queue_resolve(desk, ask->name, mem, &whole.name, err);
    if (rc == HK_OK)
        rc = hk_queue_find(desk, whole.name, mem, &queue, NULL, err);
    if (rc != HK_OK)
        return rc;
    gone.name = queue.name;
    rc = cancel_or_start(desk, caller, &hk_op_queues_delete, &whole, tasks_of(&meant, queue.destination, 0),
                         mem, &gone, err);
    if (rc == HK_OK && gone.job_id) {
        rc = hk_queue_unmake(desk, caller, queue.name, mem, err);
        rc = rc == HK_CONFLICT || rc == HK_NOTFOUND ? HK_OK : rc; /* the job was faster */
    } else if (rc == HK_OK) {
        rc = remove_rest(desk, caller, queue.destination, err);
    }
    if (rc == HK_OK)
        *out = gone;
    return rc;
}

/* ---- delete, as a job ---- */

static enum hk_code freeze_delete(struct hk_desk *desk, const struct hk_caller *caller, void *request,
                                  struct hk_pool *mem, struct hk_err *err)
{
    struct hk_queue_ask *ask = request;
    struct hk_queue queue;
    const char *whole = NULL;
    (void)caller;
    enum hk_code rc = hk_queue_resolve(desk, ask->name, mem, &whole, err);
    if (rc == HK_OK)
        rc = hk_queue_find(desk, whole, mem, &queue, NULL, err);
    if (rc == HK_OK)
        ask->name = queue.name;
    return rc;
}

/* "PASS CURSOR": how often what waits was gone through, and where `messages cancel` is in it. "": nothing is done yet. */
struct pass {
    unsigned n; /* 1: the first */
    const char *cursor;
};

static struct pass read_pass(const char *cursor)
{
    struct hk_str rest = hk_str_of(cursor), head = hk_str_cut(&rest, ' ');
    uint64_t n = 0;
    if (hk_parse_u64(head, &n, NULL) != HK_OK || n > PASSES + 1)
        n = 0;
    return (struct pass){.n = (unsigned)n, .cursor = n && rest.ptr ? rest.ptr : ""};
}

static void write_pass(struct hk_job_run *run, unsigned n)
{
    char inner[HK_JOB_CURSOR_MAX + 1];
    memcpy(inner, run->cursor, sizeof inner);
    (void)snprintf(run->cursor, sizeof run->cursor, "%u %.200s", n, inner);
}

/* When the job begins, a paused destination is left of the queue. */
static enum hk_code begin_delete(struct hk_job_run *run, const struct hk_caller *caller, const char *name,
                                 const char *destination, struct hk_pool *mem, struct hk_err *err)
{
    bool changed = false;
    enum hk_code rc = hk_queue_unmake(run->desk, caller, name, mem, err);
    if (rc == HK_OK)
        rc = run->desk->ops->pause(run->desk->admin, destination, true, caller->actor, caller->reason,
                                   &changed, err);
    return rc;
}

/* One batch of `messages cancel`, which keeps its own cursor and counts. */
static enum hk_code cancel_batch(struct hk_job_run *run, const struct hk_caller *caller,
                                 const char *destination, struct pass pass, struct hk_pool *mem,
                                 struct hk_queue_gone *gone, struct hk_err *err)
{
    struct meant meant;
    struct hk_messages_acted acted = {.done = gone->cancelled, .act_id = run->act_id};
    char cursor[sizeof run->cursor];
    (void)snprintf(cursor, sizeof cursor, "%s", pass.cursor);
    memcpy(run->cursor, cursor, sizeof cursor);
    acted.n_all = acted.done;
    uint64_t total = run->progress.total;
    enum hk_code rc =
        hk_op_messages_cancel.job->batch(run, caller, tasks_of(&meant, destination, 0), mem, &acted, err);
    gone->cancelled = acted.done;
    if (pass.n > 1)
        run->progress.total = total;
    return rc;
}

/* Is a new pass worth it? What was in flight may wait again, or have gone. */
static enum hk_code end_pass(struct hk_job_run *run, const struct hk_caller *caller, const char *destination,
                             struct pass pass, struct hk_queue_gone *gone, struct hk_err *err)
{
    bool any = false, more = false;
    enum hk_code rc = look(run->desk, destination, HK_REFS_MAX, &any, &more, err);
    if (rc != HK_OK)
        return rc;
    if (any && pass.n <= PASSES && !hk_caller_stops(caller)) {
        sleep_ms(PASS_MS);
        run->cursor[0] = '\0';
        write_pass(run, pass.n);
        run->more = true;
        return HK_OK;
    }
    gone->left = any;
    return remove_rest(run->desk, caller, destination, err);
}

/* Is the queue there again? Then it is a new one of the same name: the job had ended, and only could not say so any more. */
static enum hk_code is_over(struct hk_desk *desk, const char *name, const char *destination, bool begun,
                            struct hk_pool *mem, bool *out, struct hk_err *err)
{
    const struct hk_definitions *found = NULL;
    struct hk_queue queue;
    enum hk_code rc = desk->ops->definitions(desk->admin, destination, &found, err);
    *out = rc == HK_OK && found->n == 0;
    if (rc != HK_OK || *out || !begun)
        return rc;
    rc = hk_queue_find(desk, name, mem, &queue, NULL, err);
    *out = rc == HK_OK;
    return rc == HK_NOTFOUND ? HK_OK : rc;
}

static enum hk_code delete_batch(struct hk_job_run *run, const struct hk_caller *caller, const void *request,
                                 struct hk_pool *mem, void *result, struct hk_err *err)
{
    const struct hk_queue_ask *ask = request;
    struct hk_queue_gone *gone = result;
    struct pass pass = read_pass(run->cursor);
    char destination[HK_NAME_MAX];
    bool over = false;
    hk_queue_destination(ask->name, destination);
    gone->name = ask->name;
    gone->did = "deleted";
    enum hk_code rc = is_over(run->desk, ask->name, destination, pass.n > 0, mem, &over, err);
    if (rc != HK_OK || over)
        return rc;
    if (!pass.n) {
        rc = begin_delete(run, caller, ask->name, destination, mem, err);
        write_pass(run, 1);
        run->more = true;
        return rc;
    }
    if (strcmp(pass.cursor, "end") == 0) {
        pass.n++;
        return end_pass(run, caller, destination, pass, gone, err);
    }
    rc = cancel_batch(run, caller, destination, pass, mem, gone, err);
    if (rc == HK_OK && !run->more)
        (void)snprintf(run->cursor, sizeof run->cursor, "end");
    run->more = true;
    write_pass(run, pass.n);
    return rc;
}

/* ---- the table ---- */

HK_OP_RUN(purge_queue)
HK_OP_RUN(delete_queue)

static const struct hk_op_job delete_job = {.freeze = freeze_delete, .batch = delete_batch};

static const struct hk_arg queue_args[] = {{HK_SUBJECT(hk_queue_ask, name, "NAME", NULL)}, {.name = NULL}};

const struct hk_op hk_op_queues_delete = {
    .noun = "queues",
    .verb = "delete",
    .summary = "delete a queue and cancel its tasks",
    .details =
        "'messages restore' brings cancelled tasks back. Of many tasks a job is made (hikyaku job show ID).",
    .route = "DELETE /queues/{name}",
    .role = HK_ROLE_ADMIN,
    .store = true,
    .changes = true,
    .needs_reason = true,
    .job = &delete_job,
    .args = queue_args,
    .request_size = sizeof(struct hk_queue_ask),
    .result_size = sizeof(struct hk_queue_gone),
    .run = delete_queue_op,
    .form = hk_form_queue_gone};

const struct hk_op hk_op_queues_purge = {
    .noun = "queues",
    .verb = "purge",
    .summary = "cancel the tasks of a queue that were created until now",
    .details = "'messages restore' brings them back. Of many tasks a job is made (hikyaku job show ID).",
    .route = "POST /queues/{name}/purge",
    .role = HK_ROLE_OPERATOR,
    .store = true,
    .changes = true,
    .needs_reason = true,
    .args = queue_args,
    .request_size = sizeof(struct hk_queue_ask),
    .result_size = sizeof(struct hk_queue_gone),
    .run = purge_queue_op,
    .form = hk_form_queue_gone};
