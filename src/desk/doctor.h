/* SPDX-License-Identifier: Apache-2.0 */
/* Checks everything that a relay needs: configuration, certificates, limits of the process, the database and its content. */
#ifndef HK_DESK_DOCTOR_H
#define HK_DESK_DOCTOR_H

#include "desk/desk.h"

/* Facts that only the calling program can know. */
struct hk_doctor_ask {
    bool known;       /* the rest is; over HTTP it is not: a relay that runs has what it needs */
    const char *file; /* that the desk's configuration was read from; NULL: there is none */
    bool broken;      /* the file has errors, and the desk's configuration is the default */
    bool complete;    /* the configuration has its secrets */
    bool can_lock,
        is_root; /* of a relay that is started like this: can it give up system calls, does it run as root? */
};

struct hk_symptom {
    enum hk_note_level level;
    const char *check;    /* what was looked at */
    const char *text;     /* what was found, with what to do about it */
    const char *code;     /* stable, one for each sentence: "relay_stopped" */
    struct hk_str values; /* those in the sentence, by name, as JSON (base/named.h) */
};

struct hk_diagnosis {
    struct hk_symptom *items;
    size_t n;
    size_t found[HK_NOTE_FAIL + 1]; /* by level */
};

extern const char *const hk_note_names[]; /* "ok", "warn", "fail", by level */

extern const struct hk_op hk_op_doctor;

#endif
