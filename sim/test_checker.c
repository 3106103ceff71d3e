/* SPDX-License-Identifier: Apache-2.0 */
/* The checker must be able to say no: one small log for each way to break each invariant, and good ones that it lets
 * pass. Times are small numbers; "m" goes to "d" unless a line says otherwise. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/str.h"
#include "checker.h"
#include "flat.h"

#define LINE(t, ev, rest) "{\"t\":" #t ",\"ev\":\"" ev "\"" rest "}\n"
#define DEST(order)       LINE(0, "dest", ",\"dest\":\"d\",\"kind\":\"" order "\",\"wait\":1000,\"cap\":1")
#define PUT(t, m, rest)                                                                                      \
    LINE(t, "commit", ",\"m\":\"" m "\",\"dest\":\"d\",\"began\":" #t ",\"hash\":\"aa\",\"max\":3" rest)
#define COMMIT                  PUT(1, "m", "")
#define ACQUIRE(t, lane, until) LINE(t, "acquire", ",\"relay\":\"r\",\"lane\":" #lane ",\"until\":" #until)
#define HAND(m, row, claim)                                                                                  \
    ",\"m\":\"" m "\",\"dest\":\"d\",\"relay\":\"r\",\"row\":\"" row "\",\"lane\":1,\"claim\":" #claim       \
    ",\"life\":1"
#define CLAIM(t, m, row, claim)   LINE(t, "claim", HAND(m, row, claim))
#define SEND(t, m, row, claim, n) LINE(t, "send", HAND(m, row, claim) ",\"n\":" #n)
#define RECV(t, m)                                                                                           \
    LINE(t, "recv", ",\"m\":\"" m "\",\"dest\":\"d\",\"hash\":\"aa\",\"status\":200,\"acted\":1")
#define REFUSED(t, m)                                                                                        \
    LINE(t, "recv", ",\"m\":\"" m "\",\"dest\":\"d\",\"hash\":\"aa\",\"status\":500,\"acted\":0")
#define CONFIRM(t, m, row, claim) LINE(t, "confirm", HAND(m, row, claim))
#define FAIL(t, m, row, claim, maybe, wait)                                                                  \
    LINE(t, "fail", HAND(m, row, claim) ",\"status\":500,\"maybe\":" #maybe ",\"wait\":" #wait)
#define UNSENT(t, m, row, claim) LINE(t, "fail", HAND(m, row, claim) ",\"status\":0,\"maybe\":0,\"wait\":0")
#define SETTLE(t, m, row, claim, kind, n, rest)                                                              \
    LINE(t, "settle", HAND(m, row, claim) ",\"kind\":\"" kind "\",\"n\":" #n ",\"charged\":" #n rest)
#define SETTLED_SENT(t, m, row, claim, n) SETTLE(t, m, row, claim, "sent", n, ",\"rows\":1")
#define RETRY(t, m, row, claim, n, due)   SETTLE(t, m, row, claim, "retry", n, ",\"rows\":1,\"due\":" #due)
#define DEAD(t, m, row, claim, n, reason)                                                                    \
    SETTLE(t, m, row, claim, "dead", n, ",\"rows\":1,\"reason\":\"" reason "\"")
#define BUSY(t, m, row, claim)   LINE(t, "busy", HAND(m, row, claim))
#define BACK(t, m, row, claim)   SETTLE(t, m, row, claim, "release", 0, ",\"rows\":1")
#define ROOM(t)                  LINE(t, "room", ",\"relay\":\"r\",\"dest\":\"d\"")
#define ORPHAN(t, m, row, claim) LINE(t, "orphan", HAND(m, row, claim))
#define ACT(t, ev, m)            LINE(t, ev, ",\"m\":\"" m "\",\"dest\":\"d\",\"actor\":\"me\"")
#define NEXT                     ",\"m\":\"m\",\"dest\":\"d\",\"relay\":\"s\",\"row\":\"r1\",\"lane\":2,\"claim\":2,\"life\":1"
#define END                      LINE(900, "heal", "") LINE(900, "end", "")

/* From claimed to confirmed, and to its end. */
#define UNDER_WAY   DEST("none") COMMIT ACQUIRE(2, 1, 500) CLAIM(3, "m", "o1", 1) SEND(4, "m", "o1", 1, 1)
#define DELIVERED   UNDER_WAY RECV(5, "m") CONFIRM(6, "m", "o1", 1) SETTLED_SENT(7, "m", "o1", 1, 1)
#define FAILED_ONCE UNDER_WAY REFUSED(5, "m") FAIL(6, "m", "o1", 1, 0, 0) RETRY(7, "m", "o1", 1, 1, 50)

#define KEYLESS(t, m, row, claim) LINE(t, "keyless", HAND(m, row, claim))
#define UNOPENED                  DEST("none") COMMIT ACQUIRE(2, 1, 500) CLAIM(3, "m", "o1", 1) KEYLESS(4, "m", "o1", 1)

/* Died, and in its second life arrived. */
#define DIED  UNDER_WAY REFUSED(5, "m") FAIL(6, "m", "o1", 1, 0, 0) DEAD(7, "m", "o1", 1, 1, "HTTP_422")
#define AGAIN ",\"m\":\"m\",\"dest\":\"d\",\"relay\":\"r\",\"row\":\"r1\",\"lane\":1,\"claim\":2,\"life\":2"
#define AGAIN_AS_X                                                                                           \
    ",\"m\":\"x\",\"dest\":\"d\",\"relay\":\"r\",\"row\":\"r1\",\"lane\":1,\"claim\":2,\"life\":2"
#define AGAIN_LATER                                                                                          \
    ",\"m\":\"m\",\"dest\":\"d\",\"relay\":\"r\",\"row\":\"r1\",\"lane\":1,\"claim\":5,\"life\":2"
#define REQUEUED_AND_SENT                                                                                    \
    DIED ACT(8, "requeue", "m") LINE(9, "claim", AGAIN) LINE(10, "send", AGAIN ",\"n\":1") RECV(11, "m")     \
        LINE(12, "confirm", AGAIN)                                                                           \
            LINE(13, "settle", AGAIN ",\"kind\":\"sent\",\"n\":1,\"charged\":1,\"rows\":1")

#define TABLE(table, m, rest) "{\"table\":\"" table "\",\"m\":\"" m "\",\"dest\":\"d\"" rest "}\n"
#define SENT_ROW              TABLE("sent", "m", ",\"n\":1,\"life\":1")

#define DISCARDED_ROW TABLE("dead", "m", ",\"status\":\"discarded\",\"n\":1,\"life\":1")
#define TOTALS(sent, dead, over)                                                                             \
    "{\"table\":\"totals\",\"sent\":" #sent ",\"dead\":" #dead ",\"over\":" #over ",\"audited\":\"yes\"}\n"
#define AUDIT(act, m)                                                                                        \
    "{\"table\":\"audit\",\"act\":\"" act "\",\"m\":\"" m "\",\"dest\":\"d\",\"actor\":\"me\"}\n"

/* Delivered, and another one is there; d takes one at a time. */
#define CAP_OF_ONE        DELIVERED PUT(8, "n", "")
#define BREAKER(t, until) LINE(t, "breaker", ",\"dest\":\"d\",\"lane\":1,\"until\":" #until)
#define TOLD(t)           LINE(t, "told", ",\"dest\":\"d\",\"relay\":\"r\"")
/* Committed, sent and taken, and forgotten by a standby. */
#define FORGOTTEN                                                                                            \
    DEST("none")                                                                                             \
    LINE(0, "keep", "")                                                                                      \
    COMMIT ACQUIRE(2, 1, 500) CLAIM(3, "m", "o1", 1) SEND(4, "m", "o1", 1, 1) RECV(5, "m")                   \
        CONFIRM(6, "m", "o1", 1) SETTLED_SENT(7, "m", "o1", 1, 1) LINE(10, "forget", "")
#define DIED_TWO                                                                                             \
    DIED PUT(8, "n", "") CLAIM(9, "n", "o2", 2) SEND(10, "n", "o2", 2, 1) REFUSED(11, "n")                   \
        FAIL(12, "n", "o2", 2, 0, 0) DEAD(13, "n", "o2", 2, 1, "HTTP_422")
#define JOB(t, kind, canary, rate)                                                                           \
    LINE(t, "redrive",                                                                                       \
         ",\"kind\":\"" kind "\",\"actor\":\"me\",\"job\":1,\"cap\":" #canary ",\"rate\":" #rate)
#define BY_JOB(t, m)                                                                                         \
    LINE(t, "requeue", ",\"m\":\"" m "\",\"dest\":\"d\",\"actor\":\"redrive 1\",\"life\":2,\"job\":1")

/* Three relays had it in hand and were not heard of again; n is there, too. */
#define SUSPECT                                                                                              \
    DEST("none")                                                                                             \
    COMMIT PUT(1, "n", "") ACQUIRE(2, 1, 3) CLAIM(2, "m", "o1", 1) ORPHAN(4, "m", "o1", 1)                   \
        CLAIM(4, "m", "r1", 2) ORPHAN(5, "m", "r1", 2) CLAIM(5, "m", "r1", 3) ORPHAN(6, "m", "r1", 3)        \
            LINE(7, "renew", ",\"lane\":1,\"until\":500")

/* By a clock that was ahead n was tried before its time (`due`), and waits, by the clock that is right again. */
#define TRIED_TOO_SOON(due, behind)                                                                          \
    DEST("skip")                                                                                             \
    PUT(1, "n", ",\"key\":\"k\",\"due\":" #due)                                                              \
    ACQUIRE(2, 1, 900000)                                                                                    \
    CLAIM(8005, "n", "o2", 1)                                                                                \
    SEND(8006, "n", "o2", 1, 1)                                                                              \
    FAIL(8007, "n", "o2", 1, 0, 0)                                                                           \
    LINE(8008, "clock", ",\"wait\":-" #behind ",\"behind\":" #behind)                                        \
    LINE(8008, "settle",                                                                                     \
         HAND("n", "o2", 1) ",\"kind\":\"retry\",\"n\":1,\"charged\":1,\"rows\":1,\"due\":8050,"             \
                            "\"behind\":" #behind)                                                           \
    PUT(9000, "o", ",\"key\":\"k\"")

/* m failed and waits for 100 ms when the store's time is set back by 8000 ms; then its row is due at `due`. */
#define RESET(t)      LINE(t, "reset", ",\"actor\":\"me\",\"wait\":8000")
#define WAITS(t, due) LINE(t, "waits", ",\"m\":\"m\",\"dest\":\"d\",\"row\":\"r1\",\"due\":" #due)
#define WAITED                                                                                               \
    DEST("none")                                                                                             \
    PUT(8001, "m", "")                                                                                       \
    ACQUIRE(8002, 1, 8500)                                                                                   \
    CLAIM(8003, "m", "o1", 1)                                                                                \
    SEND(8004, "m", "o1", 1, 1)                                                                              \
    REFUSED(8005, "m")                                                                                       \
    FAIL(8006, "m", "o1", 1, 0, 0)                                                                           \
    RETRY(8007, "m", "o1", 1, 1, 8107)                                                                       \
    LINE(8010, "crash", ",\"relay\":\"r\"")
#define SET_BACK(due) WAITED RESET(11) WAITS(11, due)

struct row {
    const char *rule, *name, *log, *dump;
};

static const struct row bad[] = {
    {"I1", "comes to no end", UNDER_WAY END, ""},
    {"I1", "is in no table", PUT(1, "x", "") FAILED_ONCE LINE(900, "end", ""), TABLE("outbox", "x", "")},
    {"I1", "still waits", FAILED_ONCE END,
     TABLE("retry", "m", ",\"row\":\"r1\",\"due\":50,\"n\":1,\"life\":1")},
    {"I1", "is sent, but never arrived",
     UNDER_WAY CONFIRM(6, "m", "o1", 1) SETTLED_SENT(7, "m", "o1", 1, 1) END, ""},
    {"I1", "an act of nobody", COMMIT LINE(2, "cancel", ",\"m\":\"m\",\"dest\":\"d\",\"actor\":\"\"") END,
     ""},
    {"I2", "received, never committed", DEST("none") RECV(5, "m"), ""},
    {"I2", "received before the commit", DEST("none") RECV(1, "m") PUT(2, "m", ""), ""},
    {"I2", "rolled back and sent",
     LINE(1, "rollback", ",\"m\":\"m\"") ACQUIRE(2, 1, 500) CLAIM(3, "m", "o1", 1), ""},
    {"I2", "sent elsewhere",
     COMMIT ACQUIRE(2, 1, 500) CLAIM(3, "m", "o1", 1)
         LINE(4, "send", ",\"m\":\"m\",\"dest\":\"x\",\"row\":\"o1\",\"lane\":1,\"claim\":1,\"n\":1"),
     ""},
    {"I2", "committed twice", COMMIT COMMIT, ""},
    {"I2", "in a table, never committed", COMMIT, TABLE("sent", "x", ",\"n\":1,\"life\":1") SENT_ROW},
    {"I3", "ends twice", DELIVERED ACT(8, "cancel", "m"), ""},
    {"I3", "sent after its end", DELIVERED CLAIM(8, "m", "r1", 2) SEND(9, "m", "r1", 2, 2), ""},
    {"I3", "a living one is discarded", COMMIT ACT(2, "discard", "m"), ""},
    {"I4", "claimed while in hand", UNDER_WAY CLAIM(9, "m", "o1", 2), ""},
    {"I4", "two lanes at once", ACQUIRE(2, 1, 500) ACQUIRE(3, 2, 500), ""},
    {"I4", "a lane's number comes again", ACQUIRE(2, 2, 3) ACQUIRE(9, 2, 500), ""},
    {"I4", "a claim's number comes again", FAILED_ONCE CLAIM(60, "m", "o1", 1), ""},
    {"I4", "taken over, and one left", UNDER_WAY ACQUIRE(501, 2, 900), ""},
    {"I4", "taken before the lease's end", UNDER_WAY ORPHAN(499, "m", "o1", 1), ""},
    {"I4", "taken when somebody else died",
     UNDER_WAY LINE(6, "crash", ",\"relay\":\"x\"") ORPHAN(7, "m", "o1", 1), ""},
    {"I4", "a lane is given when somebody else died",
     DEST("none") ACQUIRE(2, 1, 500) LINE(6, "crash", ",\"relay\":\"x\"") ACQUIRE(7, 2, 600), ""},
    {"I4", "sent after the lease's end",
     COMMIT ACQUIRE(2, 1, 500) CLAIM(3, "m", "o1", 1) SEND(501, "m", "o1", 1, 1), ""},
    {"I4", "sent under a claim that is gone", FAILED_ONCE SEND(60, "m", "o1", 1, 2), ""},
    {"I5", "a stale settle changes something",
     UNDER_WAY RECV(5, "m") CONFIRM(6, "m", "o1", 1) ORPHAN(501, "m", "o1", 1)
         SETTLED_SENT(502, "m", "o1", 1, 1),
     ""},
    {"I5", "a good settle is called stale",
     UNDER_WAY RECV(5, "m") CONFIRM(6, "m", "o1", 1) SETTLE(7, "m", "o1", 1, "sent", 1, ",\"rows\":0"), ""},
    {"I5", "a lane that is gone renews", ACQUIRE(2, 1, 3) ACQUIRE(9, 2, 500) LINE(10, "renew", ",\"lane\":1"),
     ""},
    {"I5", "a lane that is gone claims", COMMIT ACQUIRE(2, 1, 3) ACQUIRE(9, 2, 500) CLAIM(10, "m", "o1", 1),
     ""},
    {"I6", "sent without a confirmation", UNDER_WAY RECV(5, "m") SETTLED_SENT(7, "m", "o1", 1, 1), ""},
    {"I6", "sent though it failed",
     UNDER_WAY REFUSED(5, "m") FAIL(6, "m", "o1", 1, 0, 0) SETTLED_SENT(7, "m", "o1", 1, 1), ""},
    {"I6", "given back as unsent though it may have arrived",
     UNDER_WAY FAIL(6, "m", "o1", 1, 1, 0) SETTLE(7, "m", "o1", 1, "release", 0, ",\"rows\":1"), ""},
    {"I6", "given back as unsent though it was confirmed",
     UNDER_WAY RECV(5, "m") CONFIRM(6, "m", "o1", 1) SETTLE(7, "m", "o1", 1, "release", 0, ",\"rows\":1"),
     ""},
    {"I6", "retried without an attempt",
     COMMIT ACQUIRE(2, 1, 500) CLAIM(3, "m", "o1", 1) RETRY(7, "m", "o1", 1, 1, 50), ""},
    {"I27", "sent though it cannot be opened",
     DEST("none") COMMIT ACQUIRE(2, 1, 500) CLAIM(3, "m", "o1", 1) KEYLESS(4, "m", "o1", 1)
         SEND(5, "m", "o1", 1, 1),
     ""},
    {"I27", "dead of a key that is missing", UNOPENED DEAD(5, "m", "o1", 1, 0, "LOCAL_ERROR"), ""},
    {"I27", "given back for want of a key, to come again at once",
     UNOPENED SETTLE(5, "m", "o1", 1, "release", 0, ",\"rows\":1"), ""},
    {"I27", "does not wait for its key", UNOPENED RETRY(5, "m", "o1", 1, 0, 4), ""},
    {"I13", "charged for a key that is missing", UNOPENED RETRY(5, "m", "o1", 1, 1, 50), ""},
    {"I7", "more attempts than allowed",
     UNDER_WAY FAIL(6, "m", "o1", 1, 0, 0)
         SETTLE(7, "m", "o1", 1, "retry", 1, ",\"rows\":1,\"due\":9,\"x\":1") CLAIM(9, "m", "r1", 2)
             SEND(10, "m", "r1", 2, 2) FAIL(11, "m", "r1", 2, 0, 0) RETRY(12, "m", "r1", 2, 2, 13)
                 CLAIM(13, "m", "r1", 3) SEND(14, "m", "r1", 3, 3) FAIL(15, "m", "r1", 3, 0, 0)
                     RETRY(16, "m", "r1", 3, 3, 17),
     ""},
    {"I7", "exhausted too soon",
     UNDER_WAY FAIL(6, "m", "o1", 1, 0, 0) DEAD(7, "m", "o1", 1, 1, "RETRY_EXHAUSTED"), ""},
    {"I7", "an innocent is called a crasher",
     COMMIT ACQUIRE(2, 1, 500) CLAIM(3, "m", "o1", 1) DEAD(7, "m", "o1", 1, 0, "RELAY_CRASHED"), ""},
    {"I7", "one that killed relays joins others",
     SUSPECT CLAIM(8, "n", "o2", 4) SEND(9, "n", "o2", 4, 1) CLAIM(10, "m", "r1", 5)
         SEND(11, "m", "r1", 5, 1),
     ""},
    {"I7", "others join one that killed relays",
     SUSPECT CLAIM(8, "m", "r1", 4) SEND(9, "m", "r1", 4, 1) CLAIM(10, "n", "o2", 5)
         SEND(11, "n", "o2", 5, 1),
     ""},
    {"I7", "one that killed relays shares its manifest",
     SUSPECT CLAIM(8, "m", "r1", 4) CLAIM(8, "n", "o2", 4) SEND(9, "m", "r1", 4, 1), ""},
    {"I8", "before its next attempt is due", FAILED_ONCE CLAIM(48, "m", "r1", 2) SEND(49, "m", "r1", 2, 2),
     ""},
    {"I8", "before not_before, by a clock that is right again",
     DEST("none") PUT(1, "m", ",\"due\":5000") ACQUIRE(2, 1, 900000) CLAIM(3, "m", "o1", 1)
         LINE(9000, "send", HAND("m", "o1", 1) ",\"n\":1,\"behind\":8000"),
     ""},
    {"I23", "expires before its time",
     DEST("none") PUT(1, "m", ",\"expires\":50") ACQUIRE(2, 1, 500) CLAIM(3, "m", "o1", 1)
         DEAD(49, "m", "o1", 1, 0, "EXPIRED"),
     ""},
    {"I23", "expires before its time, by a clock that is right again",
     DEST("none") PUT(1, "m", ",\"expires\":5000") ACQUIRE(2, 1, 900000) CLAIM(3, "m", "o1", 1)
         DEAD(9000, "m", "o1", 1, 0, "EXPIRED\",\"behind\":8000,\"x\":\""),
     ""},
    {"I8", "before not_before",
     PUT(1, "m", ",\"due\":40") ACQUIRE(2, 1, 500) CLAIM(3, "m", "o1", 1) SEND(39, "m", "o1", 1, 1), ""},
    {"I8", "earlier than Retry-After",
     UNDER_WAY REFUSED(5, "m") FAIL(6, "m", "o1", 1, 0, 100) RETRY(7, "m", "o1", 1, 1, 105), ""},
    {"I9", "taken twice without a fault",
     FAILED_ONCE RECV(8, "m") CLAIM(51, "m", "r1", 2) SEND(52, "m", "r1", 2, 2) RECV(53, "m")
         CONFIRM(54, "m", "r1", 2) SETTLED_SENT(55, "m", "r1", 2, 2),
     ""},
    {"I10", "other bytes",
     UNDER_WAY LINE(5, "recv", ",\"m\":\"m\",\"dest\":\"d\",\"hash\":\"bb\",\"status\":200,\"acted\":1"), ""},
    {"I11", "overtakes one that is on its way",
     DEST("skip") COMMIT PUT(2, "n", ",\"key\":\"k\"") PUT(3, "o", ",\"key\":\"k\"") ACQUIRE(4, 1, 500)
         CLAIM(5, "n", "o2", 1) SEND(6, "n", "o2", 1, 1) CLAIM(7, "o", "o3", 2) SEND(8, "o", "o3", 2, 1),
     ""},
    {"I11", "overtakes one that was never sent",
     DEST("skip") PUT(2, "n", ",\"key\":\"k\"") PUT(3, "o", ",\"key\":\"k\"") ACQUIRE(4, 1, 500)
         CLAIM(7, "o", "o3", 2) SEND(8, "o", "o3", 2, 1),
     ""},
    {"I11", "goes on behind a dead head that blocks",
     DEST("block") PUT(2, "n", ",\"key\":\"k\"") PUT(3, "o", ",\"key\":\"k\"") ACQUIRE(4, 1, 500)
         CLAIM(5, "n", "o2", 1) SEND(6, "n", "o2", 1, 1) FAIL(7, "n", "o2", 1, 0, 0)
             DEAD(8, "n", "o2", 1, 1, "HTTP_422") CLAIM(9, "o", "o3", 2) SEND(10, "o", "o3", 2, 1),
     ""},
    {"I11", "overtakes one that was tried before its time, and waits longer than until then",
     TRIED_TOO_SOON(20, 8000) CLAIM(9010, "o", "o3", 2) SEND(9011, "o", "o3", 2, 1), ""},
    {"I11", "overtakes one that was tried before its time, and in its time",
     TRIED_TOO_SOON(5000, 8000) CLAIM(9001, "n", "r1", 2) SEND(9002, "n", "r1", 2, 2) REFUSED(9003, "n")
         FAIL(9004, "n", "r1", 2, 0, 0) RETRY(9005, "n", "r1", 2, 2, 9900) CLAIM(9010, "o", "o3", 3)
             SEND(9011, "o", "o3", 3, 1),
     ""},
    {"I24", "waits for the wrong time after a reset", SET_BACK(8107), ""},
    {"I24", "waits less after a reset", SET_BACK(50), ""},
    {"I24", "a lane goes on after a reset", SET_BACK(111) LINE(20, "renew", ",\"lane\":1,\"until\":500"), ""},
    {"I24", "the store's time is set back beside a relay",
     DEST("none") ACQUIRE(8002, 1, 8500) LINE(8100, "reset", ",\"actor\":\"me\",\"wait\":0"), ""},
    {"I24", "a breaker is told in the time of before",
     LINE(0, "dest", ",\"dest\":\"d\",\"kind\":\"none\",\"wait\":1000,\"cap\":1,\"open\":100,\"until\":200")
         RESET(11) ACQUIRE(12, 1, 500) BREAKER(13, 8200),
     ""},
    {"I12", "dead without a letter",
     UNDER_WAY FAIL(6, "m", "o1", 1, 0, 0) DEAD(7, "m", "o1", 1, 1, "HTTP_422"),
     TABLE("outbox", "m", ",\"row\":\"o1\",\"n\":0,\"life\":1")},
    {"I12", "in two tables", DELIVERED, SENT_ROW TABLE("retry", "m", ",\"row\":\"r1\",\"n\":1,\"life\":1")},
    {"I12", "two letters", UNDER_WAY FAIL(6, "m", "o1", 1, 0, 0) DEAD(7, "m", "o1", 1, 1, "HTTP_422"),
     TABLE("dead", "m", ",\"status\":\"failed\",\"n\":1,\"life\":1")
         TABLE("dead", "m", ",\"status\":\"discarded\",\"n\":1,\"life\":1")},
    {"I12", "requeued, and its letter is gone", REQUEUED_AND_SENT, TABLE("sent", "m", ",\"n\":1,\"life\":2")},
    {"I12", "arrived, and its letter is open", REQUEUED_AND_SENT,
     TABLE("dead", "m", ",\"status\":\"failed\",\"n\":1,\"life\":1")},
    {"I12", "arrived, and its letter still waits", REQUEUED_AND_SENT,
     TABLE("dead", "m", ",\"status\":\"retrying\",\"n\":1,\"life\":1")},
    {"I12", "a letter of a life that has not ended", REQUEUED_AND_SENT,
     TABLE("dead", "m", ",\"status\":\"resolved\",\"n\":1,\"life\":2")},
    {"I12", "resolved by nobody", DIED, TABLE("dead", "m", ",\"status\":\"resolved\",\"n\":1,\"life\":1")},
    {"I12", "discarded by nobody", DIED, TABLE("dead", "m", ",\"status\":\"discarded\",\"n\":1,\"life\":1")},
    {"I12", "discarded, and open", DIED ACT(8, "discard", "m"),
     TABLE("dead", "m", ",\"status\":\"failed\",\"n\":1,\"life\":1")},
    {"I12", "requeued, and its letter does not know", DIED ACT(8, "requeue", "m"),
     TABLE("retry", "m", ",\"row\":\"r1\",\"n\":0,\"life\":2")
         TABLE("dead", "m", ",\"status\":\"discarded\",\"n\":1,\"life\":1")},
    {"I12", "dead without a reason", UNDER_WAY FAIL(6, "m", "o1", 1, 0, 0) DEAD(7, "m", "o1", 1, 1, ""), ""},
    {"I13", "attempts leave a number out", FAILED_ONCE CLAIM(51, "m", "r1", 2) SEND(52, "m", "r1", 2, 3), ""},
    {"I13", "a release is charged", UNDER_WAY SETTLE(7, "m", "o1", 1, "release", 1, ",\"rows\":1"), ""},
    {"I13", "what its own sink refused is charged",
     UNDER_WAY UNSENT(6, "m", "o1", 1) DEAD(7, "m", "o1", 1, 1, "VALIDATION_ERROR"), ""},
    {"I13", "what our address policy refused is charged",
     UNDER_WAY UNSENT(6, "m", "o1", 1) DEAD(7, "m", "o1", 1, 1, "BLOCKED_BY_POLICY"), ""},
    {"I13", "what the destination refused is not charged",
     UNDER_WAY REFUSED(5, "m") FAIL(6, "m", "o1", 1, 0, 0) DEAD(7, "m", "o1", 1, 0, "VALIDATION_ERROR"), ""},
    {"I13", "an attempt is not charged",
     UNDER_WAY REFUSED(5, "m") FAIL(6, "m", "o1", 1, 0, 0) LINE(
         7, "settle", HAND("m", "o1", 1) ",\"kind\":\"retry\",\"n\":1,\"charged\":0,\"rows\":1,\"due\":50"),
     ""},
    {"I13", "claimed in a life that has not begun", COMMIT ACQUIRE(2, 1, 500) LINE(3, "claim", AGAIN), ""},
    {"I13", "claimed in a life that has ended", DIED ACT(8, "requeue", "m") CLAIM(9, "m", "r1", 2), ""},
    {"I13", "a record is missing", DELIVERED, SENT_ROW TABLE("attempts", "m", ",\"n\":2,\"life\":1")},
    {"I13", "a record stands twice", DELIVERED,
     SENT_ROW TABLE("attempts", "m", ",\"n\":1,\"life\":1") TABLE("attempts", "m", ",\"n\":1,\"life\":1")},
    {"I15", "more at once than the cap",
     DEST("none") COMMIT PUT(1, "n", "") ACQUIRE(2, 1, 500) CLAIM(3, "m", "o1", 1) CLAIM(3, "n", "o2", 1)
         SEND(4, "m", "o1", 1, 1) SEND(4, "n", "o2", 1, 1),
     ""},
    {"I26", "retried for want of room", UNDER_WAY BUSY(4, "m", "o1", 1) RETRY(7, "m", "o1", 1, 1, 50), ""},
    {"I26", "sent again before there was room",
     UNDER_WAY BUSY(4, "m", "o1", 1) BACK(5, "m", "o1", 1) CLAIM(6, "m", "o1", 2) SEND(7, "m", "o1", 2, 1),
     ""},
    {"I26", "claimed and given back without end",
     UNDER_WAY BUSY(4, "m", "o1", 1) BACK(5, "m", "o1", 1) CLAIM(6, "m", "o1", 2) BACK(6, "m", "o1", 2)
         CLAIM(7, "m", "o1", 3) BACK(7, "m", "o1", 3) CLAIM(8, "m", "o1", 4) BACK(8, "m", "o1", 4)
             CLAIM(9, "m", "o1", 5) BACK(9, "m", "o1", 5) CLAIM(10, "m", "o1", 6) BACK(10, "m", "o1", 6),
     ""},
    {"I18", "sent while it drains",
     DEST("none") COMMIT ACQUIRE(2, 1, 500) CLAIM(3, "m", "o1", 1) LINE(4, "drain", ",\"relay\":\"r\"")
         SEND(5, "m", "o1", 1, 1),
     ""},
    {"I18", "drained with something in hand", UNDER_WAY LINE(9, "exit", ",\"relay\":\"r\""), ""},
    {"I4", "a lane is taken over before its lease's end",
     ACQUIRE(2, 1, 500) LINE(499, "expire", ",\"lane\":1"), ""},
    {"I4", "taken over alone, and one left", UNDER_WAY LINE(501, "expire", ",\"lane\":1"), ""},
    {"I5", "a lane that was taken over renews",
     ACQUIRE(2, 1, 3) LINE(9, "expire", ",\"lane\":1") LINE(10, "renew", ",\"lane\":1"), ""},
    {"I2", "what a standby forgot is claimed", FORGOTTEN ACQUIRE(12, 2, 500) CLAIM(13, "m", "o1", 7), ""},
    {"I2", "what a standby forgot is in a table", FORGOTTEN, SENT_ROW},
    {"I9", "taken twice, and the standby knew",
     DELIVERED LINE(8, "keep", "") LINE(9, "forget", "") RECV(20, "m"), ""},
    {"I3", "a living one is edited",
     COMMIT LINE(2, "edit", ",\"m\":\"m\",\"dest\":\"d\",\"actor\":\"me\",\"hash\":\"bb\""), ""},
    {"I3", "what was not discarded is restored", DIED ACT(8, "restore", "m"), ""},
    {"I10", "bytes of before the edit",
     DIED LINE(8, "edit", ",\"m\":\"m\",\"dest\":\"d\",\"actor\":\"me\",\"hash\":\"bb\"")
         ACT(9, "requeue", "m") RECV(10, "m"),
     ""},
    {"I10", "edited, under the id of what may have arrived",
     UNDER_WAY FAIL(6, "m", "o1", 1, 1, 0) DEAD(7, "m", "o1", 1, 1, "TIMEOUT") LINE(
         8, "edit", ",\"m\":\"m\",\"dest\":\"d\",\"actor\":\"me\",\"hash\":\"bb\"") ACT(9, "requeue", "m"),
     ""},
    {"I10", "the same, and its relay died with it",
     UNDER_WAY LINE(5, "crash", ",\"relay\":\"r\"") ORPHAN(6, "m", "o1", 1) ACQUIRE(7, 2, 500)
         LINE(8, "claim", NEXT) LINE(9, "send", NEXT ",\"n\":1") REFUSED(10, "m")
             LINE(11, "fail", NEXT ",\"status\":500,\"maybe\":0,\"wait\":0")
                 LINE(12, "settle",
                      NEXT ",\"kind\":\"dead\",\"n\":1,\"charged\":1,\"rows\":1,\"reason\":\"HTTP_422\"")
                     LINE(13, "edit", ",\"m\":\"m\",\"dest\":\"d\",\"actor\":\"me\",\"hash\":\"bb\"")
                         ACT(14, "requeue", "m"),
     ""},
    {"I13", "an attempt that nobody ended is not counted",
     UNDER_WAY FAIL(6, "m", "o1", 1, 1, 0) RETRY(7, "m", "o1", 1, 0, 8), ""},
    {"I14", "resumed, and still said to be broken",
     DELIVERED BREAKER(20, 300) LINE(21, "resume", ",\"dest\":\"d\",\"actor\":\"me\"")
         LINE(22, "told", ",\"dest\":\"d\",\"relay\":\"r\",\"kind\":\"open\",\"until\":300"),
     ""},
    {"I14", "a relay hears of it and does not heed it",
     DELIVERED BREAKER(20, 300)
         LINE(22, "told", ",\"dest\":\"d\",\"relay\":\"s\",\"kind\":\"closed\",\"until\":300"),
     ""},
    {"I14", "closed, and a relay does not heed it",
     DELIVERED BREAKER(20, 300) BREAKER(21, 0)
         LINE(22, "closed", ",\"dest\":\"d\",\"relay\":\"s\",\"kind\":\"open\""),
     ""},
    {"I14", "broken, and sent to",
     CAP_OF_ONE BREAKER(20, 300) CLAIM(21, "n", "o2", 2) SEND(22, "n", "o2", 2, 1) REFUSED(23, "n")
         FAIL(24, "n", "o2", 2, 0, 0) RETRY(25, "n", "o2", 2, 1, 26) CLAIM(27, "n", "r2", 3)
             SEND(28, "n", "r2", 3, 2),
     ""},
    {"I14", "a breaker that opens for a moment",
     LINE(0, "dest", ",\"dest\":\"d\",\"kind\":\"none\",\"cap\":0,\"wait\":0,\"open\":50")
         COMMIT ACQUIRE(2, 1, 500) CLAIM(3, "m", "o1", 1) SEND(4, "m", "o1", 1, 1) REFUSED(5, "m")
             FAIL(6, "m", "o1", 1, 0, 0) RETRY(7, "m", "o1", 1, 1, 26) BREAKER(7, 55),
     ""},
    {"I14", "broken, opened once more, and sent to",
     CAP_OF_ONE BREAKER(20, 300) CLAIM(21, "n", "o2", 2) SEND(22, "n", "o2", 2, 1) REFUSED(23, "n")
         FAIL(24, "n", "o2", 2, 0, 0) RETRY(25, "n", "o2", 2, 1, 26) BREAKER(26, 400) CLAIM(27, "n", "r2", 3)
             SEND(28, "n", "r2", 3, 2),
     ""},
    {"I14", "broken, as others said, and sent to",
     CAP_OF_ONE LINE(20, "told", ",\"dest\":\"d\",\"relay\":\"r\",\"until\":300") CLAIM(21, "n", "o2", 2)
         SEND(22, "n", "o2", 2, 1) REFUSED(23, "n") FAIL(24, "n", "o2", 2, 0, 0)
             RETRY(25, "n", "o2", 2, 1, 26) CLAIM(27, "n", "r2", 3) SEND(28, "n", "r2", 3, 2),
     ""},
    {"pause", "paused, known, and sent to",
     CAP_OF_ONE LINE(19, "pause", ",\"dest\":\"d\",\"actor\":\"me\"") TOLD(20) CLAIM(21, "n", "o2", 2)
         SEND(22, "n", "o2", 2, 1) REFUSED(23, "n") FAIL(24, "n", "o2", 2, 0, 0)
             RETRY(25, "n", "o2", 2, 1, 26) CLAIM(27, "n", "r2", 3) SEND(28, "n", "r2", 3, 2),
     ""},
    {"I16", "sent long after it was due",
     DEST("none") COMMIT LINE(2, "heal", ",\"wait\":100") ACQUIRE(3, 1, 900) CLAIM(103, "m", "o1", 1)
         SEND(103, "m", "o1", 1, 1),
     ""},
    {"I16", "taken over long after the lease's end",
     UNDER_WAY LINE(6, "heal", ",\"wait\":100") ORPHAN(601, "m", "o1", 1), ""},
    {"I17", "one is missing",
     DELIVERED PUT(8, "n", "") CLAIM(9, "n", "o2", 2) SEND(10, "n", "o2", 2, 1) RECV(11, "n")
         CONFIRM(12, "n", "o2", 2) SETTLED_SENT(13, "n", "o2", 2, 1),
     SENT_ROW TOTALS(1, 0, 0)},
    {"I17", "more are counted than are there", DELIVERED, SENT_ROW TOTALS(2, 0, 0)},
    {"I19", "an act that is not in the audit", DIED ACT(8, "discard", "m"), DISCARDED_ROW TOTALS(0, 0, 1)},
    {"I19", "an act that nobody did", DELIVERED, SENT_ROW TOTALS(1, 0, 0) AUDIT("discard", "m")},
    {"I19", "written twice", DIED ACT(8, "discard", "m"),
     DISCARDED_ROW TOTALS(0, 0, 1) AUDIT("discard", "m") AUDIT("discard", "m")},
    {"I19", "by nobody", DIED ACT(8, "discard", "m"),
     DISCARDED_ROW TOTALS(
         0, 0, 1) "{\"table\":\"audit\",\"act\":\"discard\",\"m\":\"m\",\"dest\":\"d\",\"actor\":\"\"}\n"},
    {"I21", "passed over for a place",
     LINE(0, "dest", ",\"dest\":\"d\",\"kind\":\"none\",\"wait\":0,\"cap\":1,\"turn\":20") COMMIT ACQUIRE(
         2, 1, 500) CLAIM(3, "m", "o1", 1) SEND(4, "m", "o1", 1, 1) RECV(5, "m") CONFIRM(6, "m", "o1", 1)
         SETTLED_SENT(7, "m", "o1", 1, 1) PUT(8, "n", "") CLAIM(28, "n", "o2", 2) SEND(29, "n", "o2", 2, 1),
     ""},
    {"I20", "a payload in the log",
     DELIVERED LINE(9, "cancel", ",\"actor\":\"CANARY-1\",\"m\":\"m\",\"dest\":\"d\""), ""},
    {"I20", "a payload in the dump", DELIVERED, SENT_ROW TABLE("dead", "CANARY-1", "")},
    {"redrive", "goes on before its canary has arrived",
     DIED_TWO JOB(30, "start", 1, 9000000) BY_JOB(31, "m") BY_JOB(32, "n"), ""},
    {"redrive", "faster than its rate", DIED_TWO JOB(30, "start", 0, 1000) BY_JOB(31, "m") BY_JOB(32, "n"),
     ""},
    {"redrive", "requeues into a pause",
     DIED_TWO JOB(30, "start", 0, 0) LINE(31, "pause", ",\"dest\":\"d\",\"actor\":\"ann\"") BY_JOB(32, "m"),
     ""},
    {"redrive", "goes on after its end",
     DIED_TWO JOB(30, "start", 0, 9000000) JOB(31, "cancel", 0, 0) BY_JOB(32, "n"), ""},
    {"redrive", "ends twice", JOB(30, "start", 0, 0) JOB(31, "cancel", 0, 0) JOB(32, "finish", 0, 0), ""},
    {"format", "a status that there is none of", DIED,
     TABLE("dead", "m", ",\"status\":\"lost\",\"n\":1,\"life\":1")},
    {"format", "not JSON", "nonsense\n", ""},
    {"format", "an event that there is none of", LINE(1, "explode", ""), ""},
};

static const struct row good[] = {
    {"", "a wait begins anew when the store's time is set back", SET_BACK(111), ""},
    {"", "a sleeper releases its lane after a reset", SET_BACK(111) LINE(20, "release", ",\"lane\":1"), ""},
    {"", "nothing at all", "", ""},
    {"", "sent when there was room",
     UNDER_WAY BUSY(4, "m", "o1", 1) BACK(5, "m", "o1", 1) ROOM(6) CLAIM(7, "m", "o1", 2)
         SEND(8, "m", "o1", 2, 1) RECV(9, "m") CONFIRM(10, "m", "o1", 2) SETTLED_SENT(11, "m", "o1", 2, 1),
     ""},
    {"", "delivered", DELIVERED END, SENT_ROW TABLE("attempts", "m", ",\"n\":1,\"life\":1")},
    {"", "a log that is cut off", UNDER_WAY, ""},
    {"", "what was due by a clock that was wrong just now",
     DEST("none") PUT(1, "m", ",\"due\":5000") ACQUIRE(2, 1, 900000) LINE(9000, "clock", ",\"wait\":8998")
         CLAIM(9000, "m", "o1", 1) LINE(9001, "clock", ",\"wait\":-8998,\"behind\":8998")
             LINE(9001, "send", HAND("m", "o1", 1) ",\"n\":1,\"behind\":8998"),
     ""},
    {"", "one that was tried before its time has not been tried again, though its time has come",
     TRIED_TOO_SOON(5000, 8000) CLAIM(9010, "o", "o3", 2) SEND(9011, "o", "o3", 2, 1), ""},
    {"", "a wait that was over by a clock which has jumped back just now",
     UNDER_WAY REFUSED(5, "m") FAIL(6, "m", "o1", 1, 0, 0) LINE(
         7, "settle",
         HAND("m", "o1", 1) ",\"kind\":\"retry\",\"n\":1,\"charged\":1,\"rows\":1,\"due\":57,\"behind\":10")
         CLAIM(47, "m", "r1", 2) LINE(47, "clock", ",\"wait\":-20,\"behind\":20")
             LINE(48, "send", HAND("m", "r1", 2) ",\"n\":2,\"behind\":20"),
     ""},
    {"", "a wait that is over by the clock, which has caught up meanwhile",
     UNDER_WAY REFUSED(5, "m") FAIL(6, "m", "o1", 1, 0, 0) LINE(
         7, "settle",
         HAND("m", "o1", 1) ",\"kind\":\"retry\",\"n\":1,\"charged\":1,\"rows\":1,\"due\":57,\"behind\":10")
         CLAIM(47, "m", "r1", 2) SEND(48, "m", "r1", 2, 2),
     ""},
    {"", "one that killed relays goes alone, and others before and after it",
     SUSPECT CLAIM(8, "m", "r1", 4) SEND(9, "m", "r1", 4, 1) RECV(10, "m") CONFIRM(11, "m", "r1", 4)
         SETTLED_SENT(12, "m", "r1", 4, 1) CLAIM(13, "n", "o2", 5) SEND(14, "n", "o2", 5, 1),
     ""},
    {"", "waits for its key, uncharged, and is sent when it is there",
     UNOPENED RETRY(5, "m", "o1", 1, 0, 30) CLAIM(31, "m", "r1", 2) SEND(32, "m", "r1", 2, 1) RECV(33, "m")
         CONFIRM(34, "m", "r1", 2) SETTLED_SENT(35, "m", "r1", 2, 1),
     ""},
    {"", "counted, and nobody acted", DELIVERED END, SENT_ROW TOTALS(1, 0, 0)},
    {"", "discarded, and in the audit", DIED ACT(8, "discard", "m") END,
     DISCARDED_ROW TOTALS(0, 0, 1) AUDIT("discard", "m")},
    {"", "what a standby forgot is sent again",
     DEST("none") COMMIT LINE(1, "keep", "") ACQUIRE(2, 1, 500) CLAIM(3, "m", "o1", 1)
         SEND(4, "m", "o1", 1, 1) RECV(5, "m") CONFIRM(6, "m", "o1", 1) SETTLED_SENT(7, "m", "o1", 1, 1)
             LINE(10, "forget", "") LINE(11, "acquire", ",\"relay\":\"s\",\"lane\":1,\"until\":900")
                 CLAIM(12, "m", "o1", 1) SEND(13, "m", "o1", 1, 1) RECV(14, "m") CONFIRM(15, "m", "o1", 1)
                     SETTLED_SENT(16, "m", "o1", 1, 1) END,
     ""},
    {"", "sent under a lease that a standby forgot", FORGOTTEN SEND(20, "m", "o1", 1, 1) RECV(21, "m"), ""},
    {"", "one was chosen before the pause was known",
     CAP_OF_ONE LINE(19, "pause", ",\"dest\":\"d\",\"actor\":\"me\"") TOLD(20) CLAIM(21, "n", "o2", 2)
         SEND(22, "n", "o2", 2, 1),
     ""},
    {"", "given back, and may have arrived",
     UNDER_WAY LINE(6, "fail", HAND("m", "o1", 1) ",\"kind\":\"local\",\"status\":0,\"maybe\":1,\"wait\":0")
         RETRY(7, "m", "o1", 1, 0, 8),
     ""},
    {"", "the old bytes arrive late, under the old name",
     UNDER_WAY FAIL(6, "m", "o1", 1, 1, 0) DEAD(7, "m", "o1", 1, 1, "TIMEOUT")
         LINE(8, "edit", ",\"m\":\"m\",\"dest\":\"d\",\"actor\":\"me\",\"hash\":\"bb\"")
             LINE(9, "requeue", ",\"m\":\"m\",\"dest\":\"d\",\"actor\":\"me\",\"as\":\"x\",\"life\":2")
                 RECV(20000, "m"),
     ""},
    {"", "a new name, and new bytes",
     DIED LINE(8, "edit", ",\"m\":\"m\",\"dest\":\"d\",\"actor\":\"me\",\"hash\":\"bb\"")
         LINE(9, "requeue", ",\"m\":\"m\",\"dest\":\"d\",\"actor\":\"me\",\"as\":\"x\",\"life\":2")
             LINE(10, "claim", AGAIN_AS_X) LINE(11, "send", AGAIN_AS_X ",\"n\":1")
                 LINE(12, "recv", ",\"m\":\"x\",\"dest\":\"d\",\"hash\":\"bb\",\"status\":200,\"acted\":1")
                     LINE(13, "confirm", AGAIN_AS_X) LINE(
                         14, "settle", AGAIN_AS_X ",\"kind\":\"sent\",\"n\":1,\"charged\":1,\"rows\":1") END,
     TABLE("sent", "x", ",\"n\":1,\"life\":2")
         TABLE("dead", "x", ",\"status\":\"resolved\",\"n\":1,\"life\":1")},
    {"", "a canary, and then the rest",
     DIED_TWO JOB(30, "start", 1, 9000000) BY_JOB(31, "m") LINE(32, "claim", AGAIN_LATER)
         LINE(33, "send", AGAIN_LATER ",\"n\":1") RECV(34, "m") LINE(35, "confirm", AGAIN_LATER) LINE(
             36, "settle", AGAIN_LATER ",\"kind\":\"sent\",\"n\":1,\"charged\":1,\"rows\":1") BY_JOB(37, "n"),
     ""},
    {"", "a dead relay is replaced at once",
     UNDER_WAY LINE(6, "crash", ",\"relay\":\"r\"") ORPHAN(7, "m", "o1", 1) ACQUIRE(7, 2, 600), ""},
    {"", "a hint that only a relay heard that had lost its lane",
     UNDER_WAY LINE(5, "stop", ",\"relay\":\"r\"") ORPHAN(500, "m", "o1", 1)
         LINE(500, "acquire", ",\"relay\":\"s\",\"lane\":2,\"until\":900") LINE(501, "claim", NEXT)
             LINE(502, "send", NEXT ",\"n\":1") REFUSED(503, "m") LINE(
                 503, "fail", NEXT ",\"status\":500,\"maybe\":0,\"wait\":0") FAIL(504, "m", "o1", 1, 0, 300)
                 LINE(505, "settle", NEXT ",\"kind\":\"retry\",\"n\":1,\"charged\":1,\"rows\":1,\"due\":600"),
     ""},
    {"", "refused by its own sink",
     UNDER_WAY UNSENT(6, "m", "o1", 1) DEAD(7, "m", "o1", 1, 0, "VALIDATION_ERROR") END,
     TABLE("dead", "m", ",\"status\":\"failed\",\"n\":0,\"life\":1")},
    {"", "refused by our address policy",
     UNDER_WAY UNSENT(6, "m", "o1", 1) DEAD(7, "m", "o1", 1, 0, "BLOCKED_BY_POLICY") END,
     TABLE("dead", "m", ",\"status\":\"failed\",\"n\":0,\"life\":1")},
    {"", "requeued, and arrived", REQUEUED_AND_SENT END,
     TABLE("sent", "m", ",\"n\":1,\"life\":2")
         TABLE("dead", "m", ",\"status\":\"resolved\",\"n\":1,\"life\":1")},
    {"", "requeued before not_before, which a letter does not keep",
     PUT(1, "m", ",\"due\":400") ACQUIRE(2, 1, 500) CLAIM(3, "m", "o1", 1) DEAD(7, "m", "o1", 1, 0, "EXPIRED")
         ACT(8, "requeue", "m") LINE(9, "claim", AGAIN) LINE(10, "send", AGAIN ",\"n\":1"),
     ""},
    {"", "requeued, and on its way", DIED ACT(8, "requeue", "m"),
     TABLE("retry", "m", ",\"row\":\"r1\",\"n\":0,\"life\":2")
         TABLE("dead", "m", ",\"status\":\"retrying\",\"n\":1,\"life\":1")},
    {"", "requeued, and taken back", DIED ACT(8, "requeue", "m") ACT(9, "cancel", "m") END,
     TABLE("cancelled", "m", "") TABLE("dead", "m", ",\"status\":\"discarded\",\"n\":1,\"life\":1")},
    {"", "discarded", DIED ACT(8, "discard", "m") END,
     TABLE("dead", "m", ",\"status\":\"discarded\",\"n\":1,\"life\":1")},
    {"", "rolled back", LINE(1, "rollback", ",\"m\":\"m\"") END, ""},
    {"", "cancelled", COMMIT ACT(2, "cancel", "m") END, ""},
    {"", "a retry on time",
     FAILED_ONCE CLAIM(50, "m", "r1", 2) SEND(50, "m", "r1", 2, 2) RECV(51, "m") CONFIRM(52, "m", "r1", 2)
         SETTLED_SENT(53, "m", "r1", 2, 2) END,
     ""},
    {"", "taken twice, because the answer was lost",
     UNDER_WAY RECV(5, "m") FAIL(6, "m", "o1", 1, 1, 0) RETRY(7, "m", "o1", 1, 1, 50) CLAIM(51, "m", "r1", 2)
         SEND(52, "m", "r1", 2, 2) RECV(53, "m") CONFIRM(54, "m", "r1", 2) SETTLED_SENT(55, "m", "r1", 2, 2)
             END,
     ""},
    {"", "taken twice, because the relay died",
     UNDER_WAY RECV(5, "m") LINE(6, "crash", ",\"relay\":\"r\"") ORPHAN(501, "m", "o1", 1)
         LINE(501, "acquire", ",\"relay\":\"s\",\"lane\":2,\"until\":900") LINE(
             502, "claim", ",\"m\":\"m\",\"dest\":\"d\",\"row\":\"r1\",\"lane\":2,\"claim\":2,\"life\":1")
             LINE(503, "send",
                  ",\"m\":\"m\",\"dest\":\"d\",\"relay\":\"s\",\"row\":\"r1\",\"lane\":2,\"claim\":2,\"n\":1")
                 RECV(504, "m"),
     ""},
    {"", "a zombie's settle is stale",
     UNDER_WAY RECV(5, "m") CONFIRM(6, "m", "o1", 1) ORPHAN(501, "m", "o1", 1)
         SETTLE(502, "m", "o1", 1, "sent", 1, ",\"rows\":0"),
     ""},
    {"", "skips a dead head",
     DEST("skip") PUT(2, "n", ",\"key\":\"k\"") PUT(3, "o", ",\"key\":\"k\"") ACQUIRE(4, 1, 500)
         CLAIM(5, "n", "o2", 1) SEND(6, "n", "o2", 1, 1) FAIL(7, "n", "o2", 1, 0, 0)
             DEAD(8, "n", "o2", 1, 1, "HTTP_422") CLAIM(9, "o", "o3", 2) SEND(10, "o", "o3", 2, 1),
     ""},
    {"", "waits behind a dead head",
     DEST("block") PUT(2, "n", ",\"key\":\"k\"") PUT(3, "o", ",\"key\":\"k\"") ACQUIRE(4, 1, 500)
         CLAIM(5, "n", "o2", 1) SEND(6, "n", "o2", 1, 1) FAIL(7, "n", "o2", 1, 0, 0)
             DEAD(8, "n", "o2", 1, 1, "HTTP_422") END,
     TABLE("outbox", "o", ",\"row\":\"o3\",\"n\":0,\"life\":1")
         TABLE("dead", "n", ",\"status\":\"failed\",\"n\":1,\"life\":1")},
};

static size_t judge(const struct row *row, char first[160])
{
    struct hk_check_options options = {.slack_ms = 0};
    struct hk_check_result result;
    struct hk_buf report;
    hk_buf_init(&report, 1 << 20);
    hk_check(hk_str_of(row->log), hk_str_of(row->dump), &options, &report, &result);
    (void)snprintf(first, 160, "%s", hk_buf_cstr(&report));
    hk_buf_fini(&report);
    return result.violations;
}

static void each_violation_is_seen_for_what_it_is(void **state)
{
    (void)state;
    size_t wrong = 0;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        char first[160];
        size_t n = judge(&bad[i], first), len = strlen(bad[i].rule);
        if (n > 0 && strncmp(first, bad[i].rule, len) == 0 && first[len] == ':')
            continue;
        print_error("%s, %s: %zu violations, %s\n", bad[i].rule, bad[i].name, n, first);
        wrong++;
    }
    assert_int_equal(wrong, 0);
}

static void what_is_right_passes(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        char first[160];
        if (judge(&good[i], first) != 0)
            fail_msg("%s: %s", good[i].name, first);
    }
}

/* Clocks of relay and receiver differ a little. */
static void slack_is_granted_where_clocks_meet(void **state)
{
    (void)state;
    struct row early = {"", "", FAILED_ONCE CLAIM(48, "m", "r1", 2) SEND(49, "m", "r1", 2, 2), ""};
    struct hk_check_options options = {.slack_ms = 1};
    struct hk_check_result result;
    struct hk_buf report;
    hk_buf_init(&report, 1000);
    hk_check(hk_str_of(early.log), hk_str_of(""), &options, &report, &result);
    assert_int_equal(result.violations, 0);
    hk_buf_fini(&report);
}

static void after_a_jump_of_the_clock_leases_are_not_judged(void **state)
{
    (void)state;
    char first[160];
    struct row jumped = {"", "",
                         COMMIT ACQUIRE(2, 1, 500) CLAIM(3, "m", "o1", 1) LINE(501, "clock", ",\"wait\":490")
                             SEND(501, "m", "o1", 1, 1),
                         ""};
    assert_int_equal(judge(&jumped, first), 0);
}

static void the_reader_is_strict(void **state)
{
    (void)state;

    static const struct {
        const char *line;
        bool ok;
    } lines[] = {
        {"{\"a\":1}", true},
        {"{\"a\":-9223372036854775808,\"b\":\"x\\n\\\"\\u0041\"}", true},
        {"{}", false},
        {"{\"a\":1,}", false},
        {"{\"a\":1,\"a\":2}", false},
        {"{\"a\":1} ", false},
        {"{\"a\":9223372036854775808}", false},
        {"{\"a\":1.5}", false},
        {"{\"a\":true}", false},
        {"{\"a\":[1]}", false},
        {"{\"a\":{}}", false},
        {"{\"a\":\"\\ud800\"}", false},
        {"{\"a\":\"\\x\"}", false},
        {"{\"a\":\"x}", false},
        {"{\"a\"1}", false},
        {"{a:1}", false},
        {"", false},
    };
    struct hk_flat flat;
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++)
        if (hk_flat_parse(&flat, hk_str_of(lines[i].line)) != lines[i].ok)
            fail_msg("%s", lines[i].line);
    assert_true(hk_flat_parse(&flat, hk_str_of(lines[1].line)));
    assert_true(hk_str_eq(hk_flat_text(&flat, "b"), hk_str_of("x\n\"A")));
    assert_true(hk_flat_number(&flat, "a") == INT64_MIN);
    assert_int_equal(hk_flat_number(&flat, "c"), 0);
    assert_int_equal(hk_flat_text(&flat, "a").len, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_violation_is_seen_for_what_it_is),
        cmocka_unit_test(what_is_right_passes),
        cmocka_unit_test(slack_is_granted_where_clocks_meet),
        cmocka_unit_test(after_a_jump_of_the_clock_leases_are_not_judged),
        cmocka_unit_test(the_reader_is_strict),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
